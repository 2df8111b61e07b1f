//! A run of a plan of `plans/real`, and what its report says.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tenfold");

/// A run that was too late with its requests says so, and is made again at most so often.
const TRIES: u32 = 3;

/// Where a program of this name is found, as a shell would find it.
fn installed(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    // Debian keeps servers where only root looks
    env::split_paths(&folders)
        .chain(["/usr/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|p| p.is_file())
}

/// A report, and how the command ended.
pub(crate) struct Rehearsed {
    pub(crate) report: Value,
    pub(crate) code: i32,
}

fn plan(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/real").join(format!("{name}.yaml"))
}

fn run(name: &str, sets: &[String]) -> Output {
    let reports = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(plan(name)).args(["--quiet", "--beyond-limits", "--format", "json", "--out"]);
    command.arg(reports.path()).args(sets.iter().flat_map(|set| ["--set", set.as_str()]));
    let path = env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin")).output().unwrap()
}

/// Rehearses the plan `name` where `program` is installed; `None`, with a word on stderr, where it is not.
pub(crate) fn rehearse(name: &str, program: &str, sets: &[String]) -> Option<Rehearsed> {
    if installed(program).is_none() {
        // written past the capture of test output, so that a skipped test is seen to be one
        let _ = std::io::stderr().write_all(format!("skipped: {program} is not installed\n").as_bytes());
        return None;
    }
    for tried in 1.. {
        let output = run(name, sets);
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
        if report["verdict"] != "invalid" {
            return Some(Rehearsed { report, code: output.status.code().unwrap() });
        }
        assert!(tried < TRIES, "this machine is too slow: {}", report["validity"]);
    }
    None
}

impl Rehearsed {
    /// How many arrivals ended like this.
    pub(crate) fn total(&self, outcome: &str) -> u64 {
        self.report["totals"][outcome].as_u64().unwrap()
    }

    fn check(&self, id: &str) -> &Value {
        let checks = self.report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap()
    }

    /// The verdict of a check and the sentence that goes with it.
    pub(crate) fn found(&self, id: &str) -> (&str, &str) {
        let check = self.check(id);
        (check["verdict"].as_str().unwrap(), check["because"].as_str().unwrap())
    }

    /// The statuses of the refusals that were kept.
    pub(crate) fn statuses(&self) -> Vec<u64> {
        let refusals = self.report["refusals"].as_array().unwrap().iter();
        refusals.map(|raw| raw["status"].as_u64().unwrap()).collect()
    }
}
