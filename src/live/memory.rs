//! The memory of the target and our own, from `/proc`.

use std::io;
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

/// Anonymous memory of the process `pid` and all below it: the proportional share (`Pss_Anon`), so that what
/// processes share is counted once, and page cache not at all. `None` if the process is gone or may not be read.
pub(super) fn of_tree(pid: u32) -> Option<Bytes> {
    let mut open = vec![i32::try_from(pid).ok()?];
    let (mut total, mut counted) = (Bytes::ZERO, 0);
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
        let tasks = process.tasks().into_iter().flatten().flatten();
        open.extend(
            tasks.filter_map(|task| task.children().ok()).flatten().filter_map(|pid| i32::try_from(pid).ok()),
        );
    }
    Some(total)
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

/// Our own. Read the cheap way: our memory map is large, and walking it would hold up every thread that maps memory.
pub(super) fn own() -> Option<Bytes> {
    resident(&Process::myself().ok()?)
}

/// A thread that samples memory until it is dropped. Its first samples are the level before the load.
#[derive(Debug)]
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling ourselves and, if there is one, the target's process tree.
    pub(super) fn start(target: Option<u32>, clock: Clock, out: Sender<Seen>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("memory".into()).spawn(move || {
            let mut next = clock.now();
            while !stopped.load(Ordering::Acquire) {
                let at = clock.now();
                let target = target.and_then(of_tree).map(|bytes| Vital::TargetMemory { at, bytes });
                let own = own().map(|bytes| Vital::OwnMemory { at, bytes });
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

    #[test]
    fn our_own_memory_grows_with_what_we_hold() {
        let before = own().unwrap();
        let held = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = own().unwrap();
        assert!(after >= before + Bytes::new(32 << 20), "{before} then {after}");
        drop(held);
        let (out, seen) = mpsc::channel();
        let sampler = Sampler::start(Some(std::process::id()), Clock::start(), out).unwrap();
        let first: Vec<_> = seen.iter().take(2).collect();
        drop(sampler);
        assert!(matches!(first[0], Seen::Vital(Vital::TargetMemory { .. })));
        assert!(matches!(first[1], Seen::Vital(Vital::OwnMemory { .. })));
    }
}
