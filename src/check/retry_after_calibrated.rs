//! What is announced is neither too early nor far off.
//!
//! ρ is the first delay after which such a caller would have been let in for a whole second, read from what others
//! met: a second is closed to a hold if one no larger was refused for scarcity in it, open if somebody was let in,
//! and else as the last second that could tell; and where nobody came, open if nothing stood in the queue. It takes
//! no belief about the bound, so it holds for any gateway. An overload that outlasts the run leaves ρ open: such a
//! wait counts as too early.
//!
//! Who is the "such a caller" that returns? Where the declared strategy keeps nothing for those who return, he is met
//! as a fresh caller of his class, and both demands are made: R < ρ in at most 10 % of the refusals, and a median
//! |ln((1+R)/(1+ρ))| of at most ln 2. A memoryless answer fails that in a sustained overload, as it should.
//!
//! An appointment is different: a part of the bound is kept, a returning caller may use the whole of it, and so ρ is
//! nearly nothing, read from how probes were met. An honest appointment announces *more* than ρ on purpose: it
//! spreads the returns over the capacity that is kept. So only the promise is judged, that nobody is told to come too
//! early; how much longer the wait is than ρ is shown as a figure. Whether those waits are no longer than they must
//! be is the question of `retry_after.follows_state`.

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::{Door, Measures, Telling, Wait};
use crate::workload::{Class, OnRefusal};

pub(super) const KIND: Kind = Kind {
    id: "retry_after.calibrated",
    about: "at most 10 % of the announced waits end before such a caller would be let in",
    limit: Standard::Part(0.1),
    unit: "share",
    judge,
};

/// The most refusals that are looked at: a random sample of all.
const MOST: usize = 1_000;

fn judge(scene: &Scene<'_>) -> Finding {
    let (limit, measures) = (scene.part(&KIND), scene.measures);
    let kept = scene.plan.policy().is_some_and(|policy| policy.retry_after.reserve().is_some());
    let draft = KIND.draft(if kept {
        format!("at most {} are told to come before a returning caller is let in", words::percent(limit))
    } else {
        format!(
            "at most {} are told to come before such a caller is let in, and the median wait is off by a factor of at most 2",
            words::percent(limit)
        )
    });
    let draft = match scene.told_a_crowd(draft) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    let probing = |class: &Class| class.weight > 0 && class.on_refusal == OnRefusal::GiveUp;
    if kept && (scene.plan.probes.every == 0 || !scene.plan.requests.classes().iter().any(probing)) {
        return draft.not_applicable("the plan has no probes, and so nobody for whom something is kept");
    }
    if kept && measures.waits.as_slice().iter().all(|wait| wait.probes == 0) {
        return draft.no_data("no probe came back, for whom something is kept");
    }
    let scarce = measures.told.tellings().filter(|(_, telling)| !telling.throttled);
    let sample: Vec<_> = scarce
        .take(MOST)
        .map(|(seq, telling)| (seq, telling, let_in_after(measures, kept, &telling)))
        .collect();
    if sample.is_empty() {
        return draft.no_data("no refusal for scarcity announced a time");
    }
    let early: Vec<_> = sample.iter().filter(|(_, telling, rho)| is_early(telling, *rho)).collect();
    let share = early.len() as f64 / sample.len() as f64;
    let factor = median_factor(&sample);
    let open = sample.iter().filter(|(.., rho)| rho.is_none()).count();
    let mut because = format!(
        "{} of {} announced waits end too early{}",
        early.len(),
        sample.len(),
        if kept { " for a returning caller" } else { "" }
    );
    if open > 0 {
        because = format!("{because}, for {open} the run ended first");
    }
    because = match factor {
        Some(factor) if kept => {
            format!(
                "{because}; to spread the returns the median is longer by a factor of {}",
                words::number(factor)
            )
        }
        Some(factor) => format!("{because}; the median is off by a factor of {}", words::number(factor)),
        None => because,
    };
    let near = kept || factor.is_none_or(|factor| factor <= 2.0);
    let mut examples: Vec<_> = early.iter().map(|(seq, ..)| *seq).collect();
    examples.sort_unstable();
    examples.truncate(20);
    draft.judged(share <= limit && near, share, limit, because).showing(examples)
}

fn is_early(telling: &Telling, rho: Option<f64>) -> bool {
    rho.is_none_or(|rho| telling.announced.as_secs_f64() < rho)
}

/// ρ: seconds until the first window in which such a caller would have been let in; `None` if none came before the end.
fn let_in_after(measures: &Measures, kept: bool, telling: &Telling) -> Option<f64> {
    let class = usize::from(telling.class);
    let open = |door: Door| door.is_open(telling.hold);
    let (frame, quiet) = (&measures.frame, measures.depths.level_before());
    let at = |(window, wait): (usize, &Wait)| {
        let told = open(if kept { wait.probed } else { wait.door(class) });
        let stood = measures.windows.iter().nth(window).map(|window| window.depth_max.requests);
        let open = told.or_else(|| stood.filter(|stood| *stood <= quiet).map(|_| true))?;
        Some((window, open))
    };
    let window = frame.window(telling.at);
    let waits = measures.waits.as_slice();
    let so_far = waits.get(..=window).unwrap_or(waits);
    // nobody has been turned away as long as nobody could tell
    if so_far.iter().enumerate().rev().find_map(at).is_none_or(|(_, open)| open) {
        return Some(0.0);
    }
    let later = waits.iter().enumerate().skip(window + 1);
    let (first, _) = later.filter_map(at).find(|(_, open)| *open)?;
    Some(frame.begins(first).since(telling.at).as_secs_f64())
}

/// The median of max((1+R)/(1+ρ), (1+ρ)/(1+R)); `None` where half of the ρ are not known.
fn median_factor(sample: &[(u64, Telling, Option<f64>)]) -> Option<f64> {
    let factor = |(_, telling, rho): &(u64, Telling, Option<f64>)| {
        let told = 1.0 + telling.announced.as_secs_f64();
        rho.map_or(f64::INFINITY, |rho| (told / (1.0 + rho)).max((1.0 + rho) / told))
    };
    let mut factors: Vec<_> = sample.iter().map(factor).collect();
    factors.sort_by(f64::total_cmp);
    factors.get(factors.len() / 2).copied().filter(|factor| factor.is_finite())
}
