//! What the embedded gateway still holds once all is quiet, by its own page of metrics.

use std::time::Duration;

use tokio::runtime::Builder;

use super::{metrics, request};
use crate::measure::Holds;
use crate::plan::{Target, TargetKind};
use crate::units::{Series, Tokens};

/// Looks at the page: a gateway hears of the end of its calls a little later than their callers.
const LOOKS: usize = 20;
/// From one look to the next.
const BETWEEN: Duration = Duration::from_millis(50);
/// A page that takes longer did not come.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the gateway at `base` holds; `None` of a foreign one, or where its page cannot be read.
pub(super) fn at_quiet(target: &Target, base: &str) -> Option<Holds> {
    if !matches!(target.kind, TargetKind::Embedded(_)) {
        return None;
    }
    let url = request::join(base, "/metrics").ok()?;
    let http = request::client(&target.request).ok()?.build().ok()?;
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let mut last = None;
        for _ in 0..LOOKS {
            let page = tokio::time::timeout(PATIENCE, metrics::page(&http, &url)).await.ok().flatten();
            last = page.as_deref().and_then(holds);
            match last {
                Some(holds) if holds.requests > 0 => tokio::time::sleep(BETWEEN).await,
                Some(_) | None => break,
            }
        }
        last
    })
}

/// What a page says; `None` where it lacks one of the three.
fn holds(page: &str) -> Option<Holds> {
    let read = |name: &str| {
        let sum = Series::parse(name).ok()?.sum(page)?;
        (sum >= 0.0).then_some(sum.round() as u64)
    };
    let open = read("tenfold_gateway_in_flight_requests")?;
    let unknown = read("tenfold_gateway_unknown_requests")?;
    let tokens = Tokens::new(read("tenfold_gateway_held_tokens")?);
    Some(Holds { requests: open.saturating_sub(unknown), tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_unknown_end_are_no_leak_and_half_a_page_says_nothing() {
        let page = "tenfold_gateway_in_flight_requests 7\ntenfold_gateway_unknown_requests 5\n\
                    tenfold_gateway_held_tokens 8400\n";
        assert_eq!(holds(page), Some(Holds { requests: 2, tokens: Tokens::new(8_400) }));
        assert_eq!(holds(page.lines().next().unwrap()), None);
    }
}
