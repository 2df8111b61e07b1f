use std::collections::BTreeMap;

/// The most texts that are told apart: they are a server's, and it cannot make us keep more.
const MOST: usize = 20;

/// How often which text came: the first twenty by themselves, all others together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    each: BTreeMap<String, u64>,
    others: u64,
}

impl Texts {
    /// Counts `text`, which came so often.
    pub(super) fn note(&mut self, text: &str, times: u64) {
        if let Some(count) = self.each.get_mut(text) {
            *count += times;
        } else if self.each.len() < MOST {
            self.each.insert(text.to_owned(), times);
        } else {
            self.others += times;
        }
    }

    /// The texts that are told apart, and how often each came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.each.iter().map(|(text, times)| (text.as_str(), *times))
    }

    /// The one that came most often.
    pub fn most(&self) -> Option<(&str, u64)> {
        self.iter().max_by_key(|(_, times)| *times)
    }

    /// How often others came.
    pub const fn others(&self) -> u64 {
        self.others
    }

    /// How often any came.
    pub fn total(&self) -> u64 {
        self.others + self.each.values().sum::<u64>()
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        other.iter().for_each(|(text, times)| self.note(text, times));
        self.others += other.others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_however_many_texts_there_are() {
        let mut texts = Texts::default();
        (0..100).for_each(|n| texts.note(&format!("text {n}"), 2));
        texts.note("text 3", 5);
        assert_eq!((texts.iter().count(), texts.others(), texts.total()), (MOST, 160, 205));
        assert_eq!(texts.most(), Some(("text 3", 7)));
        let mut twice = texts.clone();
        twice.add(&texts);
        assert_eq!((twice.iter().count(), twice.total()), (MOST, 410));
    }
}
