//! Ctrl-C and SIGTERM: the first ends a run in order, the second at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::{complain, exit};
use crate::live::{self, LiveError, Stop};

/// Which signal came first, if any did.
#[derive(Debug, Clone, Default)]
pub(super) struct Caught(Arc<AtomicU8>);

impl Caught {
    /// The exit code of a run that a signal ended.
    pub(super) fn code(&self) -> u8 {
        match self.0.load(Ordering::Acquire) {
            0 => exit::INTERRUPTED,
            code => code,
        }
    }
}

/// From now on a signal asks `stop`, and a second one ends this process.
pub(super) fn watch(stop: Stop) -> Result<Caught, LiveError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(LiveError::Thread)?;
    let _guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt()).map_err(LiveError::Thread)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(LiveError::Thread)?;
    drop(_guard);
    let caught = Caught::default();
    let first = caught.clone();
    let wait = move || {
        runtime.block_on(async {
            loop {
                let code = tokio::select! {
                    Some(()) = interrupt.recv() => exit::INTERRUPTED,
                    Some(()) = terminate.recv() => exit::TERMINATED,
                    else => return,
                };
                // the first one counts
                let _ = first.0.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
                if stop.ask() > 1 {
                    live::end_all_at_once();
                    std::process::exit(i32::from(first.code()));
                }
                complain("ending in order; once more ends at once\n");
            }
        });
    };
    thread::Builder::new().name("signals".into()).spawn(wait).map_err(LiveError::Thread)?;
    Ok(caught)
}
