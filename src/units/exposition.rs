//! Metrics as servers offer them: the text format of Prometheus (version 0.0.4), and what OpenMetrics adds to a line.
//!
//! A page comes from a stranger. What cannot be read is skipped line by line; nothing is kept of it but the numbers that
//! were asked for.

use std::borrow::Cow;
use std::fmt;

/// Which series are meant: a metric's name, and labels they must have: `queue{proxy="llm"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    name: String,
    labels: Vec<(String, String)>,
}

/// What stands on a line before its value.
type Head<'t> = (Cow<'t, str>, Vec<(Cow<'t, str>, Cow<'t, str>)>);

/// The most labels of a line that are looked at; a line with more is skipped.
const LABELS: usize = 256;

impl Series {
    /// Reads `name` or `name{label="value"}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` names no metric (write `queue_depth` or `queue_depth{{pool=\"a\"}}`)");
        let ((name, labels), rest) = head(text.trim()).ok_or_else(wrong)?;
        if !rest.trim().is_empty() {
            return Err(wrong());
        }
        let labels = labels.into_iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
        Ok(Self { name: name.into_owned(), labels })
    }

    /// The sum over its series on `page`; `None` if none of them is there with a finite value.
    pub fn sum(&self, page: &str) -> Option<f64> {
        let values =
            page.lines().filter_map(sample).filter(|(head, value)| value.is_finite() && self.is(head));
        let sum = values
            .map(|(_, value)| value)
            .fold(None, |sum: Option<f64>, value| Some(sum.unwrap_or(0.0) + value));
        sum.filter(|sum| sum.is_finite())
    }

    fn is(&self, (name, labels): &Head<'_>) -> bool {
        self.name == *name
            && self.labels.iter().all(|(key, want)| labels.iter().any(|(k, v)| k == key && v == want))
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.labels.is_empty() {
            return Ok(());
        }
        let labels: Vec<_> = self.labels.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
        write!(f, "{{{}}}", labels.join(","))
    }
}

/// A line's series and value; `None` of a comment, an empty line, and whatever is no sample.
fn sample(line: &str) -> Option<(Head<'_>, f64)> {
    let line = line.trim_matches([' ', '\t', '\r']);
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (head, rest) = head(line)?;
    // behind the value may stand a time stamp, and behind a `#` an exemplar
    let mut words = rest.split([' ', '\t']).filter(|word| !word.is_empty());
    let value = number(words.next()?)?;
    match words.next() {
        None | Some("#") => Some((head, value)),
        Some(stamp) if stamp.parse::<f64>().is_ok() => match words.next() {
            None | Some("#") => Some((head, value)),
            Some(_) => None,
        },
        Some(_) => None,
    }
}

/// A value: a float, or `NaN`, `+Inf`, `-Inf`. What Rust reads besides, such as `infinity`, other readers do not all take.
fn number(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        _ if text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) => text.parse().ok(),
        _ => None,
    }
}

/// The name and the labels at the beginning of `text`, and what follows them.
fn head(text: &str) -> Option<(Head<'_>, &str)> {
    let (plain, rest) = word(text);
    let rest = rest.trim_start_matches([' ', '\t']);
    let Some(inner) = rest.strip_prefix('{') else {
        return (!plain.is_empty()).then_some(((Cow::Borrowed(plain), Vec::new()), rest));
    };
    let mut name = (!plain.is_empty()).then_some(Cow::Borrowed(plain));
    let mut labels = Vec::new();
    let mut rest = inner.trim_start_matches([' ', '\t']);
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some(((name?, labels), after));
        }
        let (key, after) = if rest.starts_with('"') { quoted(rest)? } else { borrowed(word(rest)) };
        let after = after.trim_start_matches([' ', '\t']);
        rest = match after.strip_prefix('=') {
            Some(after) => {
                let (value, after) = quoted(after.trim_start_matches([' ', '\t']))?;
                if key.is_empty() || labels.len() >= LABELS {
                    return None;
                }
                labels.push((key, value));
                after
            }
            // a name that is no word stands first among the labels
            None if name.is_none() && labels.is_empty() && !key.is_empty() => {
                name = Some(key);
                after
            }
            None => return None,
        };
        rest = rest.trim_start_matches([' ', '\t']);
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start_matches([' ', '\t']),
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

const fn borrowed<'t>((key, rest): (&'t str, &'t str)) -> (Cow<'t, str>, &'t str) {
    (Cow::Borrowed(key), rest)
}

/// The letters a name may have, at the beginning of `text`, and what follows them.
fn word(text: &str) -> (&str, &str) {
    let ends = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let (word, rest) = text.split_at(ends.unwrap_or(text.len()));
    // a name begins with a letter
    if word.starts_with(|c: char| c.is_ascii_digit()) { ("", text) } else { (word, rest) }
}

