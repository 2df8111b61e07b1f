//! A gate that works in rounds: what its windows, ceilings and tiers do.

use super::Admission;
use crate::admission::testing::node;
use crate::admission::{Ask, Config, Effect, Event, Id, TenantId};
use crate::units::{Bytes, Faults, Moment, Reader, Tokens};

fn config(text: &str) -> Config {
    let node = node(text);
    let faults = Faults::default();
    let read = Config::read(&mut Reader::root(&node, &faults).map().unwrap(), None);
    let faults = faults.into_sorted();
    read.unwrap_or_else(|| panic!("{faults:?}"))
}

struct Gate {
    machine: Admission,
    next: u64,
}

impl Gate {
    fn new(keys: &str) -> Self {
        let text = format!(
            "{{ service: {{ start: 1ms }}, recheck: false, retry_after: none, budgets: {{ tokens_per_minute: 600, window: {{ round: 1s }} }}, {keys} }}"
        );
        Self { machine: Admission::new(&config(&text), Moment::ZERO), next: 0 }
    }

    fn at(&mut self, ms: u64, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.machine.handle(Moment::from_millis(ms), event, &mut effects);
        effects
    }

    fn ask(&mut self, ms: u64, tokens: u64, tier: u8) -> Vec<Effect> {
        let id = Id(self.next);
        self.next += 1;
        let ask = Ask {
            id,
            caller: id.0,
            prompt: Tokens::new(tokens),
            max_output: Tokens::ZERO,
            bytes: Bytes::new(10),
            deadline: Moment::from_secs(1_000),
            tenant: TenantId(0),
            tier,
            operation: None,
        };
        self.at(ms, Event::Arrive(ask))
    }
}

fn forwarded(effects: &[Effect]) -> Vec<u64> {
    let id = |effect: &Effect| match effect {
        Effect::Forward { id, .. } => Some(id.0),
        _ => None,
    };
    effects.iter().filter_map(id).collect()
}

#[test]
fn a_round_is_served_at_its_end_in_order_up_to_the_first_that_does_not_fit() {
    let mut gate = Gate::new("bound: none");
    for tokens in [4, 5, 3, 1] {
        assert_eq!(gate.ask(500, tokens, 1), []);
    }
    assert_eq!(gate.machine.next_wake(), Some(Moment::from_secs(1)));
    // ten a round: the third does not fit, and the fourth stands behind it
    assert_eq!(forwarded(&gate.at(1_000, Event::Wake)), [0, 1]);
    assert_eq!(gate.machine.next_wake(), Some(Moment::from_secs(2)));
    assert_eq!(gate.ask(1_000, 1, 1), [], "who comes when the round has ended waits for the next");
    assert_eq!(forwarded(&gate.at(2_000, Event::Wake)), [2, 3, 4], "what the last round left is lost");
}

#[test]
fn what_passes_a_ceiling_counts_even_if_it_is_then_shed_where_the_tenant_says_so() {
    let outcome = |counts: &str| {
        let tenants = format!("[{{ name: t, requests: 3/s, window: {{ fixed: 1s }}, counts: {counts} }}]");
        let mut gate = Gate::new(&format!("bound: {{ tokens: 2 }}, tenants: {tenants}"));
        let mut told = String::new();
        for _ in 0..5 {
            told.push(match gate.ask(500, 1, 1)[..] {
                [] => 'a',
                [Effect::Shed { .. }] => 's',
                [Effect::Throttle { .. }] => 't',
                ref other => panic!("{other:?}"),
            });
        }
        told
    };
    assert_eq!(outcome("passed"), "aastt");
    assert_eq!(outcome("admitted"), "aasss");
}

#[test]
fn in_one_line_the_less_important_give_way_too_the_newest_first() {
    let mut gate = Gate::new("bound: { tokens: 6 }, tiers: { strict: false, evict: true }");
    for (tokens, tier) in [(3, 3), (1, 2), (2, 3)] {
        assert_eq!(gate.ask(500, tokens, tier), []);
    }
    let effects = gate.ask(500, 1, 2);
    assert!(matches!(effects[..], [Effect::Expire { id: Id(2), .. }]), "{effects:?}");
    assert!(matches!(gate.ask(500, 2, 3)[..], [Effect::Shed { .. }]), "its own tier does not give way");
    assert_eq!(forwarded(&gate.at(1_000, Event::Wake)), [0, 1, 3], "first come, first served all the same");
}
