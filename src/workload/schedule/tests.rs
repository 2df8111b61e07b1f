use super::*;
use crate::units::{Faults, Key, Node, Place, Read, Reader, Value};

const PLACE: Place = Place::File { line: 1, column: 1 };

fn map(entries: Vec<(&str, Node)>) -> Node {
    let key = |name: &str| Key { text: name.into(), place: PLACE };
    Node {
        place: PLACE,
        value: Value::Map(entries.into_iter().map(|(name, node)| (key(name), node)).collect()),
    }
}

fn text(text: &str) -> Node {
    Node::text(text, PLACE)
}

fn list(items: Vec<Node>) -> Node {
    Node { place: PLACE, value: Value::List(items) }
}

fn read<T: Read>(node: &Node) -> T {
    let faults = Faults::default();
    let value = T::read(&Reader::root(node, &faults));
    let faults = faults.into_sorted();
    value.unwrap_or_else(|| panic!("{faults:?}"))
}

fn load(arrivals: Node, phases: &[(&str, &str)]) -> Load {
    let phases = phases.iter().enumerate().map(|(i, (rate, lasts))| {
        map(vec![("name", text(&format!("p{i}"))), ("rate", text(rate)), ("for", text(lasts))])
    });
    read(&map(vec![("arrivals", arrivals), ("phases", list(phases.collect()))]))
}

fn mix(classes: &[(&str, &str, &str)]) -> Mix {
    let class = |(name, weight, tier): &(&str, &str, &str)| {
        map(vec![
            ("name", text(name)),
            ("weight", text(weight)),
            ("tier", text(tier)),
            ("prompt", map(vec![("tokens", text("1"))])),
            ("max_tokens", text("1")),
            ("deadline", text("9s")),
        ])
    };
    read(&list(classes.iter().map(class).collect()))
}

fn dues(load: &Load) -> Vec<f64> {
    Schedule::new(load, &mix(&[("ask", "1", "1")])).map(|arrival| arrival.due.as_secs_f64()).collect()
}

/// As in gatling/gatling#3504: a rate of 0.4/s is 0.4/s: 60 callers while it rises to that from nothing in 300 s, 720 in the 1,800 s after.
#[test]
fn a_slow_ramp_and_its_plateau_are_exact() {
    let ramp = map(vec![("ramp", map(vec![("start", text("0/s"))]))]);
    let load = load(ramp, &[("0.4/s", "300s"), ("0.4/s", "1800s")]);
    let dues = dues(&load);
    assert_eq!(dues.len(), 780);
    assert!((load.expected() - 780.0).abs() < 1e-9);
    assert_eq!(load.end(), Moment::from_secs(2_100));
    assert_eq!(dues.iter().filter(|due| **due < 300.0).count(), 60);
    assert!(dues[60..].windows(2).all(|pair| (pair[1] - pair[0] - 2.5).abs() < 1e-9));
    assert!(dues.is_sorted());
    // N(t) = 0.4 t² / 600: a quarter of the 60 have come at half time
    assert_eq!(dues.iter().filter(|due| **due < 150.0).count(), 15);
}

/// As in gatling/gatling#2940: ten callers over 300 s come every 30 s, over 30 s every 3 s, the first at once.
#[test]
fn below_one_a_second_the_duration_is_kept() {
    for (rate, lasts, gap) in [("2/min", "300s", 30.0), ("20/min", "30s", 3.0)] {
        let dues = dues(&load(text("constant"), &[(rate, lasts)]));
        let expected: Vec<f64> = (0..10).map(|k| f64::from(k) * gap).collect();
        assert_eq!(dues, expected);
    }
}

/// As in grafana/k6-docs#1565: the total of a schedule of ramps is the sum of its trapezoids: 300 + 900 + 2,400 + 660.
#[test]
fn the_total_is_the_area_under_the_rate() {
    let ramp = map(vec![("ramp", map(vec![("start", text("300/min"))]))]);
    let load = load(ramp, &[("300/min", "1m"), ("600/min", "2m"), ("600/min", "4m"), ("60/min", "2m")]);
    assert!((load.expected() - 4_260.0).abs() < 1e-6);
    let dues = dues(&load);
    assert_eq!(dues.len(), 4_260);
    let count = |from: f64, to: f64| dues.iter().filter(|due| (from..to).contains(*due)).count();
    assert_eq!(
        [count(0.0, 60.0), count(60.0, 180.0), count(180.0, 420.0), count(420.0, 540.0)],
        [300, 900, 2_400, 660]
    );
    assert!(dues.is_sorted());
}

#[test]
fn an_oscillating_rate_gives_each_step_its_share() {
    let factors = list(["0.5", "0", "2.5"].map(text).to_vec());
    let swing = map(vec![("oscillating", map(vec![("every", text("2s")), ("factors", factors)]))]);
    let load = load(swing, &[("10/s", "60s")]);
    let dues = dues(&load);
    assert_eq!(dues.len(), 600);
    assert!((load.expected() - 600.0).abs() < 1e-6);
    for (at, callers) in [(0.0, 10), (2.0, 0), (4.0, 50), (6.0, 10), (54.0, 10), (58.0, 50)] {
        assert_eq!(dues.iter().filter(|due| (at..at + 2.0).contains(*due)).count(), callers, "from {at}");
    }
}

#[test]
fn callers_of_a_round_come_at_once_by_tier_and_fractions_are_carried() {
    let factors = map(vec![("slow", list(["0", "2"].map(text).to_vec()))]);
    let rounds = map(vec![("rounds", map(vec![("every", text("1s")), ("factors", factors)]))]);
    let load = load(rounds, &[("4/s", "3s"), ("8/s", "1s")]);
    // 1.5 and 2.5 a round
    let mix = mix(&[("slow", "3", "2"), ("fast", "5", "1")]);
    let all: Vec<_> = Schedule::new(&load, &mix)
        .map(|arrival| (arrival.due.as_nanos() / 1_000_000, arrival.class.0))
        .collect();
    let round = |ms, fast, slow| [vec![(ms, 1u16); fast], vec![(ms, 0); slow]].concat();
    let expected = [round(500, 2, 0), round(1_500, 3, 3), round(2_500, 2, 0), round(3_500, 5, 6)].concat();
    assert_eq!(all, expected);
}
