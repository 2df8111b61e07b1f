//! The rules of the house as a test: which layer may use which, how long files may be, which words may not appear.

use std::fs;
use std::path::{Path, PathBuf};

/// What each module may name behind `crate::`, itself apart. `*` is everything.
const LAYERS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("workload", &["units"]),
    ("admission", &["units"]),
    ("provider", &["units"]),
    ("plan", &["units", "workload", "admission", "provider"]),
    ("observe", &["units", "workload", "admission", "provider", "plan"]),
    ("measure", &["units", "workload", "admission", "provider", "plan", "observe"]),
    ("forecast", &["units", "workload", "admission", "provider", "plan", "observe", "measure"]),
    ("simulate", &["units", "workload", "admission", "provider", "plan", "observe", "measure"]),
    (
        "check",
        &["units", "workload", "admission", "provider", "plan", "observe", "measure", "forecast", "simulate"],
    ),
    (
        "diff",
        &[
            "units",
            "workload",
            "admission",
            "provider",
            "plan",
            "observe",
            "measure",
            "forecast",
            "simulate",
            "check",
        ],
    ),
    (
        "report",
        &[
            "units",
            "workload",
            "admission",
            "provider",
            "plan",
            "observe",
            "measure",
            "forecast",
            "simulate",
            "check",
            "diff",
        ],
    ),
    ("gateway", &["units", "admission", "provider"]),
    ("live", &["units", "workload", "admission", "provider", "plan", "observe", "measure", "gateway"]),
    ("cli", &["*"]),
];

/// Crates that only the shells may name.
const SHELL_CRATES: &[&str] =
    &["tokio", "reqwest", "wiremock", "hyper", "hyper_util", "rustix", "clap", "indicatif"];

/// The longest a source file may be.
const MOST_LINES: usize = 500;

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("the source tree is there") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// Every `crate::name` in a line of code, comments left out.
fn named(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or("");
    code.match_indices("crate::")
        .map(|(at, word)| {
            let rest = &code[at + word.len()..];
            &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())]
        })
        .collect()
}

fn faults_of(path: &Path, text: &str) -> Vec<String> {
    let layer = path.components().nth(1).and_then(|c| c.as_os_str().to_str()).unwrap_or_default();
    let layer = layer.trim_end_matches(".rs");
    let Some((_, may)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
        return if matches!(layer, "lib" | "main") {
            Vec::new()
        } else {
            vec![format!("{}: no such layer", path.display())]
        };
    };
    let shell = matches!(layer, "gateway" | "live" | "cli");
    let mut faults = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let place = format!("{}:{number}", path.display());
        for name in named(line).into_iter().filter(|name| LAYERS.iter().any(|(layer, _)| layer == name)) {
            if name != layer && !may.contains(&name) && !may.contains(&"*") {
                faults.push(format!("{place}: `{layer}` may not use `{name}`"));
            }
        }
        let code = line.split("//").next().unwrap_or("");
        for krate in SHELL_CRATES.iter().filter(|_| !shell) {
            if code.contains(&format!("{krate}::")) {
                faults.push(format!(
                    "{place}: `{krate}` is for the shells; `{layer}` takes `now` as an argument"
                ));
            }
        }
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        faults.push(format!("{}: {lines} lines; {MOST_LINES} is the most", path.display()));
    }
    faults
}

#[test]
fn arrows_never_go_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 30, "the source tree was not found");
    let mut faults = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a source file can be read");
        faults.extend(faults_of(file.strip_prefix(root).expect("it lies in the crate"), &text));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_rule_itself_can_fail() {
    let path = Path::new("src/admission/x.rs");
    let faults = faults_of(
        path,
        "use crate::units::Moment;\nuse crate::plan::Plan;\nuse tokio::time;\n// crate::live",
    );
    assert_eq!(
        faults,
        [
            "src/admission/x.rs:2: `admission` may not use `plan`",
            "src/admission/x.rs:3: `tokio` is for the shells; `admission` takes `now` as an argument",
        ]
    );
}
