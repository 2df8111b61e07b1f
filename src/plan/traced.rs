//! A plan that plays a trace: its rows are read here, from what the caller opens, and the load and the sizes follow them.

use std::io::BufRead;
use std::sync::Arc;

use crate::units::{Faults, Moment, show_duration};
use crate::workload::traces::Rows;
use crate::workload::{Load, Mix};

/// Opens a file a plan names, by the name in the plan. The message says why it cannot be read.
pub type Files<'a> = &'a dyn Fn(&str) -> Result<Box<dyn BufRead>, String>;

/// Where there are no files: a plan with a trace is refused.
pub(super) fn no_files(_: &str) -> Result<Box<dyn BufRead>, String> {
    Err("no file can be read here".to_owned())
}

/// A window whose rate is less than this share of the whole trace's is probably not the one that was meant.
const IDLE: f64 = 0.1;

/// Reads the trace of `load`, if it has one, and makes the load and the classes follow it. `None` if something is wrong.
pub(super) fn follow(
    load: &mut Load,
    requests: Option<&mut Mix>,
    files: Files<'_>,
    faults: &Faults,
    warnings: &Faults,
) -> Option<()> {
    let Some(trace) = load.arrivals.trace().cloned() else { return Some(()) };
    let spec = trace.spec();
    let path = "load.arrivals.trace.file";
    let wrong = |message: String| {
        faults.add(spec.place.clone(), path, format!("{}: {message}", spec.file));
        None
    };
    let rows = match files(&spec.file) {
        Ok(mut from) => Rows::read(spec, &mut *from).map_err(|wrong| wrong.to_string()),
        Err(message) => Err(message),
    };
    let rows = match rows {
        Ok(rows) => Arc::new(rows),
        Err(message) => return wrong(message),
    };
    if let Some(requests) = requests {
        requests.follow_trace(&rows);
    }
    match load.play(&trace, rows) {
        Ok(()) => {
            warn(load, warnings);
            Some(())
        }
        Err(at) => wrong(format!(
            "no row lies in phase `{}`: a phase plays the part of the trace that lies where it begins",
            load.phases[at].name
        )),
    }
}

