use std::time::Duration;

use rand_pcg::Pcg64;

use super::{OnRefusal, stream};
use crate::units::{Bytes, Read, Reader, Tokens};

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
    pub prompt: Tokens,
    /// Bytes of the prompt's text.
    pub bytes: Bytes,
    /// The most tokens the answer may have; prompt and this are held by the gateway and charged by the provider.
    pub max_tokens: Tokens,
    /// Tokens the answer has.
    pub output: Tokens,
    /// How long after its due time an answer is of use.
    pub deadline: Duration,
    /// How long after its due time the caller waits.
    pub patience: Duration,
    /// What the caller does when refused.
    pub on_refusal: OnRefusal,
}

impl Class {
    /// Tokens held for one request: prompt and the most it may answer.
    pub fn hold(&self) -> Tokens {
        self.prompt + self.max_tokens
    }

    /// Tokens one answer really uses.
    pub fn used(&self) -> Tokens {
        self.prompt + self.output
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
        let output: Option<Tokens> = match map.reader("output") {
            Some(reader) => reader.map().and_then(|mut output| output.need("tokens")),
            None => max_tokens,
        };
        if let Some(stream) = map.reader("stream")
            && bool::read(&stream) == Some(true)
        {
            stream.fault(
                "streamed answers are not built yet: wiremock sends a body whole; write `stream: false`",
            );
        }
        let deadline: Option<Duration> = map.need("deadline");
        let patience = map.or("patience", deadline.unwrap_or_default());
        let on_refusal = map.or("on_refusal", OnRefusal::GiveUp);
        let prompt = prompt?;
        let class = Self {
            name: name?,
            weight: weight?,
            tenant: tenant?,
            tier: tier?,
            prompt: prompt.tokens,
            bytes: prompt.bytes,
            max_tokens: max_tokens?,
            output: output?,
            deadline: deadline?,
            patience: patience?,
            on_refusal: on_refusal?,
        };
        class.check(map.here()).then_some(class)
    }
}

impl Class {
    fn check(&self, here: &Reader<'_>) -> bool {
        let faults = [
            (self.deadline.is_zero(), "`deadline` is zero: no answer could ever be in time".to_owned()),
            (self.patience.is_zero(), "`patience` is zero: every caller would leave at once".to_owned()),
            (
                self.output > self.max_tokens,
                format!(
                    "`output` of {} tokens is more than `max_tokens` of {} allows",
                    self.output, self.max_tokens
                ),
            ),
        ];
        for (_, message) in faults.iter().filter(|(wrong, _)| *wrong) {
            here.fault(message);
        }
        faults.iter().all(|(wrong, _)| !wrong)
    }
}

struct Prompt {
    tokens: Tokens,
    bytes: Bytes,
}

impl Read for Prompt {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        /// The longest prompt text that is sent.
        const MOST: u64 = 16 << 20;
        let mut map = reader.map()?;
        let tokens: Option<Tokens> = map.need("tokens");
        // a word is at least a letter and a blank
        let least = Bytes::new(tokens?.get().saturating_mul(2));
        let bytes = map.or("bytes", Bytes::new(tokens?.get().saturating_mul(6)))?;
        if tokens? == Tokens::ZERO {
            map.here().fault("a prompt has at least one token");
            return None;
        }
        if bytes < least || bytes > Bytes::new(MOST) {
            map.here().fault(format!(
                "{} tokens are as many words, which take {least} to {}; `bytes` says {bytes}",
                tokens?,
                Bytes::new(MOST),
            ));
            return None;
        }
        Some(Self { tokens: tokens?, bytes })
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
            prompt: Tokens::new(8),
            bytes: Bytes::new(60),
            max_tokens: Tokens::new(4),
            output: Tokens::new(4),
            deadline: Duration::from_secs(1),
            patience: Duration::from_secs(1),
            on_refusal: OnRefusal::GiveUp,
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
