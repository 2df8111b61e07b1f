use std::io;

use super::lines::{Colour, Lines};
use super::{Style, TracePart, forecast_text};
use crate::check::words::{number, seconds, thousands};
use crate::forecast::Forecast;
use crate::plan::{Http, Plan, TargetKind};
use crate::provider::Engine;
use crate::units::{Bytes, Window, show_duration};

const HEAD: usize = 20;

/// What the provider's shell keeps of a request for as long as it lives: so much, and so many times its body. Measured;
/// see `live::ProviderShell::keeps`.
const KEPT: (u64, u64) = (8_000, 2);

/// What a run would do, for a look before it does.
#[derive(Debug, Clone, Copy)]
pub struct DryRun<'a> {
    /// The plan as it would be run.
    pub plan: &'a Plan,
    /// The forecast for that.
    pub forecast: &'a Forecast,
    /// The address the gateway shall call; `None` if a free port will be taken when it starts.
    pub provider: Option<&'a str>,
}

impl DryRun<'_> {
    /// Requests open at once if the target refuses nobody: λ times the longest patience, where callers come closest together, with all their retries.
    pub fn most_open(&self) -> u64 {
        let patience =
            self.plan.requests.classes().iter().map(|class| class.patience).max().unwrap_or_default();
        let attempts = self.plan.requests.mean(crate::workload::Class::sends);
        let most = self.plan.load.peak_per_s() * attempts * patience.as_secs_f64();
        (most.ceil() as u64).min(u64::from(self.plan.max_outstanding))
    }

    /// What the provider's shell will keep: every request that reaches it, body and all.
    pub fn provider_keeps(&self) -> Bytes {
        if self.plan.provider.engine == Engine::Stream {
            return Bytes::ZERO;
        }
        let (load, basis) = (&self.plan.load, &self.forecast.basis);
        let served: f64 = load
            .phases
            .iter()
            .map(|phase| phase.rate.per_sec_f64().min(basis.served) * phase.lasts.as_secs_f64())
            .sum();
        let body =
            self.plan.requests.classes().iter().map(|class| class.most_bytes().get()).max().unwrap_or(0);
        let forwarded = served.ceil() as u64 + self.forecast.queue_bound.with_margin.requests;
        Bytes::new(forwarded.saturating_mul(body.saturating_mul(KEPT.1).saturating_add(KEPT.0)))
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn render(&self, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
        let plan = self.plan;
        let title = match plan.scale.to_string().as_str() {
            "1" => plan.name.clone(),
            scale => format!("{}, rehearsed at {scale} scale", plan.name),
        };
        forecast_text(&title, self.forecast, style, out)?;
        let mut lines = Lines::new(out, *style);
        lines.blank()?;
        let mut item = |head: &str, text: String| lines.item(head, Colour::None, HEAD, &text);
        let end = plan.load.end().as_secs_f64();
        item(
            "  requests",
            format!(
                "about {} in {}, and one refused caller in {} comes back",
                thousands(plan.load.expected().round() as u64),
                seconds(end),
                plan.probes.every
            ),
        )?;
        if let Some(trace) = TracePart::of(plan) {
            item("  trace", trace.words())?;
        }
        item("  sockets", self.sockets())?;
        item(
            "  memory here",
            match self.plan.provider.engine {
                Engine::Stream => "the provider keeps nothing of a request that has ended".to_owned(),
                Engine::Wiremock => {
                    format!(
                        "up to {} in the provider, which keeps every request it sees",
                        self.provider_keeps()
                    )
                }
            },
        )?;
        item(
            "  provider",
            self.provider.map_or_else(
                || format!("listens on {} when the run starts", plan.provider.listen),
                |address| format!("{address}: the gateway must call this address"),
            ),
        )?;
        item("  budget to set", self.budget())?;
        item("", "nothing was sent".to_owned())
    }

    fn sockets(&self) -> String {
        let open = self.most_open();
        let transport = &self.plan.target.request.transport;
        let (connections, streams) = transport.connections(open);
        let over = match transport.http {
            Http::One => String::new(),
            Http::Two { .. } => {
                format!(", over {} connections of {} streams", thousands(connections), thousands(streams))
            }
        };
        let from = match transport.source_addresses.len() {
            0 => String::new(),
            n => format!(", {} from each of {n} addresses", thousands(connections.div_ceil(n as u64))),
        };
        format!(
            "up to {} requests open at once if nobody is refused{over}{from}: about {} descriptors here, and two for each in the gateway",
            thousands(open),
            thousands(connections + open + 50)
        )
    }

    fn budget(&self) -> String {
        let quota = &self.plan.provider.quota;
        let set = match (&self.plan.target.kind, self.plan.policy()) {
            (TargetKind::Embedded(_), Some(policy)) => {
                let budgets = &policy.budgets;
                let rate =
                    budgets.tokens.map_or_else(|| "any number of".to_owned(), |r| number(r.per_min_f64()));
                let span = show_duration(budgets.window().span());
                let at_once = match budgets.window() {
                    Window::Bucket { .. } => format!("and a burst of {span}"),
                    Window::Fixed { .. } => format!("in fixed windows of {span}"),
                    Window::Round { .. } => format!("in rounds of {span}"),
                    Window::Sliding { .. } => format!("in a sliding window of {span}"),
                };
                return format!("the embedded gateway is given {rate} tokens a minute {at_once}");
            }
            (_, Some(policy)) if policy.budgets.tokens.is_none() => {
                let calls = policy.budgets.concurrent.map_or_else(String::new, |calls| {
                    format!(", {} calls at once", thousands(u64::from(calls)))
                });
                return format!("none: the gateway is believed to limit no tokens{calls}");
            }
            _ => quota.burst().saturating_sub(std::time::Duration::from_millis(100)),
        };
        format!(
            "{} tokens a minute and a burst of {} tokens ({}, a little less than the provider's {})",
            number(quota.tokens.per_min_f64()),
            thousands(quota.tokens.whole_in(set)),
            show_duration(set),
            show_duration(quota.burst())
        )
    }
}
