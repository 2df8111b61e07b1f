use std::time::Duration;

use serde_json::{Map, Value};

use super::budgets::window_json;
use crate::units::{Rate, Ratio, Read, Reader, Tokens, Window, plain_duration};

/// One of those on whose behalf requests come: its weight when there is not enough for all, and its own limits, which
/// hold whatever the state of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// As the header names it.
    pub name: String,
    /// Its part of what is served while others wait too.
    pub weight: u32,
    /// Tokens it may use; `None` for no limit of its own.
    pub tokens: Option<Rate>,
    /// Requests it may send; `None` for no limit of its own.
    pub requests: Option<Rate>,
    /// How its limits' windows move.
    pub window: Window,
    /// What counts against its limits.
    pub counts: Counts,
}

/// Which requests count against a tenant's own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counts {
    /// Those that are admitted: a refusal takes from no budget.
    #[default]
    Admitted,
    /// All that its limits let pass, also those that are then shed: a limit in front of everything else.
    Passed,
}

impl Tenant {
    /// The same tenant with its limits times `ratio`.
    pub fn scaled(&self, ratio: Ratio) -> Self {
        let scaled = |rate: Option<Rate>| rate.map(|rate| rate.scaled(ratio));
        Self { tokens: scaled(self.tokens), requests: scaled(self.requests), ..self.clone() }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("name".into(), self.name.clone().into());
        map.insert("weight".into(), self.weight.to_string().into());
        if let Some(rate) = self.tokens {
            map.insert("tokens_per_minute".into(), rate.whole_in(Duration::from_secs(60)).to_string().into());
        }
        if let Some(rate) = self.requests {
            map.insert("requests".into(), exact(rate).into());
        }
        match self.window {
            Window::Bucket { burst } => map.insert("burst".into(), plain_duration(burst).into()),
            window => map.insert("window".into(), window_json(window)),
        };
        if self.counts == Counts::Passed {
            map.insert("counts".into(), "passed".into());
        }
        Value::Object(map)
    }
}

impl Read for Counts {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("what counts", &["admitted", "passed"])?.0 {
            "passed" => Some(Self::Passed),
            _ => Some(Self::Admitted),
        }
    }
}

/// A rate in a form that is read back without loss (to a thousandth a minute).
fn exact(rate: Rate) -> String {
    format!("{:.3}/min", rate.per_min_f64())
}

impl Read for Tenant {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let name = map.need::<String>("name");
        let weight = map.or("weight", 1u32);
        let tokens = map.get::<Tokens>("tokens_per_minute").map(|tokens| Rate::per_minute(tokens.get()));
        let requests = map.get::<Rate>("requests");
        let usual = map.get::<Rate>("usual");
        let ceiling = map.get::<Ratio>("ceiling");
        let burst = map.or("burst", Duration::from_secs(1));
        let window = map.reader("window").map_or(Some(None), |r| Window::read_as(&r, Window::KINDS));
        let counts = map.or("counts", Counts::Admitted);
        let requests = match (requests, usual, ceiling) {
            (requests, None, None) => requests,
            (None, Some(usual), ceiling) => Some(ceiling.map_or(usual, |ratio| usual.scaled(ratio))),
            _ => {
                map.here().fault(
                    "write either `requests`, or `usual` and `ceiling` (usual times ceiling is the limit)",
                );
                return None;
            }
        };
        if weight == Some(0) || tokens == Some(None) {
            map.here().fault("a weight or a limit of zero would serve nobody");
            return None;
        }
        let window = window?.unwrap_or(Window::Bucket { burst: burst? });
        let (name, weight, counts) = (name?, weight?, counts?);
        Some(Self { name, weight, tokens: tokens.flatten(), requests, window, counts })
    }
}
