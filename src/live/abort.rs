//! `abort_when`: rules that end a run early, to spare the target.

use std::time::Duration;

use crate::plan::AbortRule;
use crate::units::{Moment, show_duration};

/// What a rule looks at: how many arrivals were due in a span, and how many answers came within their deadlines.
pub(super) type Lately<'a> = &'a dyn Fn(Duration) -> (u64, u64);

/// The first rule that says stop at `now` (on the load's own time line), in words.
///
/// A rule looks at the mean over its span: one good answer in thirty seconds does not start the count anew.
pub(super) fn reason(rules: &[AbortRule], now: Moment, lately: Lately<'_>) -> Option<String> {
    rules.iter().find_map(|rule| {
        if now.since(Moment::ZERO) < rule.after.saturating_add(rule.lasting) {
            return None;
        }
        let (offered, completed) = lately(rule.lasting);
        let below = offered > 0 && (completed as f64) < rule.goodput_below.get() * offered as f64;
        below.then(|| {
            format!(
                "abort_when: {completed} answers in time for {offered} arrivals in {}: below {} of what was offered",
                show_duration(rule.lasting),
                rule.goodput_below,
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Share;

    #[test]
    fn a_rule_stops_a_run_whose_goodput_stays_low_and_no_other() {
        let rules = [AbortRule {
            goodput_below: Share::new(0.1).unwrap(),
            lasting: Duration::from_secs(30),
            after: Duration::from_secs(60),
        }];
        let at = |secs, offered, completed| {
            reason(&rules, Moment::from_secs(secs), &|span| {
                assert_eq!(span, Duration::from_secs(30));
                (offered, completed)
            })
        };
        assert_eq!(at(89, 1_000, 0), None, "not yet");
        assert!(
            at(90, 1_000, 99).is_some_and(|why| why.contains("99 answers in time for 1000 arrivals in 30 s"))
        );
        assert_eq!(at(90, 1_000, 100), None);
        assert_eq!(at(90, 0, 0), None, "nothing was offered");
        assert_eq!(reason(&[], Moment::from_secs(90), &|_| (1, 0)), None);
    }
}
