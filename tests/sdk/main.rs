//! The official Python clients of OpenAI and Anthropic as callers: of the provider, and of the whole chain. What works
//! with the real APIs works here: answers, errors, retries and what they wait, streams.
//!
//! They run where Python has the packages `openai` and `anthropic`: `python3`, or what `TENFOLD_PYTHON` names, or
//! `target/python`, where `.ci/run` installs them. Elsewhere they say that they were skipped.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tenfold::provider::Limits;
use tenfold::provider::wire::{APIS, Api, Made};
use tenfold::units::Tokens;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// One of the two parties, in a process of its own.
struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(args: &[&str], input: &str) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
    command.arg("serve").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    Served { child, url }
}

/// Tokens a minute, and how many seconds of them may be used at once.
#[derive(Clone, Copy)]
struct Budget(u64, u64);

/// More than is ever wanted.
const PLENTY: Budget = Budget(6_000_000, 1);
/// Enough for one call of 8 tokens, and for the next after a second and more.
const SHORT: Budget = Budget(300, 2);

fn provider(api: &dyn Api, Budget(tokens, burst): Budget) -> Served {
    let sets = [
        format!("provider.api={}", api.name()),
        format!("provider.quota={{tokens_per_minute: {tokens}, burst: {burst}s}}"),
        "provider.service={first_token: 50ms, per_token: 10ms}".to_owned(),
        // nothing here is played of the load, which only has to fit
        "requests.chat.prompt={tokens: 1}".to_owned(),
        "requests.chat.max_tokens=1".to_owned(),
    ];
    let plan = Path::new(ROOT).join("plans/streams.yaml");
    let mut args = vec!["provider", plan.to_str().unwrap()];
    args.extend(sets.iter().flat_map(|set| ["--set", set.as_str()]));
    serve(&args, "")
}

/// A gateway before `provider`; whoever would have to wait is refused.
fn gateway(api: &dyn Api, provider: &Served, Budget(tokens, burst): Budget) -> Served {
    let config = json!({
        "api": api.name(), "provider": provider.url, "path": api.path(), "bound": { "tokens": 1 },
        "service": { "start": "200ms" }, "margin": "0ms", "retry_after": "room",
        "budgets": { "tokens_per_minute": tokens, "burst": format!("{burst}s") },
    });
    serve(&["gateway", "--config", "-"], &config.to_string())
}

