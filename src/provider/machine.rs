use std::time::Duration;

use super::Config;
use crate::units::{Level, Moment, Tokens};

/// A request as the provider sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Tokens of the prompt, as counted.
    pub prompt: Tokens,
    /// The most the answer may have.
    pub max_output: Tokens,
    /// What the answer will have; more than `max_output` is cut to it.
    pub output: Tokens,
}

/// The provider's rate-limit state after a call, as its headers tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens a minute.
    pub per_minute: Tokens,
    /// Tokens that could be used at once, now.
    pub remaining: Tokens,
    /// Until the whole burst is there again.
    pub reset: Duration,
}

/// What the provider decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It generates an answer.
    Served {
        /// Tokens taken from the quota.
        charged: Tokens,
        /// Tokens of the answer.
        output: Tokens,
        /// Until the whole answer is there.
        takes: Duration,
        /// The quota after it.
        limits: Limits,
    },
    /// The quota is spent.
    Refused {
        /// Until this call would fit.
        retry_after: Duration,
        /// What it asked for.
        wanted: Tokens,
        /// The quota, untouched.
        limits: Limits,
    },
    /// It asks for more than the quota can ever grant at once.
    TooLarge {
        /// What it asked for.
        wanted: Tokens,
        /// The most that can be granted.
        most: Tokens,
    },
}

/// The provider: a quota and a service time.
#[derive(Debug, Clone)]
pub struct Provider {
    config: Config,
    quota: Level,
    burst: Tokens,
}

impl Provider {
    /// A provider whose quota is full at `now`.
    pub fn new(config: &Config, now: Moment) -> Self {
        let burst = config.quota.burst_tokens();
        Self { quota: Level::full(config.quota.tokens, burst, now), burst, config: config.clone() }
    }

    /// Decides about a call at `now`. A refusal takes nothing from the quota.
    pub fn call(&mut self, now: Moment, call: Call) -> Answer {
        self.quota.advance(now);
        let wanted = call.prompt + call.max_output;
        let Some(retry_after) = self.quota.time_until(wanted) else {
            return Answer::TooLarge { wanted, most: self.burst };
        };
        if !self.quota.take(wanted) {
            return Answer::Refused { retry_after, wanted, limits: self.limits() };
        }
        let output = call.output.min(call.max_output);
        let takes = self.config.service.time_for(output);
        Answer::Served { charged: wanted, output, takes, limits: self.limits() }
    }

    fn limits(&self) -> Limits {
        Limits {
            per_minute: Tokens::new(self.config.quota.tokens.whole_in(Duration::from_secs(60))),
            remaining: self.quota.tokens(),
            reset: self.quota.time_until(self.burst).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Api, Charge, Count, Engine, Quota, Service, Window};
    use crate::units::Rate;

    fn provider() -> Provider {
        let config = Config {
            listen: "127.0.0.1:0".into(),
            advertise: None,
            engine: Engine::Wiremock,
            api: Api::OpenAi,
            count: Count::Words,
            quota: Quota {
                tokens: Rate::per_minute(60_000).unwrap(),
                burst: Duration::from_secs(3),
                window: Window::Bucket,
                charge: Charge::Reservation,
            },
            service: Service { first_token: Duration::from_millis(200), per_token: Duration::from_millis(2) },
        };
        Provider::new(&config, Moment::ZERO)
    }

    const CALL: Call = Call { prompt: Tokens::new(800), max_output: Tokens::new(400), output: Tokens::new(100) };

    #[test]
    fn a_spent_quota_refuses_with_the_time_until_the_call_fits_and_takes_nothing() {
        let mut provider = provider();
        let Answer::Served { charged, takes, .. } = provider.call(Moment::ZERO, CALL) else { panic!("quota was full") };
        assert_eq!((charged, takes), (Tokens::new(1_200), Duration::from_millis(400)));
        assert!(matches!(provider.call(Moment::ZERO, CALL), Answer::Served { .. }));
        let Answer::Refused { retry_after, limits, .. } = provider.call(Moment::ZERO, CALL) else { panic!("spent") };
        assert_eq!(limits.remaining, Tokens::new(600));
        assert_eq!(retry_after, Duration::from_millis(600));
        assert!(matches!(provider.call(Moment::ZERO + retry_after, CALL), Answer::Served { .. }));
    }

    #[test]
    fn a_call_above_the_burst_is_refused_for_good() {
        let call = Call { max_output: Tokens::new(4_000), ..CALL };
        let most = Tokens::new(3_000);
        assert_eq!(provider().call(Moment::ZERO, call), Answer::TooLarge { wanted: Tokens::new(4_800), most });
    }
}
