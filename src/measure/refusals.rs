use std::time::Duration;

use super::{Examples, Frame, Hints, Hist, Texts, Trouble};
use crate::observe::{Ghost, Outcome, Reason, Record, RetryAfter};
use crate::units::{Moment, Tokens};

/// A refusal slower than this is an example of a slow one.
const SLOW: Duration = Duration::from_millis(10);

/// What refusals looked like. `refused` and `latency` are of shed and throttled attempts; the header and the form are
/// looked at in every answer that refuses, the expired ones too.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Refusals {
    /// Shed and throttled attempts.
    pub refused: u64,
    /// Answers that refuse: shed, throttled, and expired with an answer.
    pub answers: u64,
    /// Microseconds from sending to refusal, of shed and throttled attempts.
    pub latency: Hist,
    /// Announced times, in whole seconds, rounded up.
    pub announced: Hist,
    /// Answers without a Retry-After.
    pub missing: u64,
    /// Announced times that are longer than what such callers keep (see `OnRefusal::keeps`).
    pub overlong: u64,
    /// Of these, those that say not to try again (`x-should-retry: false`).
    pub marked: u64,
    /// Answers whose Retry-After cannot be read.
    pub unreadable: u64,
    /// Answers whose Retry-After has a fraction of a second: it is announced all the same.
    pub fractional: u64,
    /// What could not be read, as it was sent, and how often.
    pub odd: Texts,
    /// The fractions, as they were sent.
    pub fractions: Texts,
    /// What other headers said of when to come back.
    pub hints: Hints,
    /// Waits that no client keeps: overlong and not marked, or promised twice.
    pub unusable: u64,
    /// Answers without the designed form.
    pub unshapely: u64,
    /// What they lacked, and how often.
    pub faults: Texts,
    /// Shed and throttled attempts that name a reason for themselves.
    pub reasoned: u64,
    /// Of these, those whose status is that of the other reason.
    pub contradictory: u64,
    /// Shed and throttled attempts that cost the provider tokens.
    pub costly: u64,
    /// What those cost.
    pub cost: Tokens,
    /// Refusals (expired ones too) of attempts sent before the event, or on a day without one.
    pub before_event: u64,
    /// Refusals of attempts sent after the event, once the depth was back.
    pub after_drain: u64,
}

impl Refusals {
    /// How many different times were announced; those beyond half an hour are told apart to a thousandth.
    pub fn distinct(&self) -> usize {
        self.announced.distinct()
    }

    /// Takes in an attempt, if it was refused. `drained` is the instant the event's backlog was gone.
    pub(super) fn record(
        &mut self,
        record: &Record,
        frame: &Frame,
        drained: Option<Moment>,
        examples: &mut Examples,
    ) {
        let at_once = matches!(record.outcome, Outcome::Shed | Outcome::Throttled);
        if !at_once && record.outcome != Outcome::Expired {
            return;
        }
        let seq = record.attempt.seq;
        if at_once {
            self.refused += 1;
            let took = record.latency_from_sent().unwrap_or_default();
            self.latency.record(took);
            if took > SLOW {
                examples.note(Trouble::SlowRefusal, seq);
            }
            self.reason(record, examples);
            if record.charged > Tokens::ZERO {
                self.costly += 1;
                self.cost += record.charged;
                examples.note(Trouble::CostlyRefusal, seq);
            }
        }
        if record.status.is_some() {
            self.answered(record, frame, examples);
        }
        let sent = record.sent.unwrap_or(record.due);
        let before = frame.event.is_none_or(|event| sent < event.start);
        let after = drained.is_some_and(|drained| sent >= drained);
        self.before_event += u64::from(before);
        self.after_drain += u64::from(after);
        if before || after {
            examples.note(Trouble::FalseShed, seq);
        }
    }

