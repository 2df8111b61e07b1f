use std::collections::BTreeMap;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::traces::{Row, Rows};
use super::{OnRefusal, Size, Sizes, Skew, stream};
use crate::units::{Bytes, Read, Reader, Share, Tokens};

/// The place of a class in its mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassId(pub u16);

/// One kind of request.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name, unique in the plan.
    pub name: String,
    /// Its part of all arrivals, relative to the others.
    pub weight: u32,
    /// On whose behalf it is sent; empty if the plan names none.
    pub tenant: String,
    /// 0 is the most important.
    pub tier: u8,
    /// Tokens of the prompt.
    pub prompt: Size,
    /// Bytes of the prompt's text; of one of mean length where lengths differ. The others are in proportion.
    pub bytes: Bytes,
    /// The most tokens the answer may have; prompt and this are held by the gateway and charged by the provider.
    pub max_tokens: Tokens,
    /// Tokens the answer has; never more than `max_tokens`.
    pub output: Size,
    /// How long after its due time an answer is of use.
    pub deadline: Duration,
    /// How long after its due time the caller waits.
    pub patience: Duration,
    /// Whether it asks for its answer token by token.
    pub stream: bool,
    /// What the caller does when refused.
    pub on_refusal: OnRefusal,
    /// The share that is sent twice under one idempotency key.
    pub duplicates: Share,
    /// How far its callers' clocks are off.
    pub clock: Skew,
}

impl Class {
    /// The sizes of arrival `seq`; `row` is what a trace says of it.
    pub(super) fn sizes(&self, seed: u64, seq: u64, row: Option<Row>) -> Sizes {
        let (prompt, output) =
            row.map_or((None, None), |row| (Some(row.prompt.into()), Some(row.output.into())));
        Sizes {
            prompt: self.prompt.draw(seed, stream::PROMPTS, seq, prompt),
            max_output: self.max_tokens,
            output: self.output.draw(seed, stream::OUTPUTS, seq, output),
        }
    }

    /// Tokens of the answer to arrival `seq`, where no trace says otherwise.
    pub fn answer(&self, seed: u64, seq: u64) -> Tokens {
        self.output.draw(seed, stream::OUTPUTS, seq, None)
    }

    /// The mean of what is held.
    pub fn hold(&self) -> f64 {
        self.prompt.mean() + self.max_tokens.get() as f64
    }

    /// The mean of its square.
    pub fn square_hold(&self) -> f64 {
        let most = self.max_tokens.get() as f64;
        self.prompt.square() + 2.0 * most * self.prompt.mean() + most * most
    }

    /// The most that is held for one.
    pub fn largest_hold(&self) -> Tokens {
        self.prompt.most() + self.max_tokens
    }

    /// The least.
    pub fn smallest_hold(&self) -> Tokens {
        self.prompt.least() + self.max_tokens
    }

    /// The mean of what is really used.
    pub fn used(&self) -> f64 {
        self.prompt.mean() + self.output.mean()
    }

    /// Requests a caller sends at most: one, and its retries.
    pub fn attempts(&self) -> f64 {
        match &self.on_refusal {
            OnRefusal::GiveUp => 1.0,
            OnRefusal::Retry(retry) => f64::from(retry.attempts),
        }
    }

    /// The same, with the copies that some of them are followed by.
    pub fn sends(&self) -> f64 {
        self.attempts() + self.duplicates.get()
    }

    /// Bytes of the longest prompt's text.
    pub fn most_bytes(&self) -> Bytes {
        if self.prompt.only().is_some() {
            return self.bytes;
        }
        let share = self.prompt.most().get() as f64 / self.prompt.mean().max(1.0);
        Bytes::new((self.bytes.get() as f64 * share).round() as u64)
    }

    /// Bytes of the text of a prompt of so many tokens: the first so many words of the longest, in which the i-th word of
    /// n ends where i of n equal parts end.
    pub fn bytes_of(&self, prompt: Tokens) -> Bytes {
        let (bytes, words) = (self.most_bytes(), self.prompt.most().get().max(1));
        if prompt.get() == words {
            return bytes;
        }
        let end = u128::from(bytes.get() + 1) * u128::from(prompt.get()) / u128::from(words);
        Bytes::new(u64::try_from(end).unwrap_or(u64::MAX).saturating_sub(1))
    }
}

/// The classes of a plan with their weights; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    classes: Vec<Class>,
    total: u64,
}

