//! The report as JUnit XML, for the test page of a CI system: one case a check, a suite for each group of them.
//!
//! A check without data is skipped and says why. Of a run that is invalid or was interrupted no check is judged: each
//! is an error, and so is the case `run.valid`, which stands for the run itself and is there in every file.

use std::io;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use quick_junit::{NonSuccessKind, Property, Report as Page, TestCase, TestCaseStatus, TestSuite};

use super::tame::tame;
use super::{CheckPart, Format, Report, Style, sentences};
use crate::check::{RunVerdict, Verdict};

pub(super) const FORMAT: Format =
    Format { name: "junit", about: "JUnit XML, for the test page of a CI system", render };

fn render(report: &Report, _style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let report = &tame(report)?;
    let mut page = Page::new(format!("tenfold {}", report.plan.name));
    let started = started(report);
    let took = Duration::try_from_secs_f64(report.run.took_s).unwrap_or_default();
    page.set_time(took);
    let mut suites = vec![suite(report, "run", started)];
    suites[0].add_test_case(run(report, took));
    suites[0].set_time(took);
    for (n, check) in report.checks.iter().enumerate() {
        let group = group(&check.id);
        let name = name(report, group, started);
        if !suites.iter().any(|suite| suite.name.as_str() == name) {
            suites.push(suite(report, group, started));
        }
        let found = suites.iter_mut().find(|suite| suite.name.as_str() == name);
        found.expect("it was added just now").add_test_case(case(report, n, check));
    }
    page.add_test_suites(suites);
    let text = page.to_string().map_err(io::Error::other)?;
    out.write_all(as_jenkins_reads(&text).as_bytes())
}

/// The text without the one attribute that the schema of Jenkins' xUnit plugin does not know: how many cases were
/// skipped in the whole file. Each suite says it of itself. A value cannot look like it, its quotes being escaped.
fn as_jenkins_reads(text: &str) -> String {
    let head = text.find("<testsuites").and_then(|from| Some(from..from + text[from..].find('>')?));
    let attribute = head.and_then(|head| {
        let from = head.start + text[head].find(" skipped=\"")?;
        let value = from + " skipped=\"".len();
        Some(from..value + text[value..].find('"')? + 1)
    });
    match attribute {
        Some(range) => [&text[..range.start], &text[range.end..]].concat(),
        None => text.to_owned(),
    }
}

/// The first part of a check's id.
fn group(id: &str) -> &str {
    id.split_once('.').map_or(id, |(group, _)| group)
}

/// A run's beginning, where it has one on the wall: a run in virtual time has none.
fn started(report: &Report) -> Option<DateTime<FixedOffset>> {
    let started = DateTime::parse_from_rfc3339(&report.run.started).ok()?;
    (started.timestamp() > 0).then_some(started)
}

/// A suite's name. Jenkins drops a suite whose name and time equal another's, so one without a time carries the run.
fn name(report: &Report, group: &str, started: Option<DateTime<FixedOffset>>) -> String {
    match started {
        Some(_) => format!("{}.{group}", report.plan.name),
        None => format!("{}.{group} ({}, seed {})", report.plan.name, report.run.id, report.plan.seed),
    }
}

fn suite(report: &Report, group: &str, started: Option<DateTime<FixedOffset>>) -> TestSuite {
    let mut suite = TestSuite::new(name(report, group, started));
    suite.timestamp = started;
    let facts = [
        ("run", report.run.id.clone()),
        ("target", report.run.target.clone()),
        ("seed", report.plan.seed.to_string()),
        ("scale", report.plan.scale.clone()),
        ("tenfold", report.run.version.clone()),
    ];
    suite.add_properties(facts.map(|(name, value)| Property::new(name, value)));
    suite
}

/// The case that stands for the run itself.
fn run(report: &Report, took: Duration) -> TestCase {
    let status = match broken(report) {
        None => TestCaseStatus::success(),
        Some(why) => not_judged(&why, &sentences::own(report)),
    };
    let mut case = TestCase::new("run.valid", status);
    case.set_classname(format!("{}.run", report.plan.name));
    case.set_time(took);
    let mut told = vec![sentences::title(report)];
    told.extend(sentences::warning(report).map(|warning| format!("warning: {warning}")));
    told.extend(sentences::name(report));
    told.push(sentences::offered(report));
    told.extend(report.plan.trace.as_ref().map(super::TracePart::words));
    told.push(sentences::own(report));
    told.push(sentences::requests(report));
    told.extend(sentences::attempts(report));
    told.extend(sentences::failures(report));
    told.extend(sentences::latency(report));
    told.extend(sentences::streams(report));
    case.set_system_out(told.join("\n"));
    case
}

/// Why no check of the run is judged, if none is.
fn broken(report: &Report) -> Option<String> {
    match report.verdict {
        RunVerdict::Invalid => Some(format!("the run is invalid, {}", sentences::our_fault(report))),
        RunVerdict::Interrupted => {
            Some(report.run.ended_early.clone().unwrap_or_else(|| "the run was interrupted".to_owned()))
        }
        RunVerdict::Passed | RunVerdict::Failed | RunVerdict::Inconclusive => None,
    }
}

fn not_judged(why: &str, more: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message(why).set_type("run").set_description(more);
    status
}

fn case(report: &Report, n: usize, check: &CheckPart) -> TestCase {
    let found = sentences::found(check);
    let status = match (broken(report), check.verdict) {
        (Some(why), Verdict::Pass | Verdict::Fail | Verdict::NoData) => not_judged(&why, &found),
        (None, Verdict::Pass) => TestCaseStatus::success(),
        (None, Verdict::Fail) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(found.clone()).set_type(check.id.clone());
            status.set_description(failed(n, check));
            status
        }
        (None, Verdict::NoData) | (_, Verdict::NotApplicable) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(found.clone());
            status
        }
    };
    let mut case = TestCase::new(check.id.clone(), status);
    case.set_classname(format!("{}.{}", report.plan.name, group(&check.id)));
    case.set_time(Duration::ZERO);
    case.set_system_out(found);
    case
}

/// What a failed check says below its message.
fn failed(n: usize, check: &CheckPart) -> String {
    let value = |value: Option<f64>| {
        value.map_or_else(|| "no number".to_owned(), |value| sentences::quantity(value, &check.unit))
    };
    format!(
        "happened: {}\npromised: {}\nmeasured: {}\nexpected: {}\n{}",
        check.because,
        check.promised,
        value(check.measured),
        value(check.expected),
        sentences::evidence(n, check)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_files_count_of_skipped_cases_is_left_out_and_nothing_else() {
        let text = "<?xml?>\n<testsuites name=\"a\" skipped=\"3\" tests=\"4\"><testsuite skipped=\"3\"/>";
        assert_eq!(
            as_jenkins_reads(text),
            "<?xml?>\n<testsuites name=\"a\" tests=\"4\"><testsuite skipped=\"3\"/>"
        );
        assert_eq!(as_jenkins_reads("<testsuites name=\"a\"/>"), "<testsuites name=\"a\"/>");
    }
}
