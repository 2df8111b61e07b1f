use super::*;
use crate::units::Node;
use crate::units::{Faults, Rate, Reader};
use crate::workload::Phase;
use crate::workload::testing::{list, map, read, text};
use crate::workload::traces::Rows;

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

/// A cycle's number of callers is seldom a whole number that a float holds exactly.
#[test]
fn no_step_of_an_oscillating_rate_is_skipped_at_any_rate() {
    for per_min in [250, 500, 1_000, 2_000, 4_000, 7_777] {
        let load = load(text("oscillating"), &[(&format!("{per_min}/min"), "20m")]);
        let dues = dues(&load);
        assert!((dues.len() as i64 - per_min * 20).abs() <= 1, "{} at {per_min}/min", dues.len());
        // the slowest step is 0.85 of the rate
        let longest = 60.0 / (0.85 * per_min as f64) + 1e-6;
        for pair in dues.windows(2) {
            let gap = pair[1] - pair[0];
            assert!(gap > 0.0 && gap <= longest, "{gap} s at {} s of {per_min}/min", pair[0]);
        }
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

/// A load that plays the rows `(seconds, prompt, output)` with these settings.
fn traced(rows: &[(f64, u32, u32)], more: &[(&str, &str)], phases: &[(&str, &str)]) -> Load {
    let file: String =
        rows.iter().map(|(at, prompt, output)| format!("{at:.3},{prompt},{output}\n")).collect();
    let columns = [("time", "at"), ("prompt", "in"), ("output", "out")].map(|(key, name)| (key, text(name)));
    let mut spec = vec![("file", text("x")), ("format", text("csv")), ("columns", map(columns.to_vec()))];
    spec.extend(more.iter().map(|(key, value)| (*key, text(value))));
    let phases = phases.iter().map(|(name, lasts)| map(vec![("name", text(name)), ("for", text(lasts))]));
    let node = map(vec![("arrivals", map(vec![("trace", map(spec))])), ("phases", list(phases.collect()))]);
    let mut load: Load = read(&node);
    let trace = load.arrivals.trace().unwrap().clone();
    let rows = Rows::read(trace.spec(), &mut format!("at,in,out\n{file}").as_bytes()).unwrap();
    load.play(&trace, Arc::new(rows)).unwrap();
    load
}

/// Two rows a second for 60 s, their prompts numbered.
fn steady() -> Vec<(f64, u32, u32)> {
    (0..120).map(|i| (f64::from(i) / 2.0, i + 1, 4)).collect()
}

fn arrivals(load: &Load) -> Vec<Arrival> {
    let class = map(vec![
        ("name", text("ask")),
        ("prompt", map(vec![("tokens", text("trace"))])),
        ("output", map(vec![("tokens", text("trace"))])),
        ("max_tokens", text("3")),
        ("deadline", text("9s")),
    ]);
    Schedule::new(load, &read(&list(vec![class]))).collect()
}

#[test]
fn a_trace_gives_its_times_its_sizes_and_the_rates_of_its_phases() {
    let load = traced(&steady(), &[], &[("a", "10s"), ("b", "20s"), ("c", "30s")]);
    assert!(load.phases.iter().all(|phase| phase.rate == Rate::per_second(2).unwrap()));
    let all = arrivals(&load);
    assert_eq!(all.len(), 120);
    for (i, arrival) in all.iter().enumerate() {
        assert_eq!(arrival.due, Moment::from_millis(i as u64 * 500));
        assert_eq!((arrival.seq, arrival.sizes.prompt.get()), (i as u64, i as u64 + 1));
        assert_eq!(arrival.sizes.output.get(), 3, "an answer is cut at what it may have");
        assert_eq!(arrival.sizes.hold().get(), i as u64 + 4);
    }
}

#[test]
fn a_shortened_phase_plays_the_beginning_of_its_own_part() {
    let mut load = traced(&steady(), &[], &[("a", "10s"), ("b", "20s"), ("c", "30s")]);
    load.phases.iter_mut().for_each(|phase| phase.lasts = Duration::from_secs(2));
    load.follow_trace().unwrap();
    let prompts: Vec<u64> = arrivals(&load).iter().map(|arrival| arrival.sizes.prompt.get()).collect();
    assert_eq!(prompts, [1, 2, 3, 4, 21, 22, 23, 24, 61, 62, 63, 64]);
    assert!((load.expected() - 12.0).abs() < 1e-9);
}

#[test]
fn without_phases_a_trace_is_one_and_speed_raises_its_rate() {
    let load = traced(&steady(), &[("speed", "2"), ("from", "10s")], &[("all", "25s")]);
    assert_eq!(load.phases[0].rate, Rate::per_second(4).unwrap());
    assert_eq!(arrivals(&load).last().unwrap().due, Moment::from_millis(24_750));
    let node = map(vec![("name", text("x")), ("for", text("1s"))]);
    assert!(Phase::read(&Reader::root(&node, &Faults::default()), true).is_some());
    assert!(Phase::read(&Reader::root(&node, &Faults::default()), false).is_none(), "others need a rate");
}

#[test]
fn a_rate_factor_repeats_rows_evenly_or_leaves_some_out_by_the_seed() {
    let tripled = traced(&steady(), &[("rate", "3")], &[("all", "60s")]);
    let all = arrivals(&tripled);
    assert_eq!(all.len(), 360);
    assert_eq!(all[4].due.as_nanos(), 500_000_000 + 166_666_666);
    assert_eq!(all[4].sizes.prompt.get(), 2, "copies are as large as their row");
    assert!(all.is_sorted_by_key(|arrival| arrival.due));
    assert!((tripled.expected() - 360.0).abs() < 1e-6);

    let third = traced(&steady(), &[("rate", "1/3")], &[("all", "60s")]);
    let kept = arrivals(&third);
    // 120 rows, each kept with 1/3: 40 ± 5.2
    assert!((20..=60).contains(&kept.len()), "{}", kept.len());
    assert!((third.expected() - 40.0).abs() < 1e-6);
    assert_eq!(kept, arrivals(&third), "the same seed keeps the same");
    let other = Load { seed: 8, ..third.clone() };
    assert_ne!(kept, arrivals(&other));
    let scaled = traced(&steady(), &[], &[("all", "60s")]).scaled(crate::units::Ratio::new(1, 3).unwrap());
    assert_eq!(kept, arrivals(&scaled), "a rehearsal's scale is a rate factor");
}

/// Streams are split by purpose: a changed size moves no arrival, and no size of the other kind.
#[test]
fn a_changed_size_distribution_moves_nothing_else() {
    let class = |prompt: Node| {
        let uniform = map(vec![("uniform", map(vec![("from", text("1")), ("to", text("400"))]))]);
        map(vec![
            ("name", text("ask")),
            ("prompt", map(vec![("tokens", prompt)])),
            ("output", map(vec![("tokens", uniform)])),
            ("max_tokens", text("400")),
            ("deadline", text("9s")),
        ])
    };
    let lognormal = map(vec![("lognormal", map(vec![("median", text("600")), ("sigma", text("0.8"))]))]);
    let load = load(text("poisson"), &[("50/s", "100s")]);
    let of = |prompt| Schedule::new(&load, &read(&list(vec![class(prompt)]))).collect::<Vec<_>>();
    let (fixed, varied) = (of(text("800")), of(lognormal));
    assert_eq!(fixed.len(), varied.len());
    let mut different = 0;
    for (a, b) in fixed.iter().zip(&varied) {
        assert_eq!((a.due, a.class, a.sizes.output), (b.due, b.class, b.sizes.output));
        different += u32::from(a.sizes.prompt != b.sizes.prompt);
    }
    assert!(different > 4_000, "{different}");
}

#[test]
fn a_heavier_mix_from_an_instant_on_changes_who_comes_and_not_when() {
    let usual = mix(&[("small", "3", "1"), ("large", "1", "1")]);
    let plain = load(text("poisson"), &[("100/s", "20s"), ("100/s", "20s")]);
    let mut shifted = plain.clone();
    shifted.phases[1].mix = Some([("large".to_owned(), 9), ("small".to_owned(), 1)].into());
    let (before, after): (Vec<_>, Vec<_>) =
        (Schedule::new(&plain, &usual).collect(), Schedule::new(&shifted, &usual).collect());
    let dues = |arrivals: &[Arrival]| arrivals.iter().map(|a| a.due).collect::<Vec<_>>();
    assert_eq!(dues(&before), dues(&after));
    let turn = Moment::from_secs(20);
    let large = |from: Moment, to: Moment| {
        let there: Vec<_> = after.iter().filter(|a| from <= a.due && a.due < to).collect();
        there.iter().filter(|a| a.class == ClassId(1)).count() as f64 / there.len() as f64
    };
    // 2,000 callers each: a standard deviation is under one in a hundred
    assert!((large(Moment::ZERO, turn) - 0.25).abs() < 0.04);
    assert!((large(turn, Moment::NEVER) - 0.9).abs() < 0.03);
    shifted.phases[1].event = true;
    let event = shifted.mix_of_event(&usual);
    assert!((event.mean(|class| f64::from(u8::from(class.name == "large"))) - 0.9).abs() < 1e-9);
    let whole = load(text("constant"), &[("1/s", "1s")]).mix_of_event(&usual);
    assert_eq!(whole, usual);
    // over both phases the mean of both
    shifted.phases[1].event = false;
    let both = shifted.mix_of_event(&usual);
    assert!((both.mean(|class| f64::from(u8::from(class.name == "large"))) - 0.575).abs() < 1e-5);
}
