use super::*;
use crate::check::Verdict;
use crate::diff::testing::{five, run, side};
use crate::report::tests::golden;

fn rendered(comparison: &Comparison, form: &str, style: Style) -> String {
    let mut out = Vec::new();
    (find(form).unwrap().render)(comparison, &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A slower build that has broken a promise besides.
fn regressed() -> Comparison {
    let (base, mut new) = (five("main 88a0d", 3.47), five("build 3f2c1", 3.29));
    for (i, run) in new.runs.iter_mut().enumerate() {
        run.onset = Some((52, 4.2));
        run.checks[1].verdict = Verdict::Fail;
        run.checks[1].measured = Some(0.943);
        run.memory_peak_bytes = Some(21_400_000 + 100_000 * i as u64);
    }
    Comparison::of(&base, &new, &[])
}

#[test]
fn a_regression_reads_as_it_should() {
    let text = rendered(&regressed(), "text", Style::default());
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    golden("diff.txt", &text);
    golden("diff.md", &rendered(&regressed(), "markdown", Style::default()));
}

#[test]
fn sides_that_are_not_comparable_name_the_keys() {
    let mut other = run(7);
    other.keys.insert("load.phases.promotion.rate".into(), "1,000/min".into());
    let comparison = Comparison::of(&side("old", vec![run(7)]), &side("new", vec![other]), &[]);
    for form in ALL {
        let text = rendered(&comparison, form.name, Style::default());
        assert!(text.contains("load.phases.promotion.rate") && text.contains("1,000/min"), "{text}");
    }
    let text = rendered(&comparison, "text", Style::default());
    assert!(text.starts_with("NOT COMPARABLE  new against old · flash-promotion · 1 run a side\n"), "{text}");
}

#[test]
fn nothing_of_a_report_is_taken_for_markup() {
    let evil = "<script>alert(1)</script>|\u{1b}[2J`x`\u{202e}\n# no";
    let comparison = Comparison::of(&side(evil, vec![run(7)]), &side("new", vec![run(7)]), &[]);
    for form in ["html", "markdown", "text"] {
        let text = rendered(&comparison, form, Style { colour: false, ascii: true });
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && !text.contains("\n# no"), "{text}");
        assert!(form == "text" || !text.contains("<script>"), "{text}");
    }
    let html = rendered(&comparison, "html", Style::default());
    assert!(!html.contains("http") && html.contains("&lt;script&gt;"), "{html}");
}

#[test]
fn the_json_has_every_row_and_no_nonsense() {
    let text = rendered(&regressed(), "json", Style::default());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], "tenfold.diff/1");
    assert_eq!(value["verdict"], "regressed");
    assert_eq!(value["rows"].as_array().unwrap().len(), crate::diff::ALL.len());
    assert_eq!(value["rows"][0]["measure"], "goodput");
    assert_eq!(value["checks"][1]["call"], "broke");
    assert!(!text.contains("NaN") && !text.contains("inf"));
}

#[test]
fn the_table_is_sorted() {
    assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
}