impl Mix {
    /// The classes in the order of the plan.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The class with this id. Ids come from the same mix, so it is there.
    pub fn class(&self, id: ClassId) -> &Class {
        &self.classes[usize::from(id.0)]
    }

    /// Draws a class by weight.
    pub fn draw(&self, from: &mut Pcg64) -> ClassId {
        if self.classes.len() == 1 {
            return ClassId(0);
        }
        let mut left = stream::below(from, self.total);
        let mut id = 0;
        for class in &self.classes {
            match left.checked_sub(u64::from(class.weight)) {
                None => break,
                Some(rest) => left = rest,
            }
            id += 1;
        }
        ClassId(id)
    }

    /// Gives classes whose sizes are those of a trace the moments of its rows.
    pub fn follow_trace(&mut self, rows: &Rows) {
        for class in &mut self.classes {
            if class.prompt.is_traced() {
                class.prompt = class.prompt.of_trace(rows.all().iter().map(|row| row.prompt.into()));
                if class.bytes == Bytes::ZERO {
                    class.bytes = usual_bytes(&class.prompt);
                }
            }
            if class.output.is_traced() {
                class.output = class.output.of_trace(rows.all().iter().map(|row| row.output.into()));
            }
        }
    }

    /// The same classes with other weights, by name; none for who is not named. Without any weight, the usual ones.
    #[must_use]
    pub fn reweighed(&self, weights: &BTreeMap<String, u32>) -> Self {
        let weight = |class: &Class| weights.get(&class.name).copied().unwrap_or(0);
        let classes: Vec<_> =
            self.classes.iter().map(|class| Class { weight: weight(class), ..class.clone() }).collect();
        let total = classes.iter().map(|class| u64::from(class.weight)).sum();
        if total == 0 { self.clone() } else { Self { classes, total } }
    }

    /// The same without the classes of these names.
    #[must_use]
    pub fn without(&self, names: &[&String]) -> Self {
        let classes: Vec<_> =
            self.classes.iter().filter(|class| !names.contains(&&class.name)).cloned().collect();
        let total = classes.iter().map(|class| u64::from(class.weight)).sum();
        if total == 0 { self.clone() } else { Self { classes, total } }
    }

    /// The mean of several mixes, each with how much it counts; `None` is this one.
    pub(super) fn blended(&self, parts: &[(f64, Option<&BTreeMap<String, u32>>)]) -> Self {
        /// What a whole is counted in.
        const WHOLE: f64 = 1e6;
        let all: f64 = parts.iter().map(|(counts, _)| counts).sum();
        let mut weights: BTreeMap<String, u32> = BTreeMap::new();
        for (counts, mix) in parts {
            let mix = mix.map_or_else(|| self.clone(), |mix| self.reweighed(mix));
            for class in &mix.classes {
                let part = counts / all * f64::from(class.weight) / mix.total as f64;
                *weights.entry(class.name.clone()).or_default() += (part * WHOLE).round() as u32;
            }
        }
        self.reweighed(&weights)
    }

    /// The sum of all weights; above zero.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The mean of `value` over arrivals.
    pub fn mean(&self, value: impl Fn(&Class) -> f64) -> f64 {
        let sum: f64 = self.classes.iter().map(|class| f64::from(class.weight) * value(class)).sum();
        sum / self.total as f64
    }
}

impl Read for Mix {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let classes: Vec<Class> = Vec::read(reader)?;
        if classes.is_empty() || classes.len() > 1_000 {
            reader.fault("a mix has 1 to 1,000 classes of requests");
            return None;
        }
        let twice = classes.iter().enumerate().find(|(i, c)| classes[..*i].iter().any(|d| d.name == c.name));
        if let Some((_, class)) = twice {
            reader.fault(format!("two classes are named `{}`: give each its own name", class.name));
            return None;
        }
        let total = classes.iter().map(|class| u64::from(class.weight)).sum();
        if total == 0 {
            reader.fault("every class has weight 0: nothing would ever be sent");
            return None;
        }
        Some(Self { classes, total })
    }
}

