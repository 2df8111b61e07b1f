//! Which of our threads must not wait for a core.

use std::{fmt, fs, io, thread};

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id, thread_schedule_policy,
};

/// Threads of one real-time priority take turns, so that of two that are busy on one core neither waits for the other's
/// end.
const IN_TURNS: ThreadSchedulePolicy =
    ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);

/// By how much the threads that requests go through are preferred to the rest of this program and to whatever else has
/// its nice value, where real-time scheduling is not permitted. A machine that also compiles something gives a thread at
/// the usual value its core some 10 ms late; that would be our lag, and no one's fault but ours.
const NICER: i32 = 10;
/// The most preferred there is.
const NICEST: i32 = -20;

/// How the calling thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// Before everything that is not real-time itself.
    RealTime,
    /// Beside everything else, with this nice value.
    Nice(i32),
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime => f.write_str("real-time"),
            Self::Nice(value) => write!(f, "nice {value}"),
        }
    }
}

/// Lets the calling thread, and the threads and processes it starts from now on, run before others: at the lowest
/// real-time priority; without the permission for that, or where it could take the whole machine (one core, or no bound on
/// real-time threads), with a better nice value; else as before. A thread that is real-time already stays as it is. What is
/// not permitted shows as lag.
pub fn run_before_others() -> Scheduling {
    if leaves_room() && !is_real_time() {
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, IN_TURNS);
    }
    if is_real_time() {
        return Scheduling::RealTime;
    }
    let _ = rustix::process::setpriority_process(None, (nice() - NICER).max(NICEST));
    Scheduling::Nice(nice())
}

/// Whether a real-time thread that is never done would still leave some of this machine to others.
fn leaves_room() -> bool {
    let says = |file: &str, what: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == what);
    !says("/proc/sys/kernel/sched_rt_runtime_us", "-1") && !says("/sys/devices/system/cpu/online", "0")
}

/// What [`run_before_others`] comes to here, found by a thread that ends with it.
///
/// # Errors
/// If the system gives no thread.
pub fn scheduling_permitted() -> io::Result<Scheduling> {
    let found = thread::Builder::new().spawn(run_before_others)?;
    found.join().map_err(|_| io::Error::other("a thread could not be preferred"))
}

/// That of the calling thread: on Linux `None` is no one else.
fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap_or(0)
}

fn is_real_time() -> bool {
    matches!(thread_schedule_policy(), Ok(ThreadSchedulePolicy::Realtime(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_asks_is_preferred() {
        let now = || if is_real_time() { Scheduling::RealTime } else { Scheduling::Nice(nice()) };
        let usual = now();
        let asked = thread::spawn(move || {
            let said = run_before_others();
            assert_eq!(said, now(), "it says what it came to");
            (said, run_before_others())
        });
        let (first, again) = asked.join().unwrap();
        match (usual, first) {
            (Scheduling::Nice(usual), Scheduling::Nice(value)) => {
                let preferred = (usual - NICER).max(NICEST);
                assert!(value == preferred || value == usual, "{value}: preferred, or not permitted");
            }
            (_, first) => assert_eq!((first, again), (Scheduling::RealTime, Scheduling::RealTime)),
        }
        assert_eq!(scheduling_permitted().unwrap(), first);
        assert_eq!(now(), usual);
    }
}
