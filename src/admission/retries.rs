use crate::units::Share;

/// The most that can be saved up.
const MOST: f64 = 100.0;

/// What there is at the start, so that the first failures can be repeated.
pub const START: f64 = 10.0;

/// A budget of repetitions: each first call pays in a part of one, each repetition takes one out.
#[derive(Debug)]
pub(crate) struct Retries {
    /// `None` for no limit.
    part: Option<f64>,
    saved: f64,
}

impl Retries {
    pub(crate) fn new(part: Option<Share>) -> Self {
        let part = part.map(Share::get);
        Self { part, saved: if part == Some(0.0) { 0.0 } else { START } }
    }

    pub(crate) fn first_call(&mut self) {
        self.saved = (self.saved + self.part.unwrap_or_default()).min(MOST);
    }

    /// Takes one repetition if there is one.
    pub(crate) fn take(&mut self) -> bool {
        let enough = self.part.is_none() || self.saved >= 1.0;
        if enough && self.part.is_some() {
            self.saved -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_stay_a_part_of_first_calls() {
        let mut retries = Retries::new(Share::new(0.2));
        let mut repeated = 0;
        for _ in 0..1_000 {
            retries.first_call();
            repeated += u32::from(retries.take());
        }
        assert!((205..=215).contains(&repeated), "{repeated}: a fifth, and the start");
        assert!(!Retries::new(Share::new(0.0)).take());
        let mut unlimited = Retries::new(None);
        assert!((0..1_000).all(|_| unlimited.take()));
    }
}