impl Read for Class {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let name: Option<String> = map.need("name");
        let weight = map.or("weight", 1u32);
        let tenant = map.or("tenant", String::new());
        let tier = map.or("tier", 1u8);
        let prompt = map.need::<Prompt>("prompt");
        let max_tokens: Option<Tokens> = map.need("max_tokens");
        let output: Option<Size> = match map.reader("output") {
            Some(reader) => reader.map().and_then(|mut output| output.need("tokens")),
            None => max_tokens.map(Size::fixed),
        };
        let stream = map.or("stream", false);
        let deadline: Option<Duration> = map.need("deadline");
        let patience = map.or("patience", deadline.unwrap_or_default());
        let on_refusal = map.or("on_refusal", OnRefusal::GiveUp);
        let duplicates = map.or("duplicates", Share::new(0.0)?);
        let clock = map.or("clock", Skew::None);
        let prompt = prompt?;
        let class = Self {
            name: name?,
            weight: weight?,
            tenant: tenant?,
            tier: tier?,
            prompt: prompt.tokens,
            bytes: prompt.bytes,
            max_tokens: max_tokens?,
            output: max_tokens.zip(output).map(|(most, output)| cut(output, most, map.here()))??,
            deadline: deadline?,
            patience: patience?,
            stream: stream?,
            on_refusal: on_refusal?,
            duplicates: duplicates?,
            clock: clock?,
        };
        class.check(map.here()).then_some(class)
    }
}

impl Class {
    fn check(&self, here: &Reader<'_>) -> bool {
        let faults = [
            (self.deadline.is_zero(), "`deadline` is zero: no answer could ever be in time".to_owned()),
            (self.patience.is_zero(), "`patience` is zero: every caller would leave at once".to_owned()),
        ];
        for (_, message) in faults.iter().filter(|(wrong, _)| *wrong) {
            here.fault(message);
        }
        faults.iter().all(|(wrong, _)| !wrong)
    }
}

/// An answer's size, cut at what it may have; a fault if all of them are longer.
fn cut(output: Size, most: Tokens, here: &Reader<'_>) -> Option<Size> {
    if output.least() > most {
        here.fault(format!(
            "`output` of {} tokens is more than `max_tokens` of {most} allows",
            output.least()
        ));
        return None;
    }
    Some(output.capped(most))
}

/// The length of a prompt's text where a plan does not say: six bytes a token.
fn usual_bytes(tokens: &Size) -> Bytes {
    Bytes::new((tokens.mean() * 6.0).round() as u64)
}

struct Prompt {
    tokens: Size,
    bytes: Bytes,
}

/// The longest prompt text that is sent.
pub const MOST_BYTES: Bytes = Bytes::new(16 << 20);

impl Read for Prompt {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let tokens: Option<Size> = map.need("tokens");
        let given: Option<Bytes> = match map.reader("bytes") {
            Some(reader) => Some(Bytes::read(&reader)?),
            None => None,
        };
        let tokens = tokens?;
        if tokens.is_traced() {
            // how long they are is known when the trace has been read
            return Some(Self { tokens, bytes: given.unwrap_or_default() });
        }
        let bytes = given.unwrap_or_else(|| usual_bytes(&tokens));
        if tokens.least() == Tokens::ZERO {
            map.here().fault("a prompt has at least one token");
            return None;
        }
        // a word is at least a letter and a blank
        let least = Bytes::new((tokens.mean() * 2.0).ceil() as u64);
        let longest = bytes.get() as f64 * tokens.most().get() as f64 / tokens.mean();
        if bytes < least || longest > MOST_BYTES.get() as f64 {
            map.here().fault(format!(
                "{} tokens are as many words, which take {least} to {MOST_BYTES}; `bytes` says {bytes}",
                tokens.words(),
            ));
            return None;
        }
        Some(Self { tokens, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_drawn_by_weight() {
        let class = |name: &str, weight| Class {
            name: name.into(),
            weight,
            tenant: String::new(),
            tier: 1,
            prompt: Size::fixed(Tokens::new(8)),
            bytes: Bytes::new(60),
            max_tokens: Tokens::new(4),
            output: Size::fixed(Tokens::new(4)),
            deadline: Duration::from_secs(1),
            patience: Duration::from_secs(1),
            stream: false,
            on_refusal: OnRefusal::GiveUp,
            duplicates: Share::new(0.0).unwrap(),
            clock: Skew::None,
        };
        let mix = Mix { classes: vec![class("a", 3), class("none", 0), class("b", 1)], total: 4 };
        let mut stream = stream::of(1, stream::CLASSES);
        let mut counts = [0u32; 3];
        for _ in 0..40_000 {
            counts[usize::from(mix.draw(&mut stream).0)] += 1;
        }
        assert_eq!(counts[1], 0);
        // 4 standard deviations of a binomial count (n = 40,000, p = 3/4)
        assert!(counts[0].abs_diff(30_000) < 347, "{counts:?}");
    }
}
