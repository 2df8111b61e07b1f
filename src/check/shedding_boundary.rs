//! Every verdict lies on the right side of the bound.
//!
//! From outside, for a bound that a depth can be held against: nobody is shed for whom there was room, and nobody let in
//! beyond it. With Q the tokens that stood in the gateway, h the request's hold, A the part of the bound it may use (a
//! caller who returns all of it) and L what the bucket holds while a queue stands (less than one hold), a request is let in
//! if and only if Q + h ≤ A + L. So a shed with Q + h ≤ A is false, and one let in with Q + h ≥ A + h is one too many.
//! In a live run λ·ε requests may be counted on either side, and one request in a hundred may have travelled longer than ε.
//!
//! Where the policy is declared its own verdicts stand beside those of the run, each given in the state the gateway was
//! in. One that differs is excused if 1 + λ·ε requests more or fewer would have made it equal: λ callers a second, ε the
//! time a request travels (none in virtual time), as the slowest refusals show it. Who came back is not judged by what is
//! kept for those who return: that is what honouring a Retry-After means. The first shed has the same place in both, give
//! or take what travels.

use super::on_the_way::{self, Side};
use super::{Draft, Finding, Kind, Scene, Standard, words};
use crate::admission::Met;
use crate::measure::{Boundary, untold};
use crate::plan::Plan;
use crate::simulate::Agreement;
use crate::units::Tokens;
use crate::workload::Skew;

pub(super) const KIND: Kind = Kind {
    id: "shedding.boundary",
    about: "nobody is shed while there is room, nobody let in beyond the bound; verdicts are the declared policy's",
    limit: Standard::Nothing,
    unit: "requests",
    judge,
};

/// One way of looking at it.
struct Look {
    wrong: u64,
    because: String,
    examples: Vec<u64>,
    /// Whether anybody was refused, or would have been.
    refused: bool,
}

fn judge(scene: &Scene<'_>) -> Finding {
    let draft = KIND.draft("no shed with room for it, nobody let in beyond the bound");
    if scene.plan.policy().is_none() {
        return draft.not_applicable("what the gateway decides by is not declared");
    }
    let outside = match silent(scene.plan) {
        None => scene.measures.boundary.as_deref().and_then(|met| from_outside(scene, met)),
        Some(_) => None,
    };
    let (applies, seen) = (silent(scene.plan).is_none(), outside.is_some());
    let astray = astray(scene.plan);
    let agreement = scene.agreement.filter(|_| astray.is_none());
    let told = agreement.filter(|agreement| agreement.compared() > 0).map(|it| beside(scene, it));
    let looks: Vec<Look> = outside.into_iter().chain(told).collect();
    match (&looks[..], silent(scene.plan)) {
        ([], Some(why)) if agreement.is_none() => draft.not_applicable(format!(
            "{why}, and {}",
            match astray {
                Some(astray) => astray,
                None if scene.live => "no verdicts to compare with",
                None => "in virtual time the verdicts are the policy's own",
            }
        )),
        ([], _) => nothing_met(scene, draft, applies && seen),
        (looks, _) => weigh(scene, draft, looks),
    }
}

/// Why depth alone does not tell who had room, if it does not. A replica may be full while another, which callers who came
/// back or left have made shorter, is not.
fn silent(plan: &Plan) -> Option<&'static str> {
    let replicas = plan.policy().is_some_and(|policy| policy.replicas > 1);
    if replicas {
        return Some("each replica has a queue of its own, of which only the sum is seen from outside");
    }
    let classes = plan.requests.classes();
    let several = classes.iter().any(|class| class.tier != classes[0].tier);
    untold(plan).or_else(|| several.then_some("what is less important does not stand in the way"))
}

/// Why the policy's verdicts on what was recorded are not those it would have given, if they are not: what the gateway
/// learned from its provider, or went by, is more than the records tell.
fn astray(plan: &Plan) -> Option<&'static str> {
    let classes = plan.requests.classes();
    let reasons = [
        (!plan.provider.faults.is_empty(), "what a faulty provider makes a gateway believe is not recorded"),
        (
            classes.iter().any(|class| class.duplicates.get() > 0.0),
            "of a request that is sent twice only one has a verdict",
        ),
        (classes.iter().any(|class| class.clock != Skew::None), "what callers' clocks say is not recorded"),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why)
}

fn nothing_met(scene: &Scene<'_>, draft: Draft, seen: bool) -> Finding {
    if seen { scene.nobody_refused(draft) } else { draft.no_data("nobody was met") }
}

