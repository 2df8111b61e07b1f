//! The page in a real browser, where there is one (Debian's chromium): no word on its console, every check in its
//! document, and the page of a run that goes on.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tenfold");
const GOLDEN: &str = include_str!("../fixtures/golden/passed.json");

/// The browser, if it is installed.
fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let version =
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    });
    if found.is_none() {
        // not by a macro, whose words are shown of failed tests only
        let _ = std::io::stderr().write_all(b"skipped: no chromium is installed\n");
    }
    found
}

/// Waits for a child, for at most a minute.
fn waited(mut child: Child) -> Output {
    fn all(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    }
    let (out, err) = (all(child.stdout.take().unwrap()), all(child.stderr.take().unwrap()));
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    let status = child.wait().unwrap();
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

/// What the browser makes of a page, with what it put on the console.
fn shown(browser: &str, url: &str, how: &[&str]) -> (String, Vec<String>) {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
    ]);
    command.args(["--enable-logging=stderr", "--v=0"]).args(how);
    command.arg(format!("--user-data-dir={}", profile.path().display())).arg(url);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let done = waited(child);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let said = String::from_utf8_lossy(&done.stderr)
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(str::to_owned)
        .collect();
    (String::from_utf8_lossy(&done.stdout).into_owned(), said)
}

/// The page of a report, written to `folder`.
fn page(report: &str, folder: &Path) -> String {
    let (json, html) = (folder.join("report.json"), folder.join("report.html"));
    std::fs::write(&json, report).unwrap();
    let made = Command::new(PROGRAM).args(["report", "--format", "html"]).arg(&json).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::write(&html, made.stdout).unwrap();
    format!("file://{}", html.display())
}

#[test]
fn the_page_renders_without_a_word_on_the_console() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("page.png");
    let url = page(GOLDEN, folder.path());
    let (dom, said) = shown(browser, &url, &["--dump-dom"]);
    assert_eq!(said, Vec::<String>::new());
    let report: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    for check in report["checks"].as_array().unwrap() {
        assert!(dom.contains(check["id"].as_str().unwrap()), "{check}");
    }
    let shot = format!("--screenshot={}", picture.display());
    let sizes: Vec<u64> = [&[][..], &["--blink-settings=preferredColorScheme=0"], &["--window-size=390,900"]]
        .iter()
        .map(|how| {
            let (_, said) = shown(browser, &url, &[&[shot.as_str()], *how].concat());
            assert_eq!(said, Vec::<String>::new(), "{how:?}");
            std::fs::metadata(&picture).unwrap().len()
        })
        .collect();
    assert!(sizes.iter().all(|bytes| *bytes > 10_000), "{sizes:?}");
}

#[test]
fn what_a_server_sent_runs_nowhere() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let nasty = r#"</title></script><script>document.title = 'taken'; console.log('taken')</script><img src=x onerror=\"console.log('taken')\">"#;
    let mut hostile = GOLDEN.to_owned();
    for text in ["the embedded gateway", "708 of 708", "about:blank", "promotion"] {
        assert!(hostile.contains(text), "{text}");
        hostile = hostile.replace(text, nasty);
    }
    let (dom, said) = shown(browser, &page(&hostile, folder.path()), &["--dump-dom"]);
    assert_eq!(said, Vec::<String>::new());
    assert!(dom.contains("&lt;script&gt;document.title") && !dom.contains("<img"), "it is shown as text");
}

#[test]
fn a_run_that_goes_on_can_be_watched() {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "plans/smoke.yaml", "--dashboard", "127.0.0.1:0", "--format", "json", "--out"]);
    let mut run = command.arg(out.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(run.stderr.take().unwrap()).lines().map_while(Result::ok);
    let at =
        said.find_map(|line| line.strip_prefix("the run can be watched at ").map(str::to_owned)).unwrap();
    // what else it says must not fill the pipe
    let rest = thread::spawn(move || said.count());
    let fetch = || {
        let address = at.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let seen = (0..100).find_map(|_| {
        thread::sleep(Duration::from_millis(200));
        Some(fetch()).filter(|page| page.contains("RUNNING") && page.contains("id=\"depth\""))
    });
    let seen = seen.expect("the run is seen while it goes on");
    assert!(!seen.contains("✓"), "nothing is passed before the end");
    if let Some(browser) = browser() {
        // five seconds of the page's time: it looks for a newer one twice
        let (dom, said) = shown(browser, &at, &["--dump-dom", "--virtual-time-budget=5000"]);
        assert_eq!(said, Vec::<String>::new());
        assert!(dom.contains("RUNNING") && dom.contains("nothing is judged before the end"), "{dom}");
    }
    let pid = run.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    rest.join().unwrap();
}

#[test]
fn a_dashboard_for_other_machines_must_be_meant() {
    let mut command = Command::new(PROGRAM);
    let told = command.args(["run", "plans/smoke.yaml", "--dashboard", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(told.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&told.stderr).contains("--confirm-dashboard 0.0.0.0"));
}
