//! A plan that plays a trace: its rows are read here, from what the caller opens, and the load and the sizes follow them.

use std::io::BufRead;
use std::sync::Arc;

use crate::units::{Faults, Place, show_duration};
use crate::workload::traces::{Rows, Survey};
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
    warn(&spec.file, rows.survey(), &spec.place, warnings);
    if let Some(requests) = requests {
        requests.follow_trace(&rows);
    }
    match load.play(&trace, rows) {
        Ok(()) => Some(()),
        Err(at) => wrong(format!(
            "no row lies in phase `{}`: a phase plays the part of the trace that lies where it begins",
            load.phases[at].name
        )),
    }
}

fn warn(file: &str, survey: &Survey, place: &Place, warnings: &Faults) {
    let Survey { in_file, in_window, file_lasts, window_lasts, .. } = *survey;
    let per_s = |rows: u64, lasts: std::time::Duration| rows as f64 / lasts.as_secs_f64().max(1e-9);
    let (whole, window) = (per_s(in_file, file_lasts), per_s(in_window, window_lasts));
    if window < whole * IDLE {
        let message = format!(
            "{file}: in the window come {:.3} rows a second, in the whole trace of {} {:.3}: is the window meant to be \
             nearly idle?",
            window,
            show_duration(file_lasts),
            whole,
        );
        warnings.add(place.clone(), "load.arrivals.trace.file", message);
    }
}
