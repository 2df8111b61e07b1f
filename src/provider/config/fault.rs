use std::time::Duration;

use crate::units::{MapReader, Moment, Ratio, Read, Reader, Share};

/// A stretch of time in which the provider is not as usual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// When it begins, from the beginning of the run.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What is wrong.
    pub what: What,
}

/// What is wrong with a provider for a while. Of the calls that come then, a part is hit where there is a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// The quota's rates, as a part of the usual ones. What may be used at once of a bucket stays.
    Capacity(Ratio),
    /// The connection ends in the middle of the answer.
    Cuts(Share),
    /// Calls are answered with an error, at once, and cost nothing.
    Errors {
        /// 400 to 599.
        status: u16,
        /// Which part of the calls.
        share: Share,
        /// What the header of that name says; `None` for no header.
        retry_after: Option<Duration>,
    },
    /// The answer is no answer of its API, with a status that says so.
    Garbage(Share),
    /// Answers take so many times as long, and this much longer.
    Latency {
        /// Times as long.
        times: Ratio,
        /// Longer by this.
        plus: Duration,
    },
    /// The connection is reset at once. The call costs nothing.
    Resets(Share),
    /// The answer never comes.
    Stalls(Share),
}

/// A kind of fault: its key in a plan, and how what belongs to it is read.
#[derive(Debug, Clone, Copy)]
pub struct FaultKind {
    /// The key.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// Whether whole answers cannot show it: it takes the engine `stream`.
    pub needs_stream: bool,
    read: fn(&Reader<'_>) -> Option<What>,
}

impl FaultKind {
    /// All kinds of fault, by name.
    pub const ALL: [Self; 7] =
        [Self::CAPACITY, Self::CUTS, Self::ERRORS, Self::GARBAGE, Self::LATENCY, Self::RESETS, Self::STALLS];

    const CAPACITY: Self = Self {
        name: "capacity",
        about: "the quota is this part of the usual one",
        needs_stream: false,
        read: |reader| Ratio::read(reader).map(What::Capacity),
    };
    const CUTS: Self = Self {
        name: "cuts",
        about: "this part of the answers breaks off in the middle",
        needs_stream: true,
        read: |reader| some(reader).map(What::Cuts),
    };
    const ERRORS: Self = Self {
        name: "errors",
        about: "calls get an error at once: { status: 529, share: 20%, retry_after: 5s }",
        needs_stream: false,
        read: errors,
    };
    const GARBAGE: Self = Self {
        name: "garbage",
        about: "this part of the answers is no answer of the API",
        needs_stream: false,
        read: |reader| some(reader).map(What::Garbage),
    };
    const LATENCY: Self = Self {
        name: "latency",
        about: "answers take longer: { times: 2, plus: 500ms }",
        needs_stream: false,
        read: latency,
    };
    const RESETS: Self = Self {
        name: "resets",
        about: "the connection of this part of the calls is reset",
        needs_stream: true,
        read: |reader| some(reader).map(What::Resets),
    };
    const STALLS: Self = Self {
        name: "stalls",
        about: "this part of the answers never comes",
        needs_stream: true,
        read: |reader| some(reader).map(What::Stalls),
    };
}

impl What {
    /// What kind of fault it is.
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::Capacity(_) => FaultKind::CAPACITY,
            Self::Cuts(_) => FaultKind::CUTS,
            Self::Errors { .. } => FaultKind::ERRORS,
            Self::Garbage(_) => FaultKind::GARBAGE,
            Self::Latency { .. } => FaultKind::LATENCY,
            Self::Resets(_) => FaultKind::RESETS,
            Self::Stalls(_) => FaultKind::STALLS,
        }
    }

    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::Capacity(part) => format!("{part} of capacity"),
            Self::Cuts(share) => format!("{share} of answers break off"),
            Self::Errors { status, share, retry_after } => {
                let told = retry_after
                    .map(|told| format!(" with Retry-After {}", crate::units::plain_duration(told)));
                format!("{share} of calls get a {status}{}", told.unwrap_or_default())
            }
            Self::Garbage(share) => format!("{share} of answers are garbage"),
            Self::Latency { times, plus } => {
                format!("answers take {times} times as long and {}", crate::units::plain_duration(plus))
            }
            Self::Resets(share) => format!("{share} of connections are reset"),
            Self::Stalls(share) => format!("{share} of answers never come"),
        }
    }
}