fn weigh(scene: &Scene<'_>, draft: Draft, looks: &[Look]) -> Finding {
    let wrong: u64 = looks.iter().map(|look| look.wrong).max().unwrap_or(0);
    if wrong == 0 && !looks.iter().any(|look| look.refused) {
        return scene.nobody_refused(draft);
    }
    let because: Vec<&str> = looks.iter().map(|look| look.because.as_str()).collect();
    let mut examples: Vec<u64> = looks.iter().flat_map(|look| look.examples.iter().copied()).collect();
    examples.sort_unstable();
    examples.dedup();
    examples.truncate(20);
    draft.judged(wrong == 0, wrong as f64, 0.0, because.join("; ")).showing(examples)
}

/// What was met, held against the bound; `None` if nobody was met.
fn from_outside(scene: &Scene<'_>, met: &Boundary) -> Option<Look> {
    let (sheds, fresh, returned) = (met.shed.count(), met.fresh.count(), met.returned.count());
    if sheds + fresh + returned == 0 {
        return None;
    }
    let kept = 1.0 - scene.forecast.basis.reserve;
    let classes = scene.plan.requests.classes();
    let each = |part: f64, side: Side| {
        classes.iter().filter_map(move |class| on_the_way::room(scene, class, part, side))
    };
    let slack = on_the_way::tokens(scene);
    // what was met is known to a thousandth
    let coarse = |tokens: Tokens| Tokens::new(tokens.get() / 512);
    let least = each(kept, Side::Least).min()?;
    let early = met.early(least - slack - coarse(least));
    let full = |part: f64| {
        let most = each(part, Side::Most).max()?;
        Some(most + scene.forecast.basis.largest_hold + slack + coarse(most))
    };
    let (full, full_returned) = (full(kept)?, full(1.0)?);
    let (over, again) = (met.beyond(full, false), met.beyond(full_returned, true));
    let because = format!(
        "from outside: {} of {} shed had room (at most {} tokens with them), {} of {} let in were beyond it ({}{})",
        words::thousands(early.0),
        words::thousands(sheds),
        words::thousands((least - slack).get()),
        words::thousands(over.0 + again.0),
        words::thousands(fresh + returned),
        words::thousands(full.get()),
        if returned > 0 {
            format!(", {} for who came back", words::thousands(full_returned.get()))
        } else {
            String::new()
        },
    );
    // ε is what 99 of 100 took: of a live run one in a hundred may have been on its way for longer
    let wrong = early.0 + over.0 + again.0;
    let excused = if scene.live { (sheds + fresh + returned) / 100 } else { 0 };
    Some(Look {
        wrong: if wrong > excused { wrong } else { 0 },
        because,
        examples: [early.1, over.1, again.1].concat(),
        refused: sheds > 0,
    })
}

/// The verdicts of the run beside those of the policy.
fn beside(scene: &Scene<'_>, agreement: &Agreement) -> Look {
    let on_the_way = on_the_way::requests(scene);
    let allowed = 1.0 + on_the_way;
    let beyond = agreement.boundary.beyond(allowed);
    let places = if scene.live { on_the_way.ceil() as u64 + 1 } else { 0 };
    let first = match agreement.first_shed {
        (Some(theirs), Some(ours)) => theirs.abs_diff(ours).saturating_sub(places),
        _ => 0,
    };
    let of = |recorded, declared| words::thousands(agreement.count(recorded, declared));
    let mut because = format!(
        "beside the policy's verdicts on {} requests: {} shed that it lets in, {} let in that it sheds, {} of them by more \
         than 1 + λ·ε = {} requests",
        words::thousands(agreement.compared()),
        of(Met::Shed, Met::Admitted),
        of(Met::Admitted, Met::Shed),
        words::thousands(beyond),
        words::number(allowed),
    );
    if let Some(furthest) = agreement.boundary.examples(allowed).next() {
        because += &format!(
            ", the furthest by {} with {} tokens waiting",
            furthest.margin.map_or_else(|| "any number".to_owned(), |margin| margin.to_string()),
            words::thousands(furthest.waiting.get())
        );
    }
    match agreement.first_shed {
        (Some(theirs), Some(ours)) => {
            because += &format!(
                "; the first shed is request {} (the policy's: {})",
                words::thousands(theirs),
                words::thousands(ours)
            );
        }
        (Some(theirs), None) => {
            because += &format!("; request {} was shed, the policy sheds nobody", words::thousands(theirs))
        }
        (None, Some(ours)) => {
            because += &format!("; nobody was shed, the policy sheds request {}", words::thousands(ours))
        }
        (None, None) => {}
    }
    // a lane's part of the drain leaps when the last of another tenant is served: who comes in that instant may be met
    // either way, however many wait
    let lanes = scene.plan.policy().is_some_and(|policy| policy.share.separate());
    let excused = if scene.live && lanes { agreement.compared() / 100 } else { 0 };
    Look {
        wrong: if beyond > excused { beyond } else { 0 } + u64::from(first > 0),
        because,
        examples: agreement.boundary.examples(allowed).map(|mismatch| mismatch.attempt.seq).collect(),
        refused: agreement.recorded(Met::Shed) + agreement.declared(Met::Shed) > 0,
    }
}
