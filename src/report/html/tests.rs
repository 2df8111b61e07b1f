use super::*;
use crate::measure::testing::{healthy, smoke};
use crate::report::tests::{hostile, report};

fn rendered(report: &Report) -> String {
    page(report, None).unwrap()
}

fn passed() -> Report {
    let plan = smoke().plan();
    report(&plan, &healthy(&plan), false)
}

#[test]
fn the_page_says_the_verdict_first_and_shows_every_check() {
    let report = passed();
    let page = rendered(&report);
    assert!(page.starts_with("<!DOCTYPE html>"));
    let verdict = page.find("PASSED</span> · smoke against the embedded gateway").unwrap();
    let order = [
        "the run is valid",
        "id=\"depth\"",
        "id=\"load\"",
        "accounting.complete",
        "id=\"waits\"",
        "Latency by outcome",
        "id=\"memory\"",
        "id=\"lag\"",
        "Forecast and measured",
        "the whole plan",
    ];
    let places: Vec<_> =
        order.iter().map(|text| page.find(text).unwrap_or_else(|| panic!("{text}"))).collect();
    assert!(verdict < places[0] && places.is_sorted(), "{places:?}");
    for check in &report.checks {
        assert!(page.contains(&check.id), "{}", check.id);
    }
    assert!(page.contains("first shed: 37 deep after 837 ms"), "the first shed is marked");
}

#[test]
fn nothing_is_loaded_and_every_picture_has_words() {
    let page = rendered(&passed());
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let pictures = page.matches("role=\"img\"").count();
    let named = page.matches("aria-labelledby").count() + page.matches("role=\"img\" aria-label=").count();
    assert!(pictures > 5 && pictures == named, "{named} of {pictures}");
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
}

#[test]
fn what_a_server_sent_stays_text() {
    let page = rendered(&hostile());
    assert_eq!(page.matches("<script>").count(), 1, "only our own");
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains(['\u{202e}', '\u{0}', '\u{1b}', '\u{fffe}']), "it is shown, and steers nothing");
    assert!(page.contains("\\u{202e}"));
}

/// An hour with a window each second, and all the examples and refusals there can be.
fn long() -> Report {
    let mut report = passed();
    let window = report.windows[5].clone();
    report.windows = (0..3_700)
        .map(|i| {
            let mut window = window.clone();
            (window.from_s, window.depth_max_requests) =
                (f64::from(i), 1_000 + (u64::from(i as u32) * 37) % 91);
            window
        })
        .collect();
    report.plan.phases[1].lasts_s = 3_600.0;
    report.refusals = vec![report.refusals[0].clone(); 20];
    report.refusals.iter_mut().for_each(|raw| raw.body = "x".repeat(1_024));
    report.checks.iter_mut().for_each(|check| check.examples = (0..20).collect());
    let caller = report.retry_after.returned[0];
    report.retry_after.returned = (0..400)
        .map(|i| super::super::ReturnPart { waited_s: f64::from(i) / 9.0, seq: i as u64, ..caller })
        .collect();
    report
}

#[test]
fn an_hour_fits_in_half_a_megabyte_and_keeps_its_peaks() {
    let mut report = long();
    report.windows[1_234].depth_max_requests = 7_777;
    let page = rendered(&report);
    assert!(page.len() < 500_000, "{} bytes", page.len());
    assert!(page.contains("in the gateway, most 7,777"), "a peak of one second is drawn");
}

#[test]
fn a_run_without_anything_still_has_a_page() {
    let plan = smoke().plan();
    let page = rendered(&report(&plan, &crate::measure::Measures::new(&plan), false));
    assert!(page.contains("INVALID") && page.contains("no request came due"));
    for number in ["NaN", "inf%", "infinity"] {
        assert!(!page.contains(number), "{number}");
    }
}

#[test]
fn a_run_that_goes_on_passes_nothing_and_looks_for_more() {
    let running = Running { at_s: 12.0, lasts_s: 22.0 };
    let page = page(&passed(), Some(running)).unwrap();
    assert!(page.contains("RUNNING") && !page.contains("✓") && page.contains("12 s of 22 s"));
    assert!(
        page.contains("data-running")
            && page.contains("setInterval(")
            && page.contains("http-equiv=\"refresh\"")
    );
    assert!(!rendered(&passed()).contains("setInterval"));
    assert!(waiting("smoke").contains("WAITING"));
}
