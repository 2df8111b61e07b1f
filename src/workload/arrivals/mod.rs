//! Arrival processes: when, within a phase, the next caller arrives.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::Phase;
use crate::units::{Read, Reader};

mod constant;
mod poisson;

/// Every arrival process a plan can name, sorted.
pub const ALL: &[Kind] = &[constant::KIND, poisson::KIND];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Builds it from what stands under its name, if anything does.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Process>>,
}

/// An arrival process. It has no state: what it needs of the past is handed to it.
pub trait Process: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;

    /// The offset from the phase's start of its `k`-th arrival (from 0). `after` is the offset of the one before
    /// (zero for the first), `stream` the stream of random numbers kept for arrivals. An offset at or past the
    /// phase's end means that no more arrive in it.
    fn offset(&self, phase: &Phase, k: u64, after: Duration, stream: &mut Pcg64) -> Duration;
}

impl Read for Arc<dyn Process> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("arrival process", &names)?;
        let kind = ALL.iter().find(|kind| kind.name == name)?;
        (kind.build)(inner.as_ref())
    }
}

/// For processes without settings: reports anything that stands under the name.
fn no_settings(name: &str, inner: Option<&Reader<'_>>) -> Option<()> {
    match inner {
        None => Some(()),
        Some(reader) => {
            reader.fault(format!("`{name}` has no settings: write `arrivals: {name}`"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;
    use crate::workload::stream;

    #[test]
    fn the_table_is_sorted_and_every_process_keeps_its_mean_rate() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        let phase = Phase {
            name: "p".into(),
            rate: Rate::parse("50/s").unwrap(),
            lasts: Duration::from_secs(2_000),
            event: false,
        };
        for kind in ALL {
            let process = (kind.build)(None).unwrap();
            let mut stream = stream::of(7, stream::ARRIVALS);
            let (mut after, mut k) = (Duration::ZERO, 0);
            loop {
                let offset = process.offset(&phase, k, after, &mut stream);
                assert!(offset >= after, "{}: time ran backwards", kind.name);
                if offset >= phase.lasts {
                    break;
                }
                (after, k) = (offset, k + 1);
            }
            // 4 standard deviations of a Poisson count of 100,000
            assert!(k.abs_diff(100_000) < 1_265, "{}: {k} arrivals instead of 100,000", kind.name);
            assert_eq!(process.name(), kind.name);
        }
    }
}
