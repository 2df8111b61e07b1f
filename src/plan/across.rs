//! What must hold between the parts of a plan, in the whole event and in its rehearsal.

use std::time::Duration;

use super::address::Address;
use super::{Plan, TargetKind};
use crate::admission::{self, bounds};
use crate::provider::{Count, Engine};
use crate::units::{Faults, Node, Place, Rate, Tokens, Value, nearest, plain_duration, show_duration};
use crate::workload::{Class, MOST_BYTES};

/// A bound of fewer requests moves by more than 3 % with each of them.
const FEW: f64 = 30.0;

/// The most bytes of a word, with its blank, that a tokenizer has many of.
const MOST_OF_TOKEN: f64 = 12.0;

/// The most callers of one run.
const MOST_CALLERS: f64 = 1e9;

/// Checks `plan`, read from `tree`. What cannot work goes to `faults`, what is probably not meant to `warnings`.
pub(super) fn check(plan: &Plan, tree: &Node, faults: &Faults, warnings: &Faults) {
    let small = plan.rehearsed();
    let across = Across { plan, small: &small, tree };
    across.bursts(faults);
    across.names(faults);
    across.tenants(faults);
    across.mixes(faults);
    across.size(faults);
    across.rounds(faults);
    across.sizes(faults);
    across.trace(faults);
    across.headers(faults);
    across.provider(faults, warnings);
    across.streams(faults);
    across.pages(faults);
    across.bound(warnings);
    across.service(warnings);
    if tree.get("target").is_some_and(|t| t.get("policy").is_some() && t.get("embedded").is_some()) {
        let place = across.place("target.policy");
        warnings.add(
            place,
            "target.policy",
            "not used: it tells what a `spawn` or `url` target is believed to do",
        );
    }
}

struct Across<'p> {
    plan: &'p Plan,
    /// The same plan as it is rehearsed.
    small: &'p Plan,
    tree: &'p Node,
}