    fn reason(&mut self, record: &Record, examples: &mut Examples) {
        if record.outcome == Outcome::Throttled {
            examples.note(Trouble::Throttled, record.attempt.seq);
        }
        let Some(reason) = record.reason else { return };
        self.reasoned += 1;
        let other = match record.outcome {
            Outcome::Shed => Reason::Throttled,
            _ => Reason::Shed,
        };
        if reason == other {
            self.contradictory += 1;
            examples.note(Trouble::Contradictory, record.attempt.seq);
        }
    }

    /// Takes in a call for somebody who had been refused already.
    pub(super) fn ghost(&mut self, ghost: &Ghost, examples: &mut Examples) {
        let refused = matches!(ghost.outcome, Outcome::Shed | Outcome::Throttled);
        if refused && ghost.charged > Tokens::ZERO {
            self.costly += 1;
            self.cost += ghost.charged;
            examples.note(Trouble::CostlyRefusal, ghost.attempt.seq);
        }
    }

    fn answered(&mut self, record: &Record, frame: &Frame, examples: &mut Examples) {
        let seq = record.attempt.seq;
        self.answers += 1;
        match &record.retry_after {
            None => {
                self.missing += 1;
                examples.note(Trouble::NoRetryAfter, seq);
            }
            Some(told) => self.odd(told, seq, examples),
        }
        let told = record.retry_after.as_ref();
        let too_long =
            told.and_then(RetryAfter::wait).is_some_and(|span| self.wait(span, record, frame, examples));
        let hints = record.hints.as_slice();
        let conflicting = !hints.is_empty() && self.hints.record(hints, told);
        if conflicting {
            examples.note(Trouble::Conflicting, seq);
        }
        self.unusable += u64::from(conflicting || too_long);
        if let Err(fault) = &record.shape {
            self.unshapely += 1;
            self.faults.note(fault, 1);
            examples.note(Trouble::Unshapely, seq);
        }
    }

    /// Takes in a wait that was announced. Gives whether it is longer than such callers keep, and not marked.
    fn wait(&mut self, span: Duration, record: &Record, frame: &Frame, examples: &mut Examples) -> bool {
        self.announced.record_count(span.as_secs() + u64::from(span.subsec_nanos() > 0));
        let overlong = frame.is_overlong(record.class, span);
        let marked = overlong && record.should_retry == Some(false);
        self.overlong += u64::from(overlong);
        self.marked += u64::from(marked);
        if overlong && !marked {
            examples.note(Trouble::Overlong, record.attempt.seq);
        }
        overlong && !marked
    }

    /// Takes in a header that has not the standard's form.
    fn odd(&mut self, told: &RetryAfter, seq: u64, examples: &mut Examples) {
        let (count, texts) = match told {
            RetryAfter::After(_) => return,
            RetryAfter::Fraction(_) => (&mut self.fractional, &mut self.fractions),
            RetryAfter::Unreadable(_) => (&mut self.unreadable, &mut self.odd),
        };
        *count += 1;
        texts.note(told.odd().unwrap_or_default(), 1);
        examples.note(Trouble::Unreadable, seq);
    }

    /// Adds another's refusals.
    pub(super) fn add(&mut self, other: &Self) {
        self.refused += other.refused;
        self.answers += other.answers;
        self.latency.add(&other.latency);
        self.announced.add(&other.announced);
        self.overlong += other.overlong;
        self.marked += other.marked;
        self.missing += other.missing;
        self.unreadable += other.unreadable;
        self.fractional += other.fractional;
        self.odd.add(&other.odd);
        self.fractions.add(&other.fractions);
        self.hints.add(&other.hints);
        self.unusable += other.unusable;
        self.unshapely += other.unshapely;
        self.faults.add(&other.faults);
        self.reasoned += other.reasoned;
        self.contradictory += other.contradictory;
        self.costly += other.costly;
        self.cost += other.cost;
        self.before_event += other.before_event;
        self.after_drain += other.after_drain;
    }
}
