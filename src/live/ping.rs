//! A small request to the target's health URL all through the run: what refusals are compared with, and what says that
//! the target, or this machine, was slow.

use std::sync::mpsc::Sender;
use std::time::Duration;

use reqwest::{Client, Url};

use super::{Clock, Seen, trouble};
use crate::measure::Vital;

/// From one ping to the next.
const EVERY: Duration = Duration::from_millis(200);
/// A ping that takes longer has no answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most of its body that is read.
const LARGEST: usize = 64 << 10;

/// Pings `url` over `http`, a client of its own, until dropped. A ping that is slow makes the next ones wait: there is
/// never more than one.
pub(super) async fn ping(http: Client, url: Url, clock: Clock, out: Sender<Seen>) {
    let mut next = clock.now();
    loop {
        tokio::time::sleep_until(clock.tokio_instant(next)).await;
        let at = clock.now();
        let answered = tokio::time::timeout(PATIENCE, once(&http, &url)).await.unwrap_or(Some(false));
        let vital = match answered {
            Some(answered) => Vital::Ping { at, took: answered.then(|| clock.now().since(at)) },
            // a lack of ours says nothing of the target
            None => Vital::NoPing { at },
        };
        if out.send(Seen::Vital(vital)).is_err() {
            return;
        }
        next = (next + EVERY).max(clock.now());
    }
}

/// Whether there was a whole answer, of any status: a target without a health URL answers 404, and is alive. `None` if this
/// machine had no descriptor or memory left for it.
async fn once(http: &Client, url: &Url) -> Option<bool> {
    let failed = |error: reqwest::Error| (!trouble::starved(&error)).then_some(false);
    let mut response = match http.get(url.clone()).send().await {
        Ok(response) => response,
        Err(error) => return failed(error),
    };
    let mut read = 0;
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if read + chunk.len() <= LARGEST => read += chunk.len(),
            Ok(None) => return Some(true),
            Ok(Some(_)) => return Some(false),
            Err(error) => return failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::live::request;
    use crate::live::testing::{self, Server, http};

    #[test]
    fn answers_of_any_status_are_signs_of_life_and_silence_is_none() {
        let turn = AtomicUsize::new(0);
        let server = Server::start(move |_| match turn.fetch_add(1, Ordering::SeqCst) {
            0 => Some(http("200 OK", "", "ok")),
            1 => Some(http("404 Not Found", "", "")),
            _ => Some(String::new()),
        });
        let plan = testing::plan(&server.url);
        let client = request::client(&plan.target.request).unwrap().build().unwrap();
        let url = request::join(&server.url, "/healthz").unwrap();
        let (out, seen) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pings = runtime.block_on(async {
            let task = tokio::spawn(ping(client, url, Clock::start(), out));
            let pings =
                tokio::task::spawn_blocking(move || seen.iter().take(3).collect::<Vec<_>>()).await.unwrap();
            task.abort();
            pings
        });
        let answered =
            pings.iter().map(|seen| matches!(seen, Seen::Vital(Vital::Ping { took: Some(_), .. })));
        assert_eq!(answered.collect::<Vec<_>>(), [true, true, false]);
    }
}