/// The text in quotes at the beginning of `text`, and what follows it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut out: Option<String> = None;
    let mut letters = inner.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                let value = out.map_or(Cow::Borrowed(&inner[..at]), Cow::Owned);
                return Some((value, &inner[at + 1..]));
            }
            '\\' => {
                let out = out.get_or_insert_with(|| inner[..at].to_owned());
                match letters.next()?.1 {
                    'n' => out.push('\n'),
                    escaped @ ('\\' | '"') => out.push(escaped),
                    // no escape: both signs stand for themselves
                    other => out.extend(['\\', other]),
                }
            }
            other => {
                if let Some(out) = &mut out {
                    out.push(other);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(series: &str, page: &str) -> Option<f64> {
        Series::parse(series).unwrap().sum(page)
    }

    const PAGE: &str = "\
# HELP queue_depth Requests that wait.
# TYPE queue_depth gauge
queue_depth{pool=\"a\",zone=\"1\"} 3
queue_depth{pool=\"a\",zone=\"2\"} 4
queue_depth{pool=\"b\"} 5
queue_depth_total 9
process_resident_memory_bytes 1.2345e+07
";

    #[test]
    fn a_series_is_the_sum_of_those_with_its_labels() {
        assert_eq!(sum("queue_depth", PAGE), Some(12.0));
        assert_eq!(sum("queue_depth{pool=\"a\"}", PAGE), Some(7.0));
        assert_eq!(sum("queue_depth{zone=\"2\", pool=\"a\"}", PAGE), Some(4.0));
        assert_eq!(sum("queue_depth{pool=\"c\"}", PAGE), None);
        assert_eq!(sum("queue", PAGE), None);
        assert_eq!(sum("process_resident_memory_bytes", PAGE), Some(12_345_000.0));
    }

    /// As in fabriziosalmi/zion#172 and prometheus/prometheus#8930: an exemplar behind a value broke the whole page.
    #[test]
    fn exemplars_are_passed_over() {
        let page = "\
waits_bucket{le=\"0.1\"} 8 # {trace_id=\"KOO5S4vxi0o\"} 0.067
waits_bucket{le=\"1\"} 9 1520879607.789 # {trace_id=\"a # b\"} 0.3 1520879607.1
waits_bucket{le=\"+Inf\"} 11\t# {}\t1
depth 4
# EOF
";
        assert_eq!(sum("waits_bucket", page), Some(28.0));
        assert_eq!(sum("depth", page), Some(4.0));
    }

    /// As in newrelic/nri-prometheus#315 and #317: escaped quotes in a label, types nobody knows.
    #[test]
    fn quotes_in_labels_and_unknown_types_are_read() {
        let page = "\
# TYPE depth tachometer
depth{path=\"C:\\\\q\\\"a\\\"\\n}\",pool=\"x\"} 2
# TYPE other
other 1
";
        assert_eq!(sum("depth{pool=\"x\"}", page), Some(2.0));
        assert_eq!(sum(r#"depth{path="C:\\q\"a\"\n}"}"#, page), Some(2.0));
        assert_eq!(sum("other", page), Some(1.0));
    }

    /// As in berthubert/simplomon#39 and prometheus/client_golang#1303: not a number, infinities, tabs, trailing commas,
    /// time stamps.
    #[test]
    fn odd_numbers_and_blanks_are_read_and_only_finite_values_count() {
        let page = "depth NaN\ndepth +Inf\r\ndepth\t{ pool = \"a\" , }\t\t2\t1395066363000\n  depth{} 3 -1\ndepth -Inf";
        assert_eq!(sum("depth", page), Some(5.0));
        assert_eq!(sum("depth", "depth NaN\ndepth{a=\"b\"} +Inf"), None, "no value is not nought");
        assert_eq!(sum("depth", "depth 1e400"), None);
    }

    #[test]
    fn a_line_that_is_none_costs_only_itself() {
        for bad in [
            "depth",
            "depth x",
            "depth 1 x",
            "depth 1 2 3",
            "depth{",
            "depth{a} 1",
            "depth{a=b} 1",
            "depth{a=\"b} 1",
            "depth{a=\"b\"c=\"d\"} 1",
            "{} 1",
            "1depth 1",
            "depth{=\"a\"} 1",
            "depth 0x10",
            "depth infinity",
            "\u{7f}",
        ] {
            assert_eq!(sum("depth", &format!("{bad}\ndepth 7\n")), Some(7.0), "{bad}");
        }
        assert_eq!(sum(r#"{"queue.depth"}"#, "{\"queue.depth\",pool=\"a\"} 6\n"), Some(6.0));
    }

    #[test]
    fn a_series_is_shown_as_it_is_read() {
        for text in ["depth", r#"depth{a="b\"\\",c="d"}"#] {
            let series = Series::parse(text).unwrap();
            assert_eq!(Series::parse(&series.to_string()).unwrap(), series);
        }
        for bad in ["", "a b", "depth{", "depth{a=\"b\"} 3", "9", "-"] {
            assert!(Series::parse(bad).unwrap_err().contains("names no metric"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_page_can_make_it_panic(page in r#"([a-z{}="\\,# \t0-9.+\-NIénf]{0,40}\n){0,8}"#, series in r#"[a-z]{1,3}(\{[a-z]="[a-z\\]{0,3}"\})?"#) {
            if let Ok(series) = Series::parse(&series) {
                prop_assert!(series.sum(&page).is_none_or(f64::is_finite));
            }
            let _ = Series::parse(&page);
        }
    }
}
