//! What the target says of itself: its pages of metrics, read four times a second all through the run.

use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use reqwest::{Client, Url};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::{Clock, LiveError, Seen, request};
use crate::measure::Vital;
use crate::plan::address::Address;
use crate::plan::{MemoryFrom, Page, Target};
use crate::units::{Bytes, Moment, Series};

/// From one reading to the next.
const EVERY: Duration = Duration::from_millis(250);
/// A page that takes longer did not come.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most of a page that is read: a large Envoy has a megabyte of it.
const LARGEST: usize = 8 << 20;

/// A page, and what is looked for on it.
#[derive(Debug)]
struct Reading {
    url: Url,
    queue_depth: Option<Series>,
    /// What the target says of its memory.
    memory: Option<Series>,
    /// What stands for its memory as seen from outside, where no process can be looked at.
    outside: Option<Series>,
}

/// A thread that reads pages until it is dropped.
#[derive(Debug)]
pub(super) struct Scraper {
    quit: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    /// Starts reading what `target` names, if it names something. It answers at `base`; `port` stands for port 0.
    pub(super) fn start(
        target: &Target,
        base: &str,
        port: Option<u16>,
        clock: Clock,
        out: Sender<Seen>,
    ) -> Result<Option<Self>, LiveError> {
        let readings = readings(target, base, port)?;
        if readings.is_empty() {
            return Ok(None);
        }
        let http = request::client(&target.request)?.build().map_err(LiveError::Client)?;
        let (quit, mut quitting) = watch::channel(false);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(LiveError::Thread)?;
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = read_on(&http, &readings, clock, &out) => {}
                    // it is asked to end, or nobody is left to ask
                    _ = quitting.changed() => {}
                }
            });
        };
        let thread = thread::Builder::new().name("metrics".into()).spawn(work).map_err(LiveError::Thread)?;
        Ok(Some(Self { quit, thread: Some(thread) }))
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        // a thread that has ended by itself listens no more
        let _ = self.quit.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The pages to be read; what stands on one page is read at once.
fn readings(target: &Target, base: &str, port: Option<u16>) -> Result<Vec<Reading>, LiveError> {
    let mut all: Vec<Reading> = Vec::new();
    if let Some(metrics) = &target.metrics {
        let url = resolved(&metrics.page, base, port)?;
        let (queue_depth, memory) = (metrics.queue_depth.clone(), metrics.memory.clone());
        all.push(Reading { url, queue_depth, memory, outside: None });
    }
    if let Some(MemoryFrom::Metric(metric)) = target.memory.as_ref().map(|source| &source.from) {
        let url = resolved(&metric.page, base, port)?;
        let outside = Some(metric.series.clone());
        match all.iter_mut().find(|reading| reading.url == url) {
            Some(reading) => reading.outside = outside,
            None => all.push(Reading { url, queue_depth: None, memory: None, outside }),
        }
    }
    Ok(all)
}

/// Where a page is.
fn resolved(page: &Page, base: &str, port: Option<u16>) -> Result<Url, LiveError> {
    match page {
        Page::Path(path) => request::join(base, path),
        Page::Url(url) => {
            let mut address = Address::parse_or_free(url).map_err(LiveError::Request)?;
            if address.port == Some(0) {
                address.port = port;
            }
            request::join(&address.origin(), &address.path)
        }
    }
}

async fn read_on(http: &Client, readings: &[Reading], clock: Clock, out: &Sender<Seen>) {
    let mut next = clock.now();
    loop {
        tokio::time::sleep_until(clock.tokio_instant(next)).await;
        for reading in readings {
            let asked = clock.now();
            let page = tokio::time::timeout(PATIENCE, page(http, &reading.url)).await.ok().flatten();
            // it was written somewhere between the question and the answer
            let at = asked + clock.now().since(asked) / 2;
            for vital in reading.vitals(at, page.as_deref()) {
                if out.send(Seen::Vital(vital)).is_err() {
                    return;
                }
            }
        }
        next = (next + EVERY).max(clock.now());
    }
}

