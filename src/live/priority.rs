//! Which of our threads must not wait for a core.

/// The nice value of the threads that requests go through. A machine that also compiles something gives a thread at the
/// usual value its core some 10 ms late; that would be our lag, and no one's fault but ours.
const NICE: i32 = -10;

/// Lets the calling thread, and those it starts, run before others. Without the permission for it nothing changes, and
/// what that costs shows as lag.
pub(super) fn run_before_others() {
    // on Linux `None` is the calling thread alone
    let _ = rustix::process::setpriority_process(None, NICE);
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
        assert!(asked == NICE || asked == usual, "{asked}: preferred, or not permitted");
        assert_eq!(nice(), usual);
    }
}
