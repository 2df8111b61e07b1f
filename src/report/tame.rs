use std::io;

use serde_json::Value;

use super::{Report, plain};

/// The report with every text in it made [`plain`]: none is forgotten, whoever sent it and whatever key it has. For
/// forms that are not JSON; JSON escapes for itself.
///
/// # Errors
///
/// If a number in it is none, which [`Report::of`] and a file of JSON never give.
pub(super) fn tame(report: &Report) -> io::Result<Report> {
    let mut bare = report.clone();
    // there are many of these, and no text in them
    let windows = std::mem::take(&mut bare.windows);
    let tamed = serde_json::to_value(&bare).map(walk).and_then(serde_json::from_value::<Report>);
    let mut tamed = tamed?;
    tamed.windows = windows;
    tamed.run.path = report.run.path.as_deref().map(|path| plain(path).into_owned());
    Ok(tamed)
}

fn walk(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(&text).into_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(walk).collect()),
        Value::Object(map) => Value::Object(
            map.into_iter().map(|(key, value)| (plain(&key).into_owned(), walk(value))).collect(),
        ),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}
