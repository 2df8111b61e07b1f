//! The floor: one thread, one epoll, requests as ready-made bytes on sockets that are reused. Nobody can send with less.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use serde_json::{Value, json};
use tenfold::live::Clock;

use crate::Outcome;

/// As large as tenfold's own.
const BODY: &str = r#"{"model":"rehearsal","messages":[{"role":"user","content":"a b c d e f g h"}],"max_completion_tokens":4,"user":"tenfold-00000001-0000000000-0-0004"}"#;

/// What the timer is called in the epoll; connections count from zero.
const TIMER: u64 = u64::MAX;

/// From 5,000/s on one wake-up sends everything due within a grain, as tenfold's does.
const fn grain(rate: u64) -> Duration {
    Duration::from_micros(if rate < 5_000 { 0 } else { 200 })
}

/// Sends `rate` requests a second to `url` for `secs` seconds.
pub(crate) fn send(url: &str, rate: u64, secs: u64) -> Outcome<Value> {
    let address: SocketAddr = url.strip_prefix("http://").ok_or("no http")?.parse()?;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let clock = Clock::start();
    let start = clock.now() + Duration::from_millis(100);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    // the time an epoll waits is counted in milliseconds
    let timer =
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC))?;
    epoll::add(&poll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
    let mut sockets: BTreeMap<u64, TcpStream> = BTreeMap::new();
    let mut idle: Vec<u64> = Vec::new();
    let (mut sent, mut answered, total) = (0, 0, rate * secs);
    let due = |n: u64| start + Duration::from_secs_f64(n as f64 / rate as f64);
    let mut events = Vec::with_capacity(1_024);
    let mut buffer = [0; 4_096];
    while answered < total {
        let now = clock.now();
        while sent < total && due(sent) <= now {
            let id = match idle.pop() {
                Some(id) => id,
                None => {
                    let stream = TcpStream::connect(address)?;
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                    let id = sockets.len() as u64;
                    epoll::add(&poll, stream.as_fd(), epoll::EventData::new_u64(id), epoll::EventFlags::IN)?;
                    sockets.insert(id, stream);
                    id
                }
            };
            sockets.get_mut(&id).ok_or("no socket")?.write_all(request.as_bytes())?;
            sent += 1;
        }
        events.clear();
        let until = if sent < total { due(sent) + grain(rate) } else { clock.now() + Duration::from_secs(5) };
        // a timer of nothing is none: what is due already is due in a nanosecond
        let wait = until.since(clock.now()).max(Duration::from_nanos(1));
        let it_value = Timespec { tv_sec: wait.as_secs().try_into()?, tv_nsec: wait.subsec_nanos().into() };
        let spec = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let id = event.data.u64();
            if id == TIMER {
                // set anew before the next wait
                continue;
            }
            match sockets.get_mut(&id).ok_or("no socket")?.read(&mut buffer) {
                // an answer is one segment: it is small, and written at once
                Ok(1..) => {
                    answered += 1;
                    idle.push(id);
                }
                Ok(0) => return Err("the server closed a connection".into()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    Ok(
        json!({ "cpu": cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9, "offered": total, "completed": answered }),
    )
}