impl Fault {
    /// When it is over, from the beginning of the run.
    pub const fn end(&self) -> Duration {
        self.at.saturating_add(self.lasts)
    }

    /// Whether it is on at `now` in a run that began at `began`.
    pub(in crate::provider) fn is_on(&self, began: Moment, now: Moment) -> bool {
        began + self.at <= now && now < began + self.end()
    }

    /// In words.
    pub fn words(&self) -> String {
        let shown = crate::units::plain_duration;
        format!("at {} for {}: {}", shown(self.at), shown(self.lasts), self.what.words())
    }
}

/// The part of the usual quota that `faults` leave for calls made `into` the run: what of it is granted, times the calls
/// that do not go wrong.
pub(super) fn part_at<'a>(faults: impl Iterator<Item = &'a Fault>, into: Duration) -> f64 {
    let on = faults.filter(|fault| fault.at <= into && into < fault.end());
    on.map(|fault| match fault.what {
        What::Capacity(part) => part.as_f64(),
        What::Cuts(share) | What::Garbage(share) | What::Resets(share) | What::Stalls(share) => {
            1.0 - share.get()
        }
        What::Errors { share, .. } => 1.0 - share.get(),
        What::Latency { .. } => 1.0,
    })
    .product()
}

impl Read for Fault {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (at, lasts) = (map.need("at"), map.need::<Duration>("for"));
        let what = read_what(&mut map);
        let fault = Self { at: at?, lasts: lasts?, what: what? };
        if fault.lasts.is_zero() {
            map.here().fault("a fault lasts more than nothing");
            return None;
        }
        Some(fault)
    }
}

fn read_what(map: &mut MapReader<'_>) -> Option<What> {
    let there: Vec<_> =
        FaultKind::ALL.iter().filter_map(|kind| map.reader(kind.name).map(|reader| (kind, reader))).collect();
    match &there[..] {
        [(kind, reader)] => (kind.read)(reader),
        _ => {
            let names = FaultKind::ALL.map(|kind| kind.name).join(", ");
            map.here()
                .fault(format!("one thing is wrong in a fault, not {}: name one of {names}", there.len()));
            None
        }
    }
}

/// A share above nothing.
fn some(reader: &Reader<'_>) -> Option<Share> {
    let share = Share::read(reader)?;
    if share.get() <= 0.0 {
        reader.fault("a share of nothing hits no call");
        return None;
    }
    Some(share)
}

fn errors(reader: &Reader<'_>) -> Option<What> {
    let mut map = reader.map()?;
    let status = map.need::<u16>("status");
    let share = match map.reader("share") {
        Some(reader) => some(&reader),
        None => Share::new(1.0),
    };
    let retry_after = match map.reader("retry_after") {
        Some(reader) => Duration::read(&reader).map(Some),
        None => Some(None),
    };
    let status = status?;
    if !(400..=599).contains(&status) {
        map.here().fault(format!("`status: {status}` is no error: take 400 to 599"));
        return None;
    }
    Some(What::Errors { status, share: share?, retry_after: retry_after? })
}

fn latency(reader: &Reader<'_>) -> Option<What> {
    let mut map = reader.map()?;
    let (times, plus) = (map.or("times", Ratio::ONE), map.or("plus", Duration::ZERO));
    let (times, plus) = (times?, plus?);
    if times == Ratio::ONE && plus.is_zero() {
        map.here().fault("`latency` changes nothing: give `times`, `plus` or both");
        return None;
    }
    Some(What::Latency { times, plus })
}

/// The faults by their beginnings; one that begins before another of its kind has ended is reported.
pub(super) fn in_order(mut faults: Vec<Fault>, here: &Reader<'_>) -> Option<Vec<Fault>> {
    faults.sort_by_key(|fault| fault.at);
    for (i, fault) in faults.iter().enumerate() {
        let same =
            |other: &&Fault| std::mem::discriminant(&other.what) == std::mem::discriminant(&fault.what);
        if let Some(next) = faults[i + 1..].iter().find(same).filter(|next| next.at < fault.end()) {
            let (first, second) = (fault.words(), next.words());
            here.fault(format!(
                "`faults` of one kind overlap: one ends before the next begins ({first}; {second})"
            ));
            return None;
        }
    }
    Some(faults)
}
