//! Entitlement and scarcity are told apart, and each refusal has its own cause: a tenant over its own limit is throttled,
//! whoever finds no room is shed.
//!
//! From outside: a refusal whose status is not that of the reason it names; a throttle of a tenant that has no limit. Where
//! verdicts are compared: a throttle of somebody whom the policy lets in or sheds, and the reverse, further from the other
//! verdict than 1 + λ·ε requests (of the tenant's own limit).

use super::on_the_way;
use super::{Finding, Kind, Scene, Standard, words};
use crate::admission::{Met, Tenant};
use crate::measure::Trouble;
use crate::workload::Class;

pub(super) const KIND: Kind = Kind {
    id: "limits.separate",
    about: "a tenant over its own limit is throttled, whoever finds no room is shed, and nobody else",
    limit: Standard::Nothing,
    unit: "requests",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let draft =
        KIND.draft("each refusal has its own cause: throttled by a tenant's limit, shed for want of room");
    let Some(policy) = scene.plan.policy() else {
        return draft.not_applicable("what the gateway decides by is not declared");
    };
    let (measures, classes) = (scene.measures, scene.plan.requests.classes());
    // as the gateway has it: who is not declared is the first
    let of = |class: &Class| {
        policy.tenants.iter().find(|tenant| tenant.name == class.tenant).or_else(|| policy.tenants.first())
    };
    let limited = |class: &Class| of(class).is_some_and(has_limit);
    let refused: u64 = measures.classes.iter().map(|class| class.shed + class.throttled).sum();
    let compared = scene.agreement.filter(|agreement| agreement.compared() > 0);
    if refused == 0 && compared.is_none() {
        return match scene.forecast.overload() {
            true => draft.no_data("nobody was refused, though more was offered than can be served"),
            false if measures.offered == 0 && classes.iter().any(limited) => draft.no_data("nobody was met"),
            false => draft.not_applicable("nobody was refused, and no overload was forecast"),
        };
    }
    let pairs = classes.iter().zip(&measures.classes);
    let unlimited: u64 = pairs.filter(|(class, _)| !limited(class)).map(|(_, counts)| counts.throttled).sum();
    let allowed = 1.0 + on_the_way::requests(scene);
    let told = compared.map_or(0, |agreement| agreement.limits.beyond(allowed));
    let contradictory = measures.refusals.contradictory;
    let wrong = contradictory.max(unlimited).max(told);
    let throttled: u64 = measures.classes.iter().map(|class| class.throttled).sum();
    let mut because = format!(
        "{} throttled and {} shed",
        words::thousands(throttled),
        words::thousands(refused - throttled)
    );
    if measures.refusals.reasoned > 0 {
        because += &format!(
            "; {} of {} that name a reason have the status of the other",
            words::thousands(contradictory),
            words::thousands(measures.refusals.reasoned)
        );
    }
    if throttled > 0 {
        because += &format!("; {} of those throttled have no limit", words::thousands(unlimited));
    }
    if let Some(agreement) = compared {
        let throttled_only =
            agreement.recorded(Met::Throttled) - agreement.count(Met::Throttled, Met::Throttled);
        let declared_only =
            agreement.declared(Met::Throttled) - agreement.count(Met::Throttled, Met::Throttled);
        because += &format!(
            "; beside the policy's verdicts: {} throttled that it does not throttle, {} not throttled that it throttles, {} of \
             them by more than {} requests",
            words::thousands(throttled_only),
            words::thousands(declared_only),
            words::thousands(told),
            words::number(allowed),
        );
    }
    let mut examples = measures.examples.of(Trouble::Contradictory);
    if unlimited > 0 {
        examples.extend(measures.examples.of(Trouble::Throttled));
    }
    examples.extend(compared.iter().flat_map(|it| it.limits.examples(allowed)).map(|it| it.attempt.seq));
    examples.sort_unstable();
    examples.dedup();
    examples.truncate(20);
    draft.judged(wrong == 0, wrong as f64, 0.0, because).showing(examples)
}

const fn has_limit(tenant: &Tenant) -> bool {
    tenant.tokens.is_some() || tenant.requests.is_some()
}
