//! The memory of the target and our own, from `/proc`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use procfs::process::Process;

use super::{Clock, Seen};
use crate::measure::Vital;
use crate::units::Bytes;

/// From one sample to the next.
const EVERY: Duration = Duration::from_millis(250);
/// The most processes of a tree that are counted.
const PROCESSES: usize = 1_000;
/// How often a tree is looked at until it stands still.
const LOOKS: u32 = 8;
/// The most of a control group's figures that is read.
const LARGEST: u64 = 64 << 10;

/// Anonymous memory of the process `pid` and all below it: the proportional share (`Pss_Anon`), so that what
/// processes share is counted once, and page cache not at all. `None` if the process is gone or may not be read.
///
/// A process that forks while we look would count twice: first whole, then as the half of its child. So a reading counts
/// only if the tree is the same after it; of some that are not, the smallest is taken.
pub(super) fn of_tree(pid: u32) -> Option<Bytes> {
    let mut least: Option<Bytes> = None;
    let mut before = None;
    for _ in 0..LOOKS {
        let (bytes, tree) = once(pid)?;
        let stood = before.as_ref() == Some(&tree);
        least = Some(least.map_or(bytes, |least| least.min(bytes)));
        if stood {
            return Some(bytes);
        }
        before = Some(tree);
    }
    least
}

/// One look at a tree: its memory, and the processes in it.
fn once(pid: u32) -> Option<(Bytes, BTreeSet<i32>)> {
    let mut open = vec![i32::try_from(pid).ok()?];
    let (mut total, mut counted, mut tree) = (Bytes::ZERO, 0, BTreeSet::new());
    while let Some(pid) = open.pop().filter(|_| counted < PROCESSES) {
        // a child may end while we look; the root may not
        let process = match Process::new(pid) {
            Ok(process) => process,
            Err(_) if counted > 0 => continue,
            Err(_) => return None,
        };
        match of_process(&process) {
            Some(bytes) => total += bytes,
            None if counted == 0 => return None,
            None => {}
        }
        counted += 1;
        tree.insert(pid);
        let tasks = process.tasks().into_iter().flatten().flatten();
        open.extend(
            tasks.filter_map(|task| task.children().ok()).flatten().filter_map(|pid| i32::try_from(pid).ok()),
        );
    }
    Some((total, tree))
}

/// Where a target's memory is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// A process and all below it.
    Tree(u32),
    /// A control group, by its folder.
    Group(PathBuf),
}

impl Whose {
    fn read(&self) -> Option<Bytes> {
        match self {
            Self::Tree(pid) => of_tree(*pid),
            Self::Group(folder) => of_group(folder),
        }
    }
}

/// Anonymous memory of a control group and all below it: `anon` of version 2, `total_rss` of version 1. `None` if the
/// folder is none of a control group, or may not be read.
fn of_group(folder: &Path) -> Option<Bytes> {
    let mut text = String::new();
    File::open(folder.join("memory.stat")).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, bytes) = lines.find(|(name, _)| matches!(*name, "anon" | "total_rss"))?;
    bytes.trim().parse().ok().map(Bytes::new)
}

fn of_process(process: &Process) -> Option<Bytes> {
    let rollup = process.smaps_rollup().ok();
    let pss = rollup.and_then(|r| r.memory_map_rollup.0.first()?.extension.map.get("Pss_Anon").copied());
    pss.map(Bytes::new).or_else(|| resident(process))
}

/// Resident anonymous memory: cheap to read, but what processes share counts in each.
fn resident(process: &Process) -> Option<Bytes> {
    process.status().ok()?.rssanon.map(|kib| Bytes::new(kib.saturating_mul(1_024)))
}

/// Our own, from a file that stays open: what this process lacks then is no hindrance. Read the cheap way: our memory map is
/// large, and walking it would hold up every thread that maps memory.
#[derive(Debug)]
struct Own(File);

impl Own {
    fn open() -> io::Result<Self> {
        File::open("/proc/self/status").map(Self)
    }

    /// Resident anonymous memory, as [`resident`] gives it of another process.
    fn read(&self) -> Option<Bytes> {
        // a user in many groups has a long line of them before it
        let mut bytes = [0; 32 << 10];
        let read = self.0.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..read]).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(Bytes::new(kib.saturating_mul(1_024)))
    }
}

/// Descriptors that are kept so that `/proc` can be read when this process has no other left.
#[derive(Debug)]
struct Reserve(Vec<File>);

impl Reserve {
    /// So many are open at once while a tree is read.
    const MOST: usize = 8;

    fn new() -> Self {
        Self((0..Self::MOST).map_while(|_| File::open("/dev/null").ok()).collect())
    }

    /// What `read` gives; if it gives nothing, what it gives with the reserve at its disposal.
    fn read<T>(&mut self, read: impl Fn() -> Option<T>) -> Option<T> {
        read().or_else(|| {
            self.0.clear();
            let second = read();
            *self = Self::new();
            second
        })
    }
}

