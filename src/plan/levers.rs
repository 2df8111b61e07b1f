//! What could be done about the event, and by how much: the keys of `levers`. They are pulled in order, each on what the
//! ones before it left, and only the forecast looks at them: a run offers what the plan says.

use crate::provider;
use crate::units::{Rate, Ratio, Read, Reader, Share, Tokens};
use crate::workload::{Class, Mix};

/// The most levers of a plan.
const MOST: usize = 100;

/// Every kind of lever a plan can name, sorted.
pub const ALL: &[Kind] = &[
    Kind {
        name: "answer_from_cache",
        about: "answer a share of the requests without the model",
        example: "40%",
        read: |r, _| Share::read(r).map(Pull::AnswerFromCache),
    },
    Kind {
        name: "defer",
        about: "put a share of the requests off until after the event, as a job",
        example: "20%",
        read: |r, _| Share::read(r).map(Pull::Defer),
    },
    Kind {
        name: "more_quota",
        about: "tokens a minute in all, or how much more as a part of today's",
        example: "889k or +1/3",
        read: read_quota,
    },
    Kind {
        name: "shed_tier",
        about: "refuse this tier and those less important at once",
        example: "3",
        read: |r, _| u8::read(r).map(Pull::ShedTier),
    },
    Kind {
        name: "shrink_tokens",
        about: "tokens a request holds on average, or the share it holds less",
        example: "675 or 25%",
        read: read_tokens,
    },
];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its key in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// What may stand under it.
    pub example: &'static str,
    read: fn(&Reader<'_>, &Today) -> Option<Pull>,
}

/// Something that could be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Lever {
    /// What people call it; unique in the plan.
    pub name: String,
    /// What it does.
    pub pull: Pull,
}

/// What a lever does, and by how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pull {
    /// This share of the requests is answered without the model.
    AnswerFromCache(Share),
    /// This share of the requests waits until the event is over.
    Defer(Share),
    /// The quota, and the gateway's budget of tokens with it, is this.
    MoreQuota(Rate),
    /// The quota, and the gateway's budget of tokens with it, is larger by this part of what it was.
    MoreQuotaBy(Ratio),
    /// This tier and those less important (of a larger number) are refused.
    ShedTier(u8),
    /// A request holds this on average: prompts and answers are shorter alike.
    ShrinkTokens(Tokens),
    /// A request holds less by this share.
    ShrinkTokensBy(Share),
}

impl Pull {
    /// Its key in a plan.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::AnswerFromCache(_) => "answer_from_cache",
            Self::Defer(_) => "defer",
            Self::MoreQuota(_) | Self::MoreQuotaBy(_) => "more_quota",
            Self::ShedTier(_) => "shed_tier",
            Self::ShrinkTokens(_) | Self::ShrinkTokensBy(_) => "shrink_tokens",
        }
    }
}

/// The numbers of the plan that a lever is to better.
struct Today {
    /// Tokens a request holds on average.
    hold: Option<f64>,
    /// The quota.
    quota: Option<Rate>,
}

/// Reads `levers`. What they are compared with is left out where it could not be read.
pub(super) fn read(
    reader: &Reader<'_>,
    requests: Option<&Mix>,
    provider: Option<&provider::Config>,
) -> Option<Vec<Lever>> {
    let today = Today {
        hold: requests.map(|mix| mix.mean(Class::hold)),
        quota: provider.map(|provider| provider.quota.tokens),
    };
    let items = reader.list()?;
    if items.len() > MOST {
        reader.fault(format!("a plan has at most {MOST} levers"));
        return None;
    }
    let read: Vec<Option<Lever>> = items.iter().map(|item| read_lever(item, &today)).collect();
    let levers: Vec<Lever> = read.into_iter().collect::<Option<_>>()?;
    let twice = levers.iter().enumerate().find(|(i, a)| levers[..*i].iter().any(|b| a.name == b.name));
    if let Some((i, lever)) = twice {
        items[i].fault(format!("two levers are named `{}`: give each its own name", lever.name));
        return None;
    }
    Some(levers)
}

fn read_lever(reader: &Reader<'_>, today: &Today) -> Option<Lever> {
    let mut map = reader.map()?;
    let name: Option<String> = map.need("name");
    let mut pulls = Vec::new();
    for kind in ALL {
        if let Some(inner) = map.reader(kind.name) {
            pulls.push((kind.name, (kind.read)(&inner, today)));
        }
    }
    let name = name?;
    if name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
        map.here().fault("a lever's name has 1 to 100 letters and no line breaks");
        return None;
    }
    match pulls.as_slice() {
        [(_, pull)] => pull.map(|pull| Lever { name, pull }),
        [] => {
            let known: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
            map.here().fault(format!("what does `{name}` do? name one of {}", known.join(", ")));
            None
        }
        several => {
            let named: Vec<_> = several.iter().map(|(name, _)| *name).collect();
            map.here().fault(format!("a lever does one thing, not {}: {}", named.len(), named.join(", ")));
            None
        }
    }
}