/// A Python with both packages; `None`, with a word on stderr, where there is none.
fn python() -> Option<String> {
    let own = Path::new(ROOT).join("target/python/bin/python").to_string_lossy().into_owned();
    let named = std::env::var("TENFOLD_PYTHON").ok();
    let has = |python: &String| {
        let mut command = Command::new(python);
        command.args(["-c", "import openai, anthropic"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let found = named.into_iter().chain([own, "python3".to_owned()]).find(has);
    if found.is_none() {
        // written past the capture of test output, so that a skipped test is seen to be one
        let _ = std::io::stderr().write_all(b"skipped: no Python with the packages openai and anthropic\n");
    }
    found
}

/// What the client says of a call.
fn call(python: &str, api: &dyn Api, name: &str, base: &str) -> Value {
    let mut command = Command::new(python);
    command.arg(Path::new(ROOT).join("tests/sdk/calls.py")).args([api.name(), name, base]);
    // no settings of this machine's
    for key in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(key);
    }
    let out = command.env("NO_PROXY", "127.0.0.1").output().unwrap();
    let failed = || String::from_utf8_lossy(&out.stderr).into_owned();
    serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{} {name}: {}", api.name(), failed()))
}

#[test]
fn answers_and_streams_are_read_from_the_provider_and_through_the_chain() {
    let Some(python) = python() else { return };
    for api in APIS.iter().copied() {
        let provider = provider(api, PLENTY);
        let gateway = gateway(api, &provider, PLENTY);
        for base in [&provider.url, &gateway.url] {
            let said = call(&python, api, "whole", base);
            assert_eq!(said, json!({ "words": 5, "used": 8 }), "{} at {base}", api.name());
            let said = call(&python, api, "streamed", base);
            let why = if api.name() == "openai" { "stop" } else { "end_turn" };
            assert_eq!((&said["words"], &said["used"], &said["why"]), (&json!(20), &json!(23), &json!(why)));
            assert!(said["took"].as_f64().unwrap() >= 0.24, "token by token: {said}");
        }
    }
}

/// The provider refuses with a 429, the gateway with a 503; both say when to come back, and the clients do.
#[test]
fn a_refused_call_is_made_again_when_it_was_told() {
    let Some(python) = python() else { return };
    for api in APIS.iter().copied() {
        let (short, plenty) = (provider(api, SHORT), provider(api, PLENTY));
        let gateway = gateway(api, &plenty, SHORT);
        for (base, status) in [(&short.url, 429), (&gateway.url, 503)] {
            let (said, name) = (call(&python, api, "retried", base), api.name());
            let refused = &said["refused"];
            let kind = match (status, name) {
                (429, _) => "RateLimitError",
                (_, "openai") => "InternalServerError",
                _ => "ServiceUnavailableError",
            };
            assert_eq!(
                (&refused["status"], &refused["kind"]),
                (&json!(status), &json!(kind)),
                "{name} {said}"
            );
            let told: f64 = refused["retry_after"].as_str().unwrap().parse().unwrap();
            assert!((1.0..=2.0).contains(&told), "{name} {said}");
            // its own wait without a word is half a second at the most
            let took = |said: &Value| said["took"].as_f64().unwrap();
            assert!(said["words"] == 5 && took(&said) > 0.7, "{name} {said}");
            let said = call(&python, api, "retried_stream", base);
            assert!(said["words"] == 5 && took(&said) > 0.7, "{name} {said}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_told_as_the_real_api_tells_it() {
    let Some(python) = python() else { return };
    for api in APIS.iter().copied() {
        let provider = provider(api, SHORT);
        let said = call(&python, api, "bad", &provider.url);
        let kinds = [
            &said["zero"]["kind"],
            &said["zero"]["status"],
            &said["large"]["kind"],
            &said["large"]["status"],
        ];
        assert_eq!(
            kinds,
            [&json!("BadRequestError"), &json!(400), &json!("RateLimitError"), &json!(429)],
            "{said}"
        );
        assert_eq!(said["large"]["retry_after"], Value::Null, "it would be too large then, too");
        if api.name() == "openai" {
            assert_eq!(said["zero"]["param"], "max_completion_tokens", "{said}");
        }
    }
}

#[test]
fn a_stream_that_breaks_off_with_an_error_raises_it() {
    let Some(python) = python() else { return };
    for api in APIS.iter().copied() {
        let provider = provider(api, PLENTY);
        let gateway = gateway(api, &provider, PLENTY);
        let said = call(&python, api, "timed_out", &gateway.url);
        let message = said["message"].as_str().unwrap_or_default();
        assert!(message.contains("time for this request was up"), "{} {said}", api.name());
        let said = call(&python, api, "broken", &breaking(api));
        let message = said["message"].as_str().unwrap_or_default();
        assert!(message.to_lowercase().contains("overloaded"), "{} {said}", api.name());
    }
}

/// A server whose streams break off with an error after one token. Its thread ends with this process.
fn breaking(api: &'static dyn Api) -> String {
    let (per_minute, remaining, reset) = (Tokens::new(9), Tokens::new(9), Duration::ZERO);
    let limits = Limits { per_minute, remaining, reset, requests: None };
    let (prompt, output, unix) = (Tokens::new(3), Tokens::new(5), Duration::from_secs(1_790_000_000));
    let frames = api.frames(&Made { id: "1", model: "m", prompt, output, limits: &limits, unix }, true);
    let body = [frames.opening, frames.token, frames.error].concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let answer = format!("{head}{body}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 64 << 10];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
            // the rest of the request, so that closing does not take the answer back
            let _ = stream.shutdown(Shutdown::Write);
            while matches!(stream.read(&mut request), Ok(1..)) {}
        }
    });
    url
}