/// A thread that samples memory until it is dropped. Its first samples are the level before the load.
#[derive(Debug)]
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling ourselves and, if it has a place on this machine, the target.
    pub(super) fn start(target: Option<Whose>, clock: Clock, out: Sender<Seen>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let own = Own::open()?;
        let thread = thread::Builder::new().name("memory".into()).spawn(move || {
            let (mut next, mut reserve) = (clock.now(), Reserve::new());
            while !stopped.load(Ordering::Acquire) {
                let at = clock.now();
                let target = target.as_ref().and_then(|target| reserve.read(|| target.read()));
                let target = target.map(|bytes| Vital::TargetMemory { at, bytes });
                let own = own.read().map(|bytes| Vital::OwnMemory { at, bytes });
                for vital in target.into_iter().chain(own) {
                    // nobody listens any more once the run is over
                    let _ = out.send(Seen::Vital(vital));
                }
                next = (next + EVERY).max(clock.now());
                clock.sleep_until(next);
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // it is at most one sleep away from its end
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_tree_is_its_root_and_all_below_it() {
        // a shell that keeps a child: more processes than one, and both are read
        let mut shell = Command::new("sh").args(["-c", "sleep 30; :"]).stdin(Stdio::null()).spawn().unwrap();
        let root = i32::try_from(shell.id()).unwrap();
        let children = || Process::new(root).unwrap().task_main_thread().unwrap().children().unwrap();
        while children().is_empty() {
            thread::yield_now();
        }
        let alone = of_process(&Process::new(root).unwrap()).unwrap();
        let whole = of_tree(shell.id()).unwrap();
        for child in children() {
            drop(Command::new("kill").arg(child.to_string()).status());
        }
        drop(shell.kill());
        shell.wait().unwrap();
        assert!(whole > alone, "{whole} of the tree, {alone} of its root");
        assert_eq!(of_tree(shell.id()), None, "it is gone");
    }

    /// A shell that holds about 30 MB and does `what` meanwhile; ended by the test.
    fn large_shell(what: &str) -> std::process::Child {
        let script = format!("x=$(head -c 15000000 /dev/zero | tr '\\0' x); echo; {what}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        // it says so once it holds them
        let mut line = [0; 1];
        shell.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        shell
    }

    fn end(mut shell: std::process::Child) {
        drop(shell.kill());
        shell.wait().unwrap();
    }

    /// As in zombocom/get_process_mem#40 and c4punks/CWIST#150: pages that workers share were counted in each of them.
    #[test]
    fn what_forked_workers_share_is_counted_once() {
        let shell = large_shell("(sleep 5; :) & (sleep 5; :) & (sleep 5; :) & echo; wait");
        let mut line = [0; 1];
        let mut shell = shell;
        shell.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        let root = Process::new(i32::try_from(shell.id()).unwrap()).unwrap();
        let alone = resident(&root).unwrap();
        let whole = of_tree(shell.id()).unwrap();
        end(shell);
        assert!(alone > Bytes::new(10_000_000), "{alone}");
        // four of them would be four times as much
        assert!(whole.get() < alone.get() * 2, "{whole} of the tree, {alone} of its root");
    }

    /// As in dmwm/WMCore#8498: a fork doubled a reading for a moment, and a watchdog fired.
    #[test]
    fn a_fork_while_we_look_does_not_double_a_reading() {
        let shell = large_shell("n=0; while [ $n -lt 100000 ]; do (:); n=$((n+1)); done");
        let readings: Vec<_> = (0..200).filter_map(|_| of_tree(shell.id())).collect();
        let root = Process::new(i32::try_from(shell.id()).unwrap()).unwrap();
        let alone = resident(&root).unwrap();
        end(shell);
        assert!(readings.len() > 100, "{}", readings.len());
        let most = readings.iter().max().unwrap();
        assert!(most.get() < alone.get() * 7 / 4, "{most} at most, {alone} of its root");
    }

    #[test]
    fn a_control_group_says_its_anonymous_memory_in_either_version() {
        let folder = tempfile::tempdir().unwrap();
        let stat = folder.path().join("memory.stat");
        let read = |text: &str| {
            std::fs::write(&stat, text).unwrap();
            Whose::Group(folder.path().to_owned()).read()
        };
        assert_eq!(read("file 9\nanon 4096\nanon_thp 7\n"), Some(Bytes::new(4_096)));
        assert_eq!(read("cache 9\nrss 5\ntotal_rss 8192\n"), Some(Bytes::new(8_192)));
        assert_eq!(read("anon many\n"), None);
        assert_eq!(read(""), None);
        assert_eq!(of_group(Path::new("/nonexistent")), None);
    }

    #[test]
    fn our_own_memory_grows_with_what_we_hold() {
        let own = Own::open().unwrap();
        let before = own.read().unwrap();
        let held = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = own.read().unwrap();
        assert!(after >= before + Bytes::new(32 << 20), "{before} then {after}");
        drop(held);
        let (out, seen) = mpsc::channel();
        let sampler = Sampler::start(Some(Whose::Tree(std::process::id())), Clock::start(), out).unwrap();
        let first: Vec<_> = seen.iter().take(2).collect();
        drop(sampler);
        assert!(matches!(first[0], Seen::Vital(Vital::TargetMemory { .. })));
        assert!(matches!(first[1], Seen::Vital(Vital::OwnMemory { .. })));
    }
}