/// Warns of phases in which far fewer rows come than in the whole trace.
fn warn(load: &Load, warnings: &Faults) {
    let Some((trace, rows)) = load.arrivals.trace().and_then(|trace| Some((trace, trace.rows()?))) else {
        return;
    };
    let (spec, survey) = (trace.spec(), rows.survey());
    let per_s = |rows: u64, secs: f64| rows as f64 / secs.max(1e-9);
    let phases = load.phases.iter().enumerate();
    let played = phases.filter_map(|(i, phase)| trace.rows_in(i, phase.lasts)).sum();
    let whole = per_s(survey.in_file, survey.file_lasts.as_secs_f64()) * spec.speed.as_f64();
    let here = per_s(played, load.end().since(Moment::ZERO).as_secs_f64());
    if here < whole * IDLE {
        let message = format!(
            "{}: {here:.3} rows a second are played, in the whole trace of {} come {whole:.3}: is the part that is played meant \
             to be nearly idle?",
            spec.file,
            show_duration(survey.file_lasts),
        );
        warnings.add(spec.place.clone(), "load.arrivals.trace.file", message);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::{Loaded, parse_with};
    use crate::units::{Fault, Rate};

    const PLAN: &str = include_str!("../../plans/shared-link.yaml");
    const CROWD: &str = include_str!("../../fixtures/traces/shared-link.csv");
    const BURSTGPT: &str = include_str!("../../fixtures/traces/burstgpt.csv");

    fn read(file: &'static str, overrides: &[&str]) -> Result<Loaded, Vec<Fault>> {
        let overrides: Vec<String> = overrides.iter().map(|&set| set.to_owned()).collect();
        let open = |_: &str| Ok(Box::new(file.as_bytes()) as Box<dyn BufRead>);
        parse_with(PLAN, None, &overrides, &|_| None, &open)
    }

    fn fault(file: &'static str, overrides: &[&str]) -> String {
        read(file, overrides)
            .unwrap_err()
            .into_iter()
            .map(|f| format!("{}: {}\n", f.path, f.message))
            .collect()
    }

    #[test]
    fn phases_and_classes_follow_the_trace() {
        let loaded = read(CROWD, &[]).unwrap();
        assert_eq!(loaded.warnings, []);
        let (load, class) = (&loaded.plan.load, &loaded.plan.requests.classes()[0]);
        let rows = load.arrivals.trace().unwrap().rows().unwrap().all().len();
        assert!((load.expected() - rows as f64).abs() < 1e-6);
        assert_eq!(load.phases[1].rate, Rate::new(455, Duration::from_secs(60)).unwrap());
        assert!((class.prompt.mean() - 813.12).abs() < 0.01 && class.prompt.most().get() == 4_000);
        assert_eq!((class.output.most().get(), class.bytes.get()), (60, 5_000));
        // a rehearsal thins the trace and keeps each phase's own part
        let halved = ["rehearsal.scale=1/2", "rehearsal.phases={ crowd: 12s }", "provider.quota.burst=4s"];
        let small = read(CROWD, &halved).unwrap().plan.rehearsed();
        let twelve = load.arrivals.trace().unwrap().rows_in(1, Duration::from_secs(12)).unwrap();
        let expected = Rate::new(twelve, Duration::from_secs(24)).unwrap();
        assert_eq!(small.load.phases[1].rate, expected);
    }

    #[test]
    fn a_trace_without_phases_is_one() {
        let loaded = read(
            CROWD,
            &[
                "load={ arrivals: { trace: { file: x, format: csv, \
            columns: { time: at, prompt: asked, output: answered } } } }",
                "rehearsal={}",
            ],
        )
        .unwrap();
        let [phase] = &loaded.plan.load.phases[..] else { panic!("{:?}", loaded.plan.load.phases) };
        assert_eq!(
            (phase.name.as_str(), phase.lasts, phase.event),
            ("trace", Duration::from_secs(208), false)
        );
    }

    /// As in HPMLL/BurstGPT#11 and vllm-project/vllm#13063: the head of a trace is nearly idle, and taking it for the whole misleads.
    #[test]
    fn a_window_that_is_nearly_idle_is_told() {
        let trace = "load={ arrivals: { trace: { file: x, format: burstgpt, WINDOW } } }";
        let with = |window: &str| {
            read(BURSTGPT, &[&trace.replace("WINDOW", window), "rehearsal={}"]).unwrap().warnings
        };
        let head = with("to: 6m");
        assert!(head.len() == 1 && head[0].message.contains("nearly idle"), "{head:?}");
        assert_eq!(with("from: 7m"), []);
        // whether the window says so or the phases do
        let set =
            [&*trace.replace("WINDOW", "from: 0s"), "load.phases=[{ name: head, for: 6m }]", "rehearsal={}"];
        let head = read(BURSTGPT, &set).unwrap().warnings;
        assert!(head.len() == 1 && head[0].message.contains("nearly idle"), "{head:?}");
    }

    #[test]
    fn what_cannot_be_played_is_told_with_its_path() {
        let said = fault(CROWD, &["load.phases.after.for=9s", "load.phases.before.for=10h"]);
        assert!(
            said.starts_with("load.arrivals.trace.file: ../fixtures")
                && said.contains("no row lies in phase"),
            "{said}"
        );
        let said = fault(
            CROWD,
            &["load.arrivals=constant", "load.phases=[{ name: a, rate: 1/s, for: 9s }]", "rehearsal={}"],
        );
        assert!(said.contains("requests.0.prompt.tokens: `trace` takes what a trace says"), "{said}");
        let said = fault(CROWD, &["rehearsal.phases={ after: 1ms }"]);
        assert!(
            said.contains("rehearsal.phases.after: no row of the trace lies in the first 1 ms"),
            "{said}"
        );
        let said = fault(CROWD, &["provider.count=cl100k_base", "requests.0.prompt.bytes=40kB"]);
        assert!(
            said.contains("requests.0.prompt: 49.2 bytes a token, where its way to count needs 2 to 12"),
            "{said}"
        );
        let said = fault("at,asked\n1,2\n", &[]);
        assert!(said.contains("line 1: there is no column `answered`"), "{said}");
        let nothing = parse_with(PLAN, None, &[], &|_| None, &no_files).unwrap_err();
        assert!(nothing[0].message.contains("no file can be read here"), "{nothing:?}");
    }
}
