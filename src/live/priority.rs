//! Which of our threads must not wait for a core.

/// By how much the threads that requests go through are preferred to the rest of this program and to whatever else has
/// its nice value. A machine that also compiles something gives a thread at the usual value its core some 10 ms late; that
/// would be our lag, and no one's fault but ours.
const NICER: i32 = 10;
/// The most preferred there is.
const NICEST: i32 = -20;

/// Lets the calling thread, and those it starts, run before others. Without the permission for it nothing changes, and
/// what that costs shows as lag.
pub(super) fn run_before_others() {
    // on Linux `None` is the calling thread alone
    let usual = rustix::process::getpriority_process(None).unwrap_or(0);
    let _ = rustix::process::setpriority_process(None, (usual - NICER).max(NICEST));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_asks_is_preferred() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let usual = nice();
        let asked = std::thread::spawn(move || {
            run_before_others();
            nice()
        });
        let asked = asked.join().unwrap();
        let preferred = (usual - NICER).max(NICEST);
        assert!(asked == preferred || asked == usual, "{asked}: preferred, or not permitted");
        assert_eq!(nice(), usual);
    }
}
