//! Streamed answers, read by both senders from servers of raw sockets.

use std::io::{Read as _, Write as _};

use super::*;
use crate::provider::Limits;
use crate::provider::wire::openai::OpenAi;
use crate::provider::wire::{APIS, Frames, Made};
use crate::units::Tokens;

/// A plan whose callers ask for streams of 4 tokens.
fn streaming(url: &str, sender: SenderKind, on_refusal: &str) -> Plan {
    let mut plan = testing::plan(url);
    plan.requests = testing::mix_streaming("500ms", on_refusal);
    plan.target.request.transport.sender = sender;
    plan
}

/// A chunked answer of `pieces`, of which the last is there only if it ended in order.
fn chunked(kind: &str, pieces: &[&str], ends: bool) -> String {
    let chunks: String = pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len())).collect();
    let end = if ends { "0\r\n\r\n" } else { "" };
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{end}")
}

const STREAM: &str = "text/event-stream; charset=utf-8";

fn frames(api: &dyn Api) -> Frames {
    let (tokens, reset) = (Tokens::new, Duration::ZERO);
    let limits = Limits { per_minute: tokens(9), remaining: tokens(9), reset, requests: None };
    let (prompt, output, unix) = (tokens(8), tokens(4), Duration::from_secs(1_790_000_000));
    let made = Made { id: "1", model: "m", prompt, output, limits: &limits, unix };
    api.frames(&made, true)
}

/// Each way a stream can end is told apart, whichever sender reads it, in both APIs. As in Layr-Labs/d-inference#915,
/// Growth-Circle/cadis#2547 and anthropics/anthropic-sdk-python#1258: a 200 is not yet an answer.
#[test]
fn a_stream_is_whole_cut_empty_broken_by_an_error_or_none_at_all() {
    for (sender, api) in
        SenderKind::ALL.iter().flat_map(|(_, kind)| APIS.iter().map(move |api| (*kind, *api)))
    {
        let next = AtomicU32::new(0);
        let server = Server::start(move |request| {
            assert_eq!(body_of(request)["stream"], true);
            let f = frames(api);
            let body = [f.opening.as_str(), &f.token, &f.token, &f.token, &f.token];
            let whole = [&body[..], &[f.closing.as_str()]].concat();
            Some(match next.fetch_add(1, Ordering::SeqCst) % 10 {
                0 | 1 => chunked(STREAM, &whole, true),
                // it ends in order, and without its end
                2 => chunked(STREAM, &body[..4], true),
                // its connection ends first
                3 => chunked(STREAM, &body[..4], false),
                4 => chunked(STREAM, &[], true),
                5 => chunked(STREAM, &[body[0], body[1], &f.error], true),
                6 => chunked(STREAM, &["<html>\n\nbusy</html>\n\n"], true),
                7 => chunked("application/json", &[r#"{"choices":[]}"#], true),
                8 => chunked(STREAM, &[body[0], &f.closing], true),
                _ => chunked(STREAM, &[&body[..], &[f.closing.trim_end()]].concat(), true),
            })
        });
        let mut plan = streaming(&server.url, sender, "give_up");
        plan.provider.api = api;
        let played = play(&plan, &server.url);
        let name = format!("{sender:?} {}", api.name());
        assert_eq!(played.sent(), 50, "{name}");
        let streamed: Vec<_> =
            played.answers().filter_map(|a| Some((a.usable, a.streamed.clone()?))).collect();
        let count =
            |usable, flawed| streamed.iter().filter(|(u, s)| (*u, s.flawed) == (usable, flawed)).count();
        assert_eq!(
            (count(true, false), count(true, true), count(false, false)),
            (10, 5, 5),
            "{name}: {streamed:?}"
        );
        assert!(streamed.iter().all(|(_, s)| s.used == Some(Tokens::new(12))), "{name}");
        assert_eq!((played.broken(Broken::Cut), played.broken(Broken::Empty)), (10, 5), "{name}");
        assert_eq!((played.broken(Broken::ErrorInside), played.broken(Broken::NoStream)), (5, 10), "{name}");
        assert_eq!(played.tokens(), 15 * 4 + 10 * 3 + 5, "{name}: those of cut ones count too");
    }
}

/// As in sgl-project/genai-bench#44: the first token is the first piece of content, not the head, the role or the usage.
#[test]
fn the_first_token_is_neither_the_head_nor_the_role_nor_the_usage() {
    for (_, sender) in SenderKind::ALL {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut plan = streaming(&url, sender, "give_up");
        plan.load = testing::load("1/s", Duration::from_secs(1));
        plan.requests = testing::mix_streaming("10s", "give_up");
        let (said, moments) = mpsc::channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 8 << 10];
            assert!(stream.read(&mut buffer).unwrap() > 0);
            let f = frames(&OpenAi);
            let mut write = |text: &str| stream.write_all(text.as_bytes()).unwrap();
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
            write(&chunk(&f.opening));
            thread::sleep(Duration::from_millis(60));
            // in the middle of a character's escape, and of a line
            let token = chunk(&f.token);
            write(&token[..30]);
            thread::sleep(Duration::from_millis(60));
            said.send(()).unwrap();
            write(&token[30..]);
            thread::sleep(Duration::from_millis(80));
            write(&chunk(&f.token));
            thread::sleep(Duration::from_millis(60));
            write(&format!("{}0\r\n\r\n", chunk(&f.closing)));
        });
        let played = play(&plan, &url);
        moments.recv().unwrap();
        let sent = played.sightings.iter().find_map(|s| match s {
            Sighting::Sent { at, .. } => Some(*at),
            _ => None,
        });
        let tokens = played.sightings.iter().find_map(|s| match s {
            Sighting::Tokens { first: Some(first), gaps, .. } => {
                Some((*first, gaps.iter().collect::<Vec<_>>()))
            }
            _ => None,
        });
        let ended = played.sightings.iter().find_map(|s| match s {
            Sighting::Answered { at, .. } => Some(*at),
            _ => None,
        });
        let (first, gaps) = tokens.unwrap();
        let (sent, ended) = (sent.unwrap(), ended.unwrap());
        assert!(first.since(sent) >= Duration::from_millis(120), "{sender:?} {:?}", first.since(sent));
        assert!(matches!(gaps[..], [(gap, 1)] if gap >= Duration::from_millis(75)), "{sender:?} {gaps:?}");
        assert!(ended.since(first) >= Duration::from_millis(140), "{sender:?} the usage came after");
    }
}

/// A stream that has begun is not asked for again, whatever becomes of it: no SDK does. One that was refused is.
#[test]
fn what_has_begun_to_stream_is_not_asked_for_again() {
    let (next, retry) = (AtomicU32::new(0), "{ retry: { like: openai-python } }");
    let server = Server::start(move |_| {
        let f = frames(&OpenAi);
        Some(match next.fetch_add(1, Ordering::SeqCst) {
            0 => http("500 Internal Server Error", "", "{}"),
            n if n % 2 == 0 => chunked(STREAM, &[&f.opening, &f.token], false),
            _ => chunked(STREAM, &[&f.opening, &f.error], true),
        })
    });
    let mut plan = streaming(&server.url, SenderKind::Hyper, retry);
    plan.load = testing::load("10/s", Duration::from_secs(1));
    let played = play(&plan, &server.url);
    let again = |s: &Sighting| matches!(s, Sighting::Again { .. });
    assert_eq!((played.sent(), played.count(again)), (11, 1));
    assert_eq!(played.broken(Broken::ErrorInside) + played.broken(Broken::Cut), 10);
}