fn read_quota(reader: &Reader<'_>, today: &Today) -> Option<Pull> {
    let text = reader.scalar("a quota")?;
    if let Some(more) = text.strip_prefix('+') {
        // a part of what there is: 1/3, 0.5, 50% or 2
        let ratio = match more.strip_suffix('%') {
            Some(percent) => Ratio::parse(&format!("{}/100", percent.trim()))
                .or_else(|_| Share::parse(more).and_then(|share| Ratio::parse(&format!("{}", share.get())))),
            None => Ratio::parse(more),
        };
        return match ratio {
            Ok(ratio) => Some(Pull::MoreQuotaBy(ratio)),
            Err(_) => {
                reader.fault(format!("`{text}` is no part of a quota (write +1/3 or +50%)"));
                None
            }
        };
    }
    let tokens = reader.parse("a quota", |text| {
        Tokens::parse(text)
            .map_err(|_| format!("`{text}` is no quota (write 889k tokens a minute, or +1/3 of today's)"))
    })?;
    let rate = Rate::per_minute(tokens.get());
    match (rate, today.quota) {
        (Some(rate), today) if today.is_none_or(|today| rate.per_sec_f64() > today.per_sec_f64()) => {
            Some(Pull::MoreQuota(rate))
        }
        (_, today) => {
            let today = today.map_or(0.0, Rate::per_min_f64);
            reader.fault(format!("{tokens} tokens a minute are no more than today's {today:.0}"));
            None
        }
    }
}

fn read_tokens(reader: &Reader<'_>, today: &Today) -> Option<Pull> {
    let text = reader.scalar("tokens a request, or a share")?;
    if text.contains(['%', '.']) {
        return Share::read(reader).filter(|share| share.get() < 1.0).map(Pull::ShrinkTokensBy).or_else(
            || {
                if Share::parse(text).is_ok() {
                    reader.fault("requests of no tokens ask for nothing: a share below 100 %");
                }
                None
            },
        );
    }
    let tokens = Tokens::read(reader)?;
    match today.hold {
        _ if tokens == Tokens::ZERO => {
            reader.fault("requests of no tokens ask for nothing: at least 1");
            None
        }
        Some(hold) if tokens.get() as f64 >= hold => {
            reader.fault(format!("{tokens} tokens a request are no less than today's mean of {hold:.0}"));
            None
        }
        _ => Some(Pull::ShrinkTokens(tokens)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{testing, yaml};
    use crate::units::Faults;

    fn levers(text: &str) -> Result<Vec<Pull>, Vec<String>> {
        let tree = yaml::read(text).unwrap();
        let (faults, plan) = (Faults::default(), testing::plan());
        let levers = read(&Reader::root(&tree, &faults), Some(&plan.requests), Some(&plan.provider));
        let faults = faults.into_sorted();
        match levers {
            Some(levers) if faults.is_empty() => Ok(levers.into_iter().map(|lever| lever.pull).collect()),
            _ => Err(faults.into_iter().map(|fault| format!("{}: {}", fault.path, fault.message)).collect()),
        }
    }

    fn one(lever: &str) -> Result<Pull, String> {
        levers(&format!("[{{ name: it, {lever} }}]")).map(|all| all[0]).map_err(|faults| faults.join("; "))
    }

    #[test]
    fn the_kinds_are_sorted_and_each_reads_its_example() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for kind in ALL {
            for example in kind.example.split(" or ") {
                // the quota of this plan is larger than that of the example
                let example = example.replace("889k", "8890k");
                let pull = one(&format!("{}: {example}", kind.name)).unwrap();
                assert_eq!(pull.kind(), kind.name);
            }
        }
    }

    #[test]
    fn amounts_are_what_they_say() {
        let part = |value| Share::new(value).unwrap();
        assert_eq!(one("answer_from_cache: 40%"), Ok(Pull::AnswerFromCache(part(0.4))));
        assert_eq!(one("shrink_tokens: 675"), Ok(Pull::ShrinkTokens(Tokens::new(675))));
        assert_eq!(one("shrink_tokens: 0.25"), Ok(Pull::ShrinkTokensBy(part(0.25))));
        assert_eq!(one("more_quota: +1/3"), Ok(Pull::MoreQuotaBy(Ratio::new(1, 3).unwrap())));
        assert_eq!(one("more_quota: +50%"), Ok(Pull::MoreQuotaBy(Ratio::new(1, 2).unwrap())));
        assert_eq!(one("more_quota: +12.5%"), Ok(Pull::MoreQuotaBy(Ratio::new(1, 8).unwrap())));
        assert_eq!(one("more_quota: +200%"), Ok(Pull::MoreQuotaBy(Ratio::new(2, 1).unwrap())));
    }

    #[test]
    fn what_is_no_lever_is_told_with_the_way_out() {
        for (lever, says) in [
            (
                "shrink_tokens: 1200",
                "0.shrink_tokens: 1200 tokens a request are no less than today's mean of 1200",
            ),
            ("shrink_tokens: 0", "at least 1"),
            ("shrink_tokens: 100%", "a share below 100 %"),
            ("shrink_tokens: few", "no token count"),
            ("more_quota: 1_200_000", "no more than today's 1200000"),
            ("more_quota: +0", "write +1/3 or +50%"),
            ("more_quota: -1", "write 889k tokens a minute"),
            ("answer_from_cache: 140%", "no share between 0 and 1"),
            ("shed_tier: 300", "too large"),
            ("defer: 1%, shed_tier: 1", "0: a lever does one thing, not 2: defer, shed_tier"),
            ("defre: 1%", "did you mean `defer`?"),
        ] {
            let said = one(lever).unwrap_err();
            assert!(said.contains(says), "{lever}: {said}");
        }
        let said = levers("[{ name: a, defer: 1% }, { name: a, defer: 2% }]").unwrap_err();
        assert_eq!(said, ["1: two levers are named `a`: give each its own name"]);
        assert!(levers("[{ defer: 1% }]").unwrap_err()[0].contains("`name` is missing"));
    }
}
