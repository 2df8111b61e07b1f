//! Tiers keep their order: nobody is turned away while somebody less important waits who could have given way.
//!
//! From outside: at the instant a request is shed (or dropped though there was time to answer it) one of a less important
//! tier stood in the gateway that had come before it and is still there after it. That one stood in its way only if there
//! was room without it: what stood there of the request's own tier and of more important ones, itself included, lies
//! within the bound its class may use. A tier that fills the bound by itself is refused rightly, whoever waits behind it.
//!
//! Where verdicts are compared, a shed counts for which the policy would have made others give way.

use super::on_the_way::{self, Side};
use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::untold;

pub(super) const KIND: Kind = Kind {
    id: "tiers.order",
    about: "nobody is turned away while somebody less important waits who could give way",
    limit: Standard::Nothing,
    unit: "requests",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let draft = KIND.draft("no refusal of a tier while a less important one waits that could give way");
    let (measures, classes) = (scene.measures, scene.plan.requests.classes());
    let Some(inversions) = &measures.inversions else {
        return draft.not_applicable("all requests are of one tier");
    };
    let Some(policy) = scene.plan.policy() else {
        return draft.not_applicable("what the gateway decides by is not declared");
    };
    if !policy.tiers.strict || !policy.tiers.evict {
        return draft.not_applicable("tiers are not strict, or nobody gives way");
    }
    let silent = untold(scene.plan);
    let compared = scene.agreement.filter(|agreement| agreement.compared() > 0);
    if let (Some(why), None) = (silent, compared) {
        return draft.not_applicable(why);
    }
    if measures.attempts.total() == 0 {
        return draft.no_data("nobody was met");
    }
    let part = 1.0 - scene.forecast.basis.reserve;
    let slack = on_the_way::tokens(scene);
    let (mut seen, mut examples) = (0, Vec::new());
    for (at, class) in classes.iter().enumerate().filter(|_| silent.is_none()) {
        let Some(room) = on_the_way::room(scene, class, part, Side::Least) else { continue };
        let (count, shown) = inversions.with_room(at, room - slack);
        seen += count;
        examples.extend(shown);
    }
    let allowed = 1.0 + on_the_way::requests(scene);
    let told = compared.map(|agreement| agreement.tiers.beyond(allowed));
    examples.extend(compared.iter().flat_map(|it| it.tiers.examples(allowed)).map(|it| it.attempt.seq));
    examples.sort_unstable();
    examples.dedup();
    examples.truncate(20);
    let wrong = seen.max(told.unwrap_or(0));
    let refused: u64 = measures.classes.iter().map(|class| class.shed).sum();
    if wrong == 0 && refused == 0 {
        return scene.nobody_refused(draft);
    }
    let by_tier: Vec<String> = tiers(scene)
        .iter()
        .map(|(tier, shed)| format!("{} of tier {tier}", words::thousands(*shed)))
        .collect();
    let mut because = format!("{} shed", by_tier.join(", "));
    if silent.is_none() {
        because += &format!("; {} had room but for less important ones that stayed", words::thousands(seen));
    }
    if let Some(told) = told {
        because += &format!("; by the policy others would have given way to {}", words::thousands(told));
    }
    draft.judged(wrong == 0, wrong as f64, 0.0, because).showing(examples)
}

/// How many of each tier were shed, the most important first.
fn tiers(scene: &Scene<'_>) -> std::collections::BTreeMap<u8, u64> {
    let mut tiers = std::collections::BTreeMap::new();
    for (class, counts) in scene.plan.requests.classes().iter().zip(&scene.measures.classes) {
        *tiers.entry(class.tier).or_default() += counts.shed;
    }
    tiers
}
