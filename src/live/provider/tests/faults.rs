//! What a caller sees at its socket of a provider that is not as usual.

use super::*;
use crate::provider::Fault;
use crate::units::Share;

/// A provider of its own engine with `what` wrong for an hour, in a load that has begun.
fn broken(what: What) -> (ProviderShell, Receiver<Arrived>) {
    let faults = vec![Fault { at: Duration::ZERO, lasts: Duration::from_secs(3_600), what }];
    let quota = Quota::of_tokens(Rate::per_minute(60_000).unwrap(), Duration::from_secs(40));
    let service = Service::fixed(Duration::from_millis(20), Duration::from_millis(10));
    let (shell, seen) = start(&Config { faults, quota, service, ..streaming() });
    shell.begin(Moment::ZERO);
    (shell, seen)
}

fn all() -> Share {
    Share::new(1.0).unwrap()
}

/// A connection with a request of `body` on it.
fn ask(shell: &ProviderShell, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(shell.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let head = format!("POST {} HTTP/1.1\r\nhost: p\r\nx-request-id: {}", openai::PATH, id(1));
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// All that comes, and how it ends.
fn rest(mut stream: TcpStream) -> (String, io::Result<usize>) {
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes);
    (String::from_utf8(bytes).unwrap(), end)
}

fn arrived(seen: &Receiver<Arrived>) -> (bool, bool, u64) {
    match seen.recv_timeout(Duration::from_secs(10)).unwrap().sighting {
        Sighting::AtProvider { refused, faulty, charged, .. } => (refused, faulty, charged.get()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_has_the_form_of_the_api_and_costs_nothing() {
    for (status, told) in [(500, None), (529, None), (429, Some(5)), (503, Some(90))] {
        let retry_after = told.map(Duration::from_secs);
        let (shell, seen) = broken(What::Errors { status, share: all(), retry_after });
        let (got, head, text) = post(&shell, &format!("x-request-id: {}\r\n", id(1)), &body("u"));
        assert_eq!(got, status);
        let header = told.map(|secs| format!("retry-after: {secs}\r\n"));
        assert!(
            header.map_or_else(|| !head.contains("retry-after"), |header| head.contains(&header)),
            "{head}"
        );
        let error: Value = serde_json::from_str(&text).unwrap();
        assert!(error["error"]["message"].is_string(), "{text}");
        assert_eq!(arrived(&seen), (true, true, 0));
    }
}

#[test]
fn before_the_load_has_begun_nothing_is_wrong() {
    let what = What::Errors { status: 500, share: all(), retry_after: None };
    let (shell, _seen) = broken(what);
    shell.begin(Moment::from_secs(1_000_000));
    assert_eq!(post(&shell, "", &body("u")).0, 200);
    shell.begin(Moment::ZERO);
    assert_eq!(post(&shell, "", &body("u")).0, 500);
}

#[test]
fn a_reset_connection_has_no_answer() {
    let (shell, seen) = broken(What::Resets(all()));
    let (text, end) = rest(ask(&shell, &body("u")));
    assert_eq!(text, "");
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(arrived(&seen), (true, true, 0));
}

#[test]
fn a_whole_answer_and_a_streamed_one_break_off_in_the_middle() {
    let (shell, seen) = broken(What::Cuts(all()));
    let (text, _) = rest(ask(&shell, &body("u")));
    let (head, half) = text.split_once("\r\n\r\n").unwrap();
    let length =
        head.to_lowercase().lines().find_map(|line| Some(line.strip_prefix("content-length: ")?.to_owned()));
    assert_eq!(half.len(), length.unwrap().parse::<usize>().unwrap() / 2);
    assert_eq!(arrived(&seen), (false, true, 20));
    let (text, _) = rest(ask(&shell, STREAMED));
    assert!(text.contains("word") && !text.contains("[DONE]"), "{text}");
    assert_eq!(arrived(&seen), (false, true, 7));
}

#[test]
fn an_answer_that_never_comes_ends_when_its_caller_leaves() {
    let (shell, seen) = broken(What::Stalls(all()));
    let mut stream = ask(&shell, &body("u"));
    assert_eq!(arrived(&seen), (false, true, 20));
    // ten times as long as it would take
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let nothing = stream.read(&mut [0; 16]).unwrap_err().kind();
    assert!(matches!(nothing, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{nothing:?}");
    drop(stream);
    let left = seen.recv_timeout(Duration::from_secs(10)).unwrap().sighting;
    assert!(matches!(left, Sighting::CutOff { .. }), "{left:?}");
}

#[test]
fn garbage_is_no_answer_of_the_api_though_its_status_says_so() {
    let (shell, seen) = broken(What::Garbage(all()));
    let (status, _, text) = post(&shell, &format!("x-request-id: {}\r\n", id(1)), &body("u"));
    assert_eq!(status, 200);
    assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
    assert_eq!(arrived(&seen), (false, true, 20));
}