impl Across<'_> {
    /// The place of what `path` leads to, or of the last thing on the way that is there.
    fn place(&self, path: &str) -> Place {
        let mut node = self.tree;
        for step in path.split('.') {
            let next = match &node.value {
                Value::Map(_) => node.get(step),
                Value::List(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                Value::Null | Value::Text { .. } => None,
            };
            let Some(next) = next else { break };
            node = next;
        }
        node.place.clone()
    }

    fn classes(&self) -> impl Iterator<Item = (String, &Class)> {
        self.plan.requests.classes().iter().enumerate().map(|(i, class)| (format!("requests.{i}"), class))
    }

    /// Every burst must hold the largest request, also once it is scaled: else that request could never be served.
    fn bursts(&self, faults: &Faults) {
        let quota = |plan: &Plan| (plan.provider.quota.tokens, plan.provider.quota.burst());
        let budgets = |plan: &Plan| {
            // each replica has its part
            let budgets = plan.policy()?.of_replica(0, true).budgets;
            // a window without a burst is as large as its period
            budgets.tokens.filter(|_| budgets.period.is_none()).map(|tokens| (tokens, budgets.burst))
        };
        let whole = self.burst("provider.quota.burst", quota(self.plan), quota(self.small), faults);
        if !whole && !self.own_budgets() {
            // they follow the quota: one fault says it all
            return;
        }
        let path = match self.plan.target.kind {
            TargetKind::Embedded(_) => "target.embedded.budgets.burst",
            TargetKind::Spawn(_) | TargetKind::Url { .. } => "target.policy.budgets.burst",
        };
        if let (Some(whole), Some(small)) = (budgets(self.plan), budgets(self.small)) {
            self.burst(path, whole, small, faults);
        }
    }

    fn own_budgets(&self) -> bool {
        matches!(&self.plan.target.kind, TargetKind::Embedded(embedded) if embedded.own_budgets)
    }

    /// Whether the burst at `path` is large enough, of the whole event and as rehearsed.
    fn burst(&self, path: &str, whole: (Rate, Duration), small: (Rate, Duration), faults: &Faults) -> bool {
        let Some(class) = self.plan.requests.classes().iter().max_by_key(|class| class.largest_hold()) else {
            return true;
        };
        let hold = class.largest_hold();
        let (rate, burst, scaled) = match (fits(whole, hold), fits(small, hold)) {
            (true, true) => return true,
            (false, _) => (whole.0, whole.1, String::new()),
            (true, false) => (small.0, small.1, format!(" at scale {}", self.small.scale)),
        };
        // rounded up to the millisecond, so that what is advised is enough
        let least = Duration::from_millis(rate.time_for(hold.get()).as_nanos().div_ceil(1_000_000) as u64);
        let message = format!(
            "a burst of {} of {} tokens a minute{scaled} is {} tokens, less than the {} that one `{}` request holds \
             ({} prompt + {} max_tokens): it could never be served; the least burst is {}",
            show_duration(burst),
            grouped(rate.per_min_f64().round() as u64),
            grouped(rate.whole_in(burst)),
            grouped(hold.get()),
            class.name,
            grouped(class.prompt.most().get()),
            grouped(class.max_tokens.get()),
            plain_duration(least),
        );
        faults.add(self.place(path), path, message);
        false
    }

    /// Names travel in headers and stand in reports.
    fn names(&self, faults: &Faults) {
        let phases =
            self.plan.load.phases.iter().enumerate().map(|(i, p)| (format!("load.phases.{i}.name"), &p.name));
        let classes = self.classes().flat_map(|(path, class)| {
            [(format!("{path}.name"), &class.name), (format!("{path}.tenant"), &class.tenant)]
        });
        let own = [("target.request.model".to_owned(), &self.plan.target.request.model)];
        for (path, name) in phases.chain(classes).chain(own) {
            let empty = name.is_empty() && !path.ends_with(".tenant");
            if empty || name.len() > 100 || name.chars().any(char::is_control) {
                faults.add(self.place(&path), path, "a name has 1 to 100 letters and no line breaks");
            }
        }
    }

    /// The mix of a phase is of classes there are, and somebody comes.
    fn mixes(&self, faults: &Faults) {
        let known: Vec<&str> = self.plan.requests.classes().iter().map(|class| class.name.as_str()).collect();
        for (i, phase) in self.plan.load.phases.iter().enumerate() {
            for name in
                phase.mix.iter().flat_map(|mix| mix.keys()).filter(|name| !known.contains(&name.as_str()))
            {
                let path = format!("load.phases.{i}.mix.{name}");
                let guess =
                    nearest(name, &known).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let message =
                    format!("no class of requests is named `{name}` ({guess}known: {})", known.join(", "));
                faults.add(self.place(&path), path, message);
            }
        }
    }

    /// A tenant's name is a header's value, and a gateway that knows its tenants refuses all others.
    fn tenants(&self, faults: &Faults) {
        let known = self.plan.policy().map(|policy| policy.tenants.as_slice()).unwrap_or_default();
        for (path, class) in self.classes() {
            let (path, name) = (format!("{path}.tenant"), class.tenant.as_str());
            if !name.bytes().all(|b| b.is_ascii_graphic()) {
                let message =
                    format!("`{name}` cannot be sent: a tenant's name is of visible ASCII characters");
                faults.add(self.place(&path), path, message);
            } else if !known.is_empty() && known.iter().all(|tenant| tenant.name != name) {
                let names: Vec<_> = known.iter().take(10).map(|tenant| tenant.name.as_str()).collect();
                let message = format!(
                    "`{}` is sent for tenant `{name}`, whom the gateway does not know and refuses: it knows {}",
                    class.name,
                    names.join(", "),
                );
                faults.add(self.place(&path), path, message);
            }
        }
    }

    /// A run of more callers than this is a mistake in a unit.
    fn size(&self, faults: &Faults) {
        let expected = self.small.load.expected();
        if expected > MOST_CALLERS {
            let message = format!(
                "{expected:.2e} callers would arrive; a run has at most {MOST_CALLERS:.0e}: check the rates and lengths"
            );
            faults.add(self.place("load.phases"), "load.phases", message);
        }
    }

    /// Factors belong to classes, and the callers of one round are kept at once.
    fn rounds(&self, faults: &Faults) {
        let Some(rounds) = self.plan.load.arrivals.rounds() else { return };
        let path = "load.arrivals.rounds.factors";
        let names: Vec<&str> = self.plan.requests.classes().iter().map(|class| class.name.as_str()).collect();
        for name in rounds.factors.keys().filter(|name| !names.contains(&name.as_str())) {
            let known = names.join(", ");
            faults.add(self.place(path), path, format!("`{name}` is no class of requests (known: {known})"));
        }
        let most = |phase: &crate::workload::Phase| phase.rate.per_sec_f64() * rounds.every.as_secs_f64();
        let factor = rounds.factors.values().flatten().fold(1.0, |a: f64, b| a.max(*b));
        if self.plan.load.phases.iter().map(most).fold(0.0, f64::max) * factor > 1e6 {
            let path = "load.arrivals.rounds.every";
            faults.add(self.place(path), path, "more than a million callers would come in one round");
        }
    }

    /// Sizes of a trace need one, and prompts have to be such as can be made.
    fn sizes(&self, faults: &Faults) {
        let traced = self.plan.load.arrivals.trace().is_some();
        for (path, class) in self.classes() {
            for (key, size) in [("prompt", &class.prompt), ("output", &class.output)] {
                if size.is_traced() && !traced {
                    let path = format!("{path}.{key}.tokens");
                    let message = "`trace` takes what a trace says, and `load.arrivals` plays none";
                    faults.add(self.place(&path), path, message);
                }
            }
            let path = format!("{path}.prompt");
            let (tokens, bytes) = (class.prompt.most().get() as f64, class.most_bytes());
            if bytes > MOST_BYTES {
                let message = format!("the longest prompt would be {bytes}: at most {MOST_BYTES} are sent");
                faults.add(self.place(&path), &path, message);
            }
            let each = (bytes.get() as f64 + 1.0) / tokens.max(1.0);
            let words = self.plan.provider.count == Count::Words;
            if traced && words && each < 2.0 || !words && !(2.0..=MOST_OF_TOKEN).contains(&each) {
                let most = if words { "two and more" } else { "2 to 12" };
                let message =
                    format!("{each:.1} bytes a token, where its way to count needs {most}: set `bytes`");
                faults.add(self.place(&path), path, message);
            }
        }
    }

    /// Also shortened, each phase has rows of the trace.
    fn trace(&self, faults: &Faults) {
        let Some(trace) = self.plan.load.arrivals.trace() else { return };
        for (at, phase) in self.small.load.phases.iter().enumerate() {
            if trace.rows_in(at, phase.lasts) == Some(0) {
                let path = format!("rehearsal.phases.{}", phase.name);
                let message = format!(
                    "no row of the trace lies in the first {} of phase `{}`",
                    show_duration(phase.lasts),
                    phase.name
                );
                faults.add(self.place(&path), path, message);
            }
        }
    }

    /// The header of the deadline is set by us.
    fn headers(&self, faults: &Faults) {
        let header = &self.plan.target.deadline.header;
        if self.plan.target.request.headers.contains_key(header) {
            let path = format!("target.request.headers.{header}");
            let message =
                format!("`{header}` carries the deadline (`target.deadline.header`): leave it out here");
            faults.add(self.place(&path), path, message);
        }
    }

    /// The gateway must be able to call the provider.
    fn provider(&self, faults: &Faults, warnings: &Faults) {
        let provider = &self.plan.provider;
        let path = "provider.advertise";
        if let Some(message) = provider.advertise.as_deref().and_then(|url| Address::parse(url).err()) {
            faults.add(self.place(path), path, message);
        }
        let TargetKind::Url { url, .. } = &self.plan.target.kind else { return };
        let Ok(target) = Address::parse(url) else { return };
        let own = provider.listen.parse().is_ok_and(|at: std::net::SocketAddr| at.ip().is_loopback());
        if !target.is_loopback() && own && provider.advertise.is_none() {
            let message = format!(
                "the gateway at {} cannot call {}: listen on an address it can reach, and name it in `advertise`",
                target.host, provider.listen,
            );
            warnings.add(self.place("provider.listen"), "provider.listen", message);
        }
    }

    /// Who asks for a stream needs a provider that gives one. What is behind a gateway that runs elsewhere is its own
    /// affair.
    fn streams(&self, faults: &Faults) {
        let elsewhere = matches!(self.plan.target.kind, TargetKind::Url { .. });
        if self.plan.provider.engine == Engine::Stream || elsewhere {
            return;
        }
        for (path, class) in self.classes().filter(|(_, class)| class.stream) {
            let path = format!("{path}.stream");
            let message = format!(
                "`{}` asks for streamed answers, and `provider.engine: wiremock` sends them whole: write \
                 `provider: {{ engine: stream }}`, or `stream: false`",
                class.name
            );
            faults.add(self.place(&path), path, message);
        }
    }

    /// A bound of a few requests is coarse, and one of none refuses everybody who would have to wait.
    fn bound(&self, warnings: &Faults) {
        let Some(policy) = self.small.policy() else { return };
        if self.plan.load.arrivals.rounds().is_some() {
            // a gate that counts units of work in rounds bounds work, not waiting
            return;
        }
        for (path, class) in self.classes() {
            let Some(tokens) = effective_bound(policy, class) else { continue };
            let requests = tokens / class.hold();
            let spent = policy.service.start.saturating_add(policy.margin);
            let path = format!("{path}.deadline");
            if class.deadline <= spent {
                let message = format!(
                    "a deadline of {} leaves nothing to wait: service ({}) and margin ({}) take it all",
                    show_duration(class.deadline),
                    show_duration(policy.service.start),
                    show_duration(policy.margin),
                );
                warnings.add(self.place(&path), path, message);
            } else if requests < FEW && !policy.bound.is_whole() {
                let message = format!(
                    "about {requests:.0} `{}` requests may wait: with fewer than {FEW:.0} the bound is coarse by more \
                     than 3 % a request; a longer deadline, a higher budget or a larger scale makes it finer",
                    class.name,
                );
                warnings.add(self.place(&path), path, message);
            }
        }
    }

    /// A free port is of use only to a command that is told of it.
    fn pages(&self, faults: &Faults) {
        let free = |page: &str| Address::parse_or_free(page).is_ok_and(|address| address.port == Some(0));
        if !matches!(self.plan.target.kind, TargetKind::Spawn(_)) && self.plan.pages().any(free) {
            let message =
                "port 0 is a free one that a spawned target is told of: write the port it listens at";
            faults.add(self.place("target"), "target", message);
        }
    }

    /// An answer that takes longer than its deadline is never in time.
    fn service(&self, warnings: &Faults) {
        for (path, class) in self.classes() {
            let takes = self.plan.provider.service.time_for(class.output.most());
            if takes >= class.deadline {
                let path = format!("{path}.deadline");
                let message = format!(
                    "the provider takes {} for {} tokens, the deadline is {}: no answer can be in time",
                    show_duration(takes),
                    class.output.most(),
                    show_duration(class.deadline),
                );
                warnings.add(self.place(&path), path, message);
            }
        }
    }
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn fits((rate, burst): (Rate, Duration), hold: Tokens) -> bool {
    rate.whole_in(burst) >= hold.get()
}

/// What a fresh caller of `class` may find waiting at most, in tokens: the bound less what is kept for those who return.
fn effective_bound(policy: &admission::Config, class: &Class) -> Option<f64> {
    let slack = class.deadline.saturating_sub(policy.service.start).saturating_sub(policy.margin);
    let fresh = policy.retry_after.reserve().map_or(1.0, |reserve| 1.0 - reserve.share.get());
    let drain = policy.budgets.drain(class.largest_hold(), policy.service.start)?;
    let bound = bounds::most(&*policy.bound, drain, slack, class.largest_hold(), class.most_bytes(), fresh)?;
    Some(bound.get() as f64)
}