impl Reading {
    /// What `page` says; nothing where it did not come.
    fn vitals(&self, at: Moment, page: Option<&str>) -> Vec<Vital> {
        let read = |series: &Option<Series>| whole(series.as_ref()?.sum(page?)?);
        let mut vitals = Vec::new();
        if let Some(bytes) = read(&self.outside).map(Bytes::new) {
            vitals.push(Vital::TargetMemory { at, bytes });
        }
        if self.queue_depth.is_some() || self.memory.is_some() {
            let (queue_depth, memory) = (read(&self.queue_depth), read(&self.memory).map(Bytes::new));
            vitals.push(Vital::Said { at, queue_depth, memory });
        }
        vitals
    }
}

/// A gauge of things that are counted: not less than none.
fn whole(value: f64) -> Option<u64> {
    // beyond the largest it stays there
    (value >= 0.0).then_some(value.round() as u64)
}

/// The text of a page; `None` if it is none, or too large.
pub(super) async fn page(http: &Client, url: &Url) -> Option<String> {
    let mut response = http.get(url.clone()).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > LARGEST {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    // a sign that is no UTF-8 spoils its own line only
    Some(String::from_utf8_lossy(&body).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::live::testing::{self, Server, http};
    use crate::plan::{MemorySource, Metric, Metrics};

    fn series(text: &str) -> Series {
        Series::parse(text).unwrap()
    }

    fn target(url: &str) -> Target {
        let mut target = testing::plan(url).target;
        let page = Page::Path("/metrics".into());
        target.metrics = Some(Metrics {
            page: page.clone(),
            queue_depth: Some(series("depth")),
            memory: Some(series("heap")),
        });
        let from = MemoryFrom::Metric(Metric { page, series: series("resident") });
        target.memory = Some(MemorySource { from, ceiling: None });
        target
    }

    #[test]
    fn one_page_is_read_once_for_all_that_stands_on_it_and_a_lost_one_is_told() {
        let turn = AtomicUsize::new(0);
        let server = Server::start(move |_| match turn.fetch_add(1, Ordering::SeqCst) {
            0 => Some(http("200 OK", "", "depth{a=\"b\"} 3\nheap 4e3\nresident 5000\n")),
            1 => Some(http("500 No", "", "depth 9\n")),
            _ => Some(http("200 OK", "", "depth -1\nheap NaN\n")),
        });
        let target = target(&server.url);
        let (out, seen) = mpsc::channel();
        let scraper = Scraper::start(&target, &server.url, None, Clock::start(), out).unwrap();
        let vitals: Vec<_> = seen.iter().take(4).collect();
        drop(scraper);
        let Seen::Vital(Vital::TargetMemory { bytes, .. }) = &vitals[0] else { panic!("{vitals:?}") };
        assert_eq!(bytes.get(), 5_000);
        let said = |seen: &Seen| match seen {
            Seen::Vital(Vital::Said { queue_depth, memory, .. }) => (*queue_depth, memory.map(Bytes::get)),
            other => panic!("{other:?}"),
        };
        assert_eq!(said(&vitals[1]), (Some(3), Some(4_000)));
        assert_eq!((said(&vitals[2]), said(&vitals[3])), ((None, None), (None, None)));
    }

    #[test]
    fn nothing_is_read_where_nothing_is_named() {
        let target = testing::plan("http://127.0.0.1:9").target;
        let (out, _seen) = mpsc::channel();
        assert!(Scraper::start(&target, "http://127.0.0.1:9", None, Clock::start(), out).unwrap().is_none());
    }

    #[test]
    fn port_0_is_the_one_that_was_kept() {
        let page = Page::Url("http://127.0.0.1:0/m".into());
        assert_eq!(
            resolved(&page, "http://127.0.0.1:1", Some(77)).unwrap().as_str(),
            "http://127.0.0.1:77/m"
        );
    }
}
