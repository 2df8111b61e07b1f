use std::collections::BTreeMap;

use crate::plan::{AbortRule, DEFAULT_OUTSTANDING, Http, Plan, SenderKind, Validity, Wanted};
use crate::provider::{Count, Law};
use crate::units::plain_duration;
use crate::workload::OnRefusal;

/// The keys of `plan` that few plans have, by their paths, in words that differ where they do. Two runs that differ in
/// one of them cannot be compared.
pub(super) fn keys(plan: &Plan) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    load(plan, &mut keys);
    provider(plan, &mut keys);
    transport(plan, &mut keys);
    expected(plan, &mut keys);
    keys
}

fn load(plan: &Plan, keys: &mut BTreeMap<String, String>) {
    let load = &plan.load;
    let arrivals = format!("{:?}", load.arrivals);
    if !arrivals.eq_ignore_ascii_case(load.arrivals.name()) {
        keys.insert("load.arrivals".to_owned(), arrivals);
    }
    for phase in &load.phases {
        if let Some(mix) = &phase.mix {
            let words: Vec<_> = mix.iter().map(|(name, weight)| format!("{name} {weight}")).collect();
            keys.insert(format!("load.phases.{}.mix", phase.name), words.join(", "));
        }
    }
    for class in plan.requests.classes() {
        for (key, size) in [("prompt", &class.prompt), ("output", &class.output)] {
            if size.only().is_none() {
                keys.insert(format!("requests.{}.{key}.tokens", class.name), size.words());
            }
        }
    }
    for class in plan.requests.classes().iter().filter(|class| class.stream) {
        keys.insert(format!("requests.{}.stream", class.name), "true".to_owned());
    }
    for class in plan.requests.classes().iter().filter(|class| class.on_refusal != OnRefusal::GiveUp) {
        keys.insert(format!("requests.{}.on_refusal", class.name), format!("{:?}", class.on_refusal));
    }
    if plan.max_outstanding != DEFAULT_OUTSTANDING {
        keys.insert("max_outstanding".to_owned(), plan.max_outstanding.to_string());
    }
}

fn provider(plan: &Plan, keys: &mut BTreeMap<String, String>) {
    let provider = &plan.provider;
    if provider.count != Count::Words {
        keys.insert("provider.count".to_owned(), format!("{:?}", provider.count).to_lowercase());
    }
    if provider.service.law != Law::Fixed {
        keys.insert("provider.service.law".to_owned(), provider.service.law.words());
    }
    if let Some(strain) = provider.service.strain {
        let text = format!("each beyond {} adds {}", strain.above, strain.each);
        keys.insert("provider.service.strain".to_owned(), text);
    }
    if let Some(text) = provider.quota.unusual() {
        keys.insert("provider.quota".to_owned(), text);
    }
    if let Some(slots) = provider.slots {
        keys.insert("provider.slots".to_owned(), format!("{}, {} may wait", slots.count, slots.queue));
    }
    for (i, fault) in provider.faults.iter().enumerate() {
        keys.insert(format!("provider.faults.{i}"), fault.words());
    }
}

/// How requests travel: a connection for each is another load than streams that share one.
fn transport(plan: &Plan, keys: &mut BTreeMap<String, String>) {
    let transport = &plan.target.request.transport;
    if let Http::Two { connections, streams } = transport.http {
        let most = connections.map_or_else(|| "as needed".to_owned(), |most| most.to_string());
        keys.insert("target.request.http".to_owned(), format!("2: {streams} streams, connections {most}"));
    }
    if transport.sender != SenderKind::default() {
        keys.insert("target.request.sender".to_owned(), transport.sender.name().to_owned());
    }
}

/// By what runs and answers are judged.
fn expected(plan: &Plan, keys: &mut BTreeMap<String, String>) {
    let refusal = &plan.expect.refusal;
    if !refusal.instead.is_empty() {
        let all: Vec<_> = refusal.instead.iter().map(u16::to_string).collect();
        keys.insert("expect.refusal.instead".to_owned(), all.join(", "));
    }
    for (part, wanted) in
        [("marked_by", &refusal.marked_by), ("headers", &refusal.headers), ("body", &refusal.body)]
    {
        let keyed =
            wanted.iter().map(|(name, wanted)| (format!("expect.refusal.{part}.{name}"), told(wanted)));
        keys.extend(keyed);
    }
    let (Validity { lag_p99, unsent, unjoined, achieved }, usual) = (&plan.validity, Validity::default());
    if let Some(limit) = lag_p99 {
        keys.insert("validity.lag_p99".to_owned(), plain_duration(*limit));
    }
    let shares = [
        ("unsent", *unsent, usual.unsent),
        ("unjoined", *unjoined, usual.unjoined),
        ("achieved", *achieved, usual.achieved),
    ];
    for (name, share, _) in shares.into_iter().filter(|(_, share, usual)| share != usual) {
        keys.insert(format!("validity.{name}"), share.to_string());
    }
    for (i, AbortRule { goodput_below, lasting, after }) in plan.abort_when.iter().enumerate() {
        let (lasting, after) = (plain_duration(*lasting), plain_duration(*after));
        let text = format!("goodput below {goodput_below} for {lasting}, after {after}");
        keys.insert(format!("abort_when.{i}"), text);
    }
}

/// What a header or member must be. The text itself may be a secret: of it no more is told than whether it is another.
fn told(wanted: &Wanted) -> String {
    /// The hash FNV-1a, 64 bits.
    const fn hash(text: &[u8]) -> u64 {
        let (mut hash, mut i) = (0xCBF2_9CE4_8422_2325_u64, 0);
        while i < text.len() {
            hash = (hash ^ text[i] as u64).wrapping_mul(0x0100_0000_01B3);
            i += 1;
        }
        hash
    }
    match wanted {
        Wanted::Present => "present".to_owned(),
        Wanted::Exactly(text) => format!("the text with hash {:016x}", hash(text.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing;
    use crate::units::Share;

    #[test]
    fn what_runs_are_judged_by_is_part_of_what_they_must_have_in_common() {
        let mut plan = testing::plan();
        let before = keys(&plan);
        assert!(
            !before.keys().any(|key| key.starts_with("validity") || key == "max_outstanding"),
            "{before:?}"
        );
        plan.expect.refusal.headers.insert("x-a".into(), Wanted::Exactly("secret".into()));
        plan.expect.refusal.body.insert("/type".into(), Wanted::Present);
        plan.validity.unsent = Share::new(0.5).unwrap();
        plan.max_outstanding = 7;
        let after = keys(&plan);
        assert_eq!((after["max_outstanding"].as_str(), after["validity.unsent"].as_str()), ("7", "50 %"));
        assert_eq!(after["expect.refusal.body./type"], "present");
        let told = after["expect.refusal.headers.x-a"].clone();
        assert!(told.starts_with("the text with hash ") && !told.contains("secret"), "{told}");
        plan.expect.refusal.headers.insert("x-a".into(), Wanted::Exactly("secreu".into()));
        assert_ne!(keys(&plan)["expect.refusal.headers.x-a"], told);
    }
}
