//! A generator that runs out of descriptors. In a process of its own: the limit is the process's.

use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tenfold::live::Clock;
use tenfold::live::selftest::{Manner, Plain, drive};
use tenfold::observe::Outcome;
use tenfold::plan;

const PLAN: &str = "\
tenfold: 1
name: test
load: { arrivals: constant, phases: [{ name: steady, rate: 200/s, for: 1s }] }
requests: [{ name: ask, prompt: { tokens: 8 }, max_tokens: 4, deadline: 5s }]
provider: { quota: { tokens_per_minute: 10_000_000, burst: 10s }, service: { first_token: 1ms, per_token: 0ms } }
target: { url: 'http://127.0.0.1:1', request: { sender: SENDER } }
";

/// As in grafana/k6#826: what finds no descriptor or port is unsent, by that reason, and never a failure of the target.
#[test]
fn without_descriptors_requests_are_unsent_and_the_target_is_not_blamed() {
    for sender in ["reqwest", "hyper"] {
        let plan = plan::parse(&PLAN.replace("SENDER", sender), &[], &|_| None).unwrap().plan;
        let manner = Manner { delay: Duration::from_millis(500), ..Manner::default() };
        let server = Plain::start(Clock::start(), manner).unwrap();
        let before = getrlimit(Resource::Nofile);
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        setrlimit(Resource::Nofile, rustix::process::Rlimit { current: Some(open + 60), ..before }).unwrap();
        let driven = drive(&plan, &server.url()).unwrap();
        setrlimit(Resource::Nofile, before).unwrap();
        let measures = &driven.measures;
        assert_eq!(measures.offered, 200);
        assert!(measures.unsent.exhausted > 0, "{sender}: {:?}", measures.unsent);
        assert_eq!(measures.unsent.exhausted, measures.arrivals.get(Outcome::Unsent), "{sender}");
        assert_eq!(measures.arrivals.get(Outcome::Failed), 0, "{sender}: {:?}", measures.failures);
        // all the while memory is read, from descriptors that were kept for that
        let sampled: Vec<bool> = measures.windows.iter().map(|window| window.own_memory.get() > 0).collect();
        assert!(
            sampled.len() > 1 && sampled[..sampled.len() - 1].iter().all(|sampled| *sampled),
            "{sampled:?}"
        );
        assert!(measures.vitals.own.samples >= 4, "{sender}: {:?}", measures.vitals.own);
    }
}
