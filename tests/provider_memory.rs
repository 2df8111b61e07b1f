//! What the provider keeps of each request, against what a run is told before it starts.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use procfs::process::Process;
use tenfold::live::ProviderShell;
use tenfold::provider::wire::Api as _;
use tenfold::provider::wire::openai::OpenAi;
use tenfold::units::{Bytes, Tokens};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const REQUESTS: u64 = 2_000;

struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Provider {
    fn anonymous(&self) -> Outcome<u64> {
        let process = Process::new(i32::try_from(self.0.id())?)?;
        Ok(process.status()?.rssanon.ok_or("no figure")? * 1_024)
    }
}

/// A provider in a process of its own, and its address.
fn started() -> Outcome<(Provider, String)> {
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/plans/smoke.yaml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
    command.args(["serve", "provider", plan, "--set", "provider.service.first_token=1ms"]);
    command.args(["--set", "provider.service.per_token=0ms"]);
    command.args(["--set", "provider.quota.tokens_per_minute=10_000_000_000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on http://").ok_or("it did not start")?;
    Ok((Provider(child), address.to_owned()))
}

fn call(streams: &mut [TcpStream], body: &str, count: u64) -> Outcome<()> {
    let mut buffer = [0; 4_096];
    for n in 0..count {
        let turn = usize::try_from(n)? % streams.len();
        let stream = &mut streams[turn];
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: p\r\ncontent-type: application/json\r\naccept: application/json\r\n\
             user-agent: test\r\nx-request-id: {n:032}\r\ntraceparent: 00-{n:032}-0000000000000001-01\r\n\
             x-request-timeout-ms: 4500\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut answer = Vec::new();
        while !answer.windows(4).any(|four| four == b"\r\n\r\n") || !answer.ends_with(b"}") {
            let read = stream.read(&mut buffer)?;
            assert!(read > 0);
            answer.extend_from_slice(&buffer[..read]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
    Ok(())
}

/// The estimate is what a run is refused by: it must not be far below what is kept, nor far above.
#[test]
fn what_is_kept_of_a_request_is_what_preflight_reckons_with() {
    for bytes in [300, 6_000, 20_000] {
        let (provider, address) = started().unwrap();
        let mut streams: Vec<_> = (0..10).map(|_| TcpStream::connect(&address).unwrap()).collect();
        let body = OpenAi.request("m", &"w ".repeat(bytes / 2), Tokens::new(4), "u", false);
        call(&mut streams, &body, 300).unwrap();
        let before = provider.anonymous().unwrap();
        call(&mut streams, &body, REQUESTS).unwrap();
        let kept = (provider.anonymous().unwrap() - before) as f64 / REQUESTS as f64;
        let reckoned = ProviderShell::keeps(1, Bytes::new(body.len() as u64)).get() as f64;
        let ratio = kept / reckoned;
        assert!((0.35..=1.2).contains(&ratio), "{bytes} bytes: {kept:.0} kept, {reckoned:.0} reckoned");
    }
}
