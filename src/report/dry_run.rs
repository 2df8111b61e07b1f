use std::io;

use super::lines::{Colour, Lines};
use super::{Style, TracePart, forecast_text};
use crate::check::words::{number, seconds, thousands};
use crate::forecast::Forecast;
use crate::plan::{Plan, TargetKind};
use crate::provider::Engine;
use crate::units::{Bytes, Window, show_duration};

const HEAD: usize = 20;

/// What a run needs of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DryNeeds {
    /// The most requests open at once.
    pub open: u64,
    /// Connections to the target, and how many requests each carries at once.
    pub connections: (u64, u64),
    /// Addresses they come from.
    pub sources: u64,
    /// Connections to the provider.
    pub calls: u64,
    /// Descriptors of this process.
    pub descriptors: u64,
    /// Local ports to one address, from one address.
    pub ports: u64,
    /// What wiremock will have kept at the end.
    pub provider_keeps: Bytes,
    /// What open requests and calls take of our memory.
    pub open_take: Bytes,
}

/// What a run would do, for a look before it does.
#[derive(Debug, Clone, Copy)]
pub struct DryRun<'a> {
    /// The plan as it would be run.
    pub plan: &'a Plan,
    /// The forecast for that.
    pub forecast: &'a Forecast,
    /// What it needs of this machine.
    pub needs: DryNeeds,
    /// The address the gateway shall call; `None` if a free port will be taken when it starts.
    pub provider: Option<&'a str>,
}

impl DryRun<'_> {
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
        item("  memory here", self.memory())?;
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
        let DryNeeds {
            open, connections: (connections, streams), sources, calls, descriptors, ports, ..
        } = self.needs;
        let over = match streams {
            1 => String::new(),
            _ => format!(", over {} connections of {} streams", thousands(connections), thousands(streams)),
        };
        let from = match sources {
            1 => String::new(),
            n => format!(", {} from each of {n} addresses", thousands(connections.div_ceil(n))),
        };
        format!(
            "up to {} requests open at once if nobody is refused{over}{from}; {} descriptors here ({} connections to the \
             target, {} to the provider, and some besides), and two for each request in the gateway; {} of {} local ports",
            thousands(open),
            thousands(descriptors),
            thousands(connections),
            thousands(calls),
            thousands(connections),
            thousands(ports * sources)
        )
    }

    fn memory(&self) -> String {
        let provider = match self.plan.provider.engine {
            Engine::Stream => "the provider keeps nothing of a request that has ended".to_owned(),
            Engine::Wiremock => {
                format!(
                    "up to {} in the provider, which keeps every request it sees",
                    self.needs.provider_keeps
                )
            }
        };
        format!("up to {} for open requests; {provider}", self.needs.open_take)
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
