//! A child process with everything below it: a process group that ends with the run.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, kill_process_group, set_parent_process_death_signal};

use super::Clock;
use super::reading::escaped;

/// How much of what a child said last is kept.
const TAIL: usize = 4 << 10;
/// The longest line of its output that is looked at.
const LINE: u64 = 4 << 10;
/// How long a child may take to end when asked to.
const GRACE: Duration = Duration::from_secs(3);
/// From one look at an ending child to the next.
const LOOK: Duration = Duration::from_millis(10);

/// Names the process whose end a child of ours shall not outlive.
const PARENT: &str = "TENFOLD_PARENT";

/// The groups of all running children, for [`end_all_at_once`].
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every child of every run in this process without asking, for a process that is about to end itself.
pub fn end_all_at_once() {
    for group in groups().iter() {
        // one that has just ended is no error
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// A running child. Dropping it ends its whole process group: asked first, after three seconds without asking.
#[derive(Debug)]
pub(super) struct Child {
    process: Process,
    group: Pid,
    said: Arc<Mutex<Vec<u8>>>,
    clock: Clock,
    ended: Option<ExitStatus>,
}

impl Child {
    /// Starts `command` in a process group of its own and hands it `input`. Gives the lines it prints on stdout.
    pub(super) fn start(
        mut command: Command,
        input: Option<&str>,
        clock: Clock,
    ) -> io::Result<(Self, Receiver<String>)> {
        command.process_group(0);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let group = Pid::from_child(&process);
        let (stdin, stdout, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        groups().push(group);
        // from here on dropping it ends the group, whatever goes wrong
        let child = Self { process, group, said: Arc::default(), clock, ended: None };
        let said = Arc::clone(&child.said);
        if let Some(stderr) = stderr {
            thread::Builder::new().name("child-stderr".into()).spawn(move || keep_tail(stderr, &said))?;
        }
        let (say, lines) = mpsc::channel();
        if let Some(stdout) = stdout {
            let read = move || {
                for line in lines_of(stdout) {
                    // read on although nobody listens: a full pipe would stop the child
                    let _ = say.send(line);
                }
            };
            thread::Builder::new().name("child-stdout".into()).spawn(read)?;
        }
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            match stdin.write_all(input.as_bytes()) {
                // it has ended already; the one who waits for it will notice and say why
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
                other => other?,
            }
        }
        Ok((child, lines))
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// How it ended, if it has: `exit status: 1`.
    pub(super) fn ended(&mut self) -> Option<String> {
        if self.ended.is_none() {
            self.ended = self.process.try_wait().ok().flatten();
        }
        self.ended.map(|status| status.to_string())
    }

    /// What it said last on stderr, fit for a terminal; empty if nothing.
    pub(super) fn last_words(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said);
        text.trim().lines().map(|line| escaped(line, 400)).collect::<Vec<_>>().join("\n  ")
    }

    fn wait(&mut self, until: Duration) {
        let until = self.clock.now() + until;
        while self.ended().is_none() && self.clock.now() < until {
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // a group without members left is no error worth a word
        let _ = kill_process_group(self.group, Signal::TERM);
        self.wait(GRACE);
        let _ = kill_process_group(self.group, Signal::KILL);
        self.wait(GRACE);
        groups().retain(|group| *group != self.group);
    }
}

/// Keeps the last [`TAIL`] bytes of `stderr`.
fn keep_tail(mut stderr: impl Read, said: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 1_024];
    while let Ok(read @ 1..) = stderr.read(&mut chunk) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&chunk[..read]);
        let over = said.len().saturating_sub(TAIL);
        said.drain(..over);
    }
}

/// The lines of a stranger's output, each cut at [`LINE`] bytes.
fn lines_of(stdout: impl Read) -> impl Iterator<Item = String> {
    let mut reader = BufReader::new(stdout);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = reader.by_ref().take(LINE).read_until(b'\n', &mut line).ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
    })
}

/// Asks a command that will call [`follow_parent`] to follow this process. Not for commands that start others: those
/// would not know their parent.
pub(super) fn to_follow(command: &mut Command) {
    command.env(PARENT, std::process::id().to_string());
}

/// For a process that a run has started: from now on it ends when the run's process does, however that ended.
/// Does nothing in a process that was not asked to.
pub fn follow_parent() {
    let Some(parent) = std::env::var(PARENT).ok().and_then(|id| id.parse().ok()).and_then(Pid::from_raw)
    else {
        return;
    };
    // where the kernel has no such signal, the run's own orderly end has to do
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    if getppid() != Some(parent) {
        // it ended before we asked
        std::process::exit(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn alive(pid: &str) -> bool {
        // a process that has ended but was not waited for is a zombie, and dead
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    #[test]
    fn a_whole_group_ends_with_the_run_even_if_it_does_not_listen() {
        // a child that ignores the request to end, and its own child that does too
        let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & echo $$; wait; wait";
        let (child, lines) = Child::start(shell(script), None, Clock::start()).unwrap();
        let pids: Vec<String> = lines.iter().take(2).collect();
        assert!(pids.iter().all(|pid| alive(pid)));
        drop(child);
        for pid in pids {
            while alive(&pid) {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn input_output_and_last_words_come_through() {
        let script = "read line; echo got $line; echo \"first\" >&2; echo 'last \u{1b}[31mword' >&2; exit 3";
        let (mut child, lines) = Child::start(shell(script), Some("hello\n"), Clock::start()).unwrap();
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["got hello"]);
        child.wait(Duration::from_secs(30));
        assert_eq!(child.ended().as_deref(), Some("exit status: 3"));
        while !child.last_words().contains("word") {
            thread::yield_now();
        }
        assert_eq!(child.last_words(), "first\n  last \\u{1b}[31mword");
    }

    #[test]
    fn only_the_end_of_what_was_said_is_kept_and_a_line_is_bounded() {
        let said = Mutex::default();
        keep_tail(&[b'x'; 100_000][..], &said);
        assert_eq!(said.lock().unwrap().len(), TAIL);
        let lines: Vec<_> = lines_of(&[b'y'; 10_000][..]).map(|line| line.len()).collect();
        assert_eq!(lines, [4_096, 4_096, 1_808]);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(Child::start(Command::new("/nonexistent/program"), None, Clock::start()).is_err());
    }
}
