//! Other generators, where they are installed.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use procfs::process::Process;
use tenfold::live::run_before_others;

use crate::parts::Server;
use crate::{Outcome, Row, seen};

/// Another generator.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Its command line, and what it reads on stdin, for a URL, a rate and seconds.
    call: fn(&str, u64, u64) -> (Vec<String>, String),
}

const ALL: [Peer; 6] = [
    Peer { name: "fortio", call: fortio },
    Peer { name: "h2load", call: h2load },
    Peer { name: "hey", call: hey },
    Peer { name: "k6", call: k6 },
    Peer { name: "oha", call: oha },
    Peer { name: "vegeta", call: vegeta },
];

/// Those that are installed, and the names of those that are not.
pub(crate) fn installed() -> (Vec<Peer>, Vec<&'static str>) {
    let paths: Vec<PathBuf> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let (there, absent): (Vec<Peer>, Vec<Peer>) =
        ALL.into_iter().partition(|peer| paths.iter().any(|path| path.join(peer.name).is_file()));
    (there, absent.iter().map(|peer| peer.name).collect())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn fortio(url: &str, rate: u64, secs: u64) -> (Vec<String>, String) {
    let args = format!(
        "load -quiet -uniform -nocatchup -c {FIXED} -qps {rate} -t {secs}s -payload {{}} {url}/v1/chat/completions"
    );
    (words(&args), String::new())
}

/// How many connections the peers of a fixed number have.
const FIXED: u64 = 64;

fn h2load(url: &str, rate: u64, secs: u64) -> (Vec<String>, String) {
    let each = rate as f64 / FIXED as f64;
    // it sends a POST only where it has a file to send
    let body = std::env::temp_dir().join("tenfold-generator-body.json");
    let body =
        std::fs::write(&body, "{}").map_or_else(|_| "/dev/null".into(), |()| body.display().to_string());
    let args = format!("--h1 -c {FIXED} --rps {each} -D {secs} -d {body} {url}/v1/chat/completions");
    (words(&args), String::new())
}

fn hey(url: &str, rate: u64, secs: u64) -> (Vec<String>, String) {
    let each = rate as f64 / FIXED as f64;
    let args = format!("-c {FIXED} -q {each} -z {secs}s -m POST -d {{}} {url}/v1/chat/completions");
    (words(&args), String::new())
}

fn oha(url: &str, rate: u64, secs: u64) -> (Vec<String>, String) {
    let args = format!("--no-tui -c {FIXED} -q {rate} -z {secs}s -m POST -d {{}} {url}/v1/chat/completions");
    (words(&args), String::new())
}

fn vegeta(url: &str, rate: u64, secs: u64) -> (Vec<String>, String) {
    let args = format!("attack -rate={rate}/s -duration={secs}s -output=/dev/null");
    (words(&args), format!("POST {url}/v1/chat/completions\n"))
}

fn k6(url: &str, rate: u64, secs: u64) -> (Vec<String>, String) {
    let script = format!(
        "import http from 'k6/http';\n\
         export const options = {{ discardResponseBodies: true, scenarios: {{ steady: {{ executor: 'constant-arrival-rate', \
         rate: {rate}, timeUnit: '1s', duration: '{secs}s', preAllocatedVUs: 200, maxVUs: 2000 }} }} }};\n\
         export default () => {{ http.post('{url}/v1/chat/completions', '{{}}'); }};\n"
    );
    (words("run --quiet -"), script)
}

impl Peer {
    /// Lets it send, on the core it inherits from this process, and before all else that runs there.
    pub(crate) fn send(&self, server: &mut Server, rate: u64, secs: u64) -> Outcome<Row> {
        let (args, input) = (self.call)(&server.url, rate, secs);
        let before = children()?;
        let mut command = Command::new(self.name);
        let quiet = command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // what a preferred thread starts is preferred
        let mut child = thread::scope(|scope| {
            let start = || {
                run_before_others();
                quiet.spawn()
            };
            scope.spawn(start).join().map_err(|_| "it was not started")
        })??;
        // one that reads nothing may have closed it
        let _ = child.stdin.take().ok_or("no stdin")?.write_all(input.as_bytes());
        let status = child.wait()?;
        if !status.success() {
            return Err(format!("it ended with {status}").into());
        }
        let cpu = (children()? - before) / (rate * secs) as f64 * 1e3;
        seen(server, rate, cpu, String::new())
    }
}

/// The processor time of all children that have ended, in seconds.
fn children() -> Outcome<f64> {
    let stat = Process::myself()?.stat()?;
    Ok((stat.cutime + stat.cstime) as f64 / procfs::ticks_per_second() as f64)
}
