//! Whose fault a failed exchange is.

use std::error::Error;
use std::io;

use rustix::io::Errno;

use crate::observe::Broken;

/// Why an exchange has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// This machine had no port, descriptor or memory left. Ours, never booked on the target.
    Exhausted,
    /// Anything the target or the way to it did.
    Broken(Broken),
}

/// What this machine lacks when it says so.
const LOCAL: [Errno; 5] = [Errno::ADDRNOTAVAIL, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];

/// Reads an error of reqwest. `headed` says whether the head of an answer had been read.
///
/// Local exhaustion shows only deep in the chain of sources, so the whole chain is walked.
pub(super) fn of(error: &reqwest::Error, headed: bool) -> Trouble {
    if exhausted(error) {
        return Trouble::Exhausted;
    }
    let why = by_code(error).or_else(|| error.is_timeout().then_some(Broken::TimedOut));
    Trouble::Broken(why.unwrap_or_else(|| by_words(error, error.is_connect(), headed)))
}

/// Reads why no connection came up.
pub(super) fn of_connecting(error: &io::Error) -> Trouble {
    if exhausted(error) {
        return Trouble::Exhausted;
    }
    Trouble::Broken(by_code(error).unwrap_or_else(|| by_words(error, true, false)))
}

/// Reads an error of hyper on a connection that was up. `headed` says whether the head of an answer had been read.
pub(super) fn of_exchange(error: &hyper::Error, headed: bool) -> Trouble {
    if exhausted(error) {
        return Trouble::Exhausted;
    }
    Trouble::Broken(by_code(error).unwrap_or_else(|| by_words(error, false, headed)))
}

/// Where there is no code: by what kind of error lies in the chain.
fn by_words(error: &(dyn Error + 'static), connecting: bool, headed: bool) -> Broken {
    if chain(error).any(unresolved) {
        Broken::Unresolved
    } else if chain(error).any(untrusted) {
        Broken::Untrusted
    } else if connecting {
        Broken::Connect
    } else if headed || chain(error).any(garbled) {
        Broken::Cut
    } else {
        Broken::Closed
    }
}

/// Whether the chain of an error names something this machine ran out of.
pub(super) fn exhausted(error: &(dyn Error + 'static)) -> bool {
    let code =
        |link: &(dyn Error + 'static)| link.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    chain(error).filter_map(code).any(|code| LOCAL.iter().any(|errno| errno.raw_os_error() == code))
}

/// What the operating system says of a connection, if it says something.
fn by_code(error: &(dyn Error + 'static)) -> Option<Broken> {
    let kinds = chain(error).filter_map(|link| link.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().find_map(|kind| match kind {
        io::ErrorKind::ConnectionRefused => Some(Broken::Refused),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Some(Broken::Reset)
        }
        io::ErrorKind::TimedOut => Some(Broken::TimedOut),
        _ => None,
    })
}

/// A name that could not be looked up. The resolver's error has no kind of its own, so its words have to do.
fn unresolved(link: &(dyn Error + 'static)) -> bool {
    let words = link.to_string();
    words.contains("failed to lookup address") || words == "dns error"
}

/// A certificate that is not to be trusted.
fn untrusted(link: &(dyn Error + 'static)) -> bool {
    matches!(link.downcast_ref::<rustls::Error>(), Some(rustls::Error::InvalidCertificate(_)))
}

/// An answer that is no HTTP.
fn garbled(link: &(dyn Error + 'static)) -> bool {
    link.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
}

/// An error and all its sources, at most 32.
fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&link: &&'e (dyn Error + 'static)| {
        // the source of an io::Error that wraps another is that one's own source: look inside it first
        let inner = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.map(|e| e as &(dyn Error + 'static)).or_else(|| link.source())
    })
    .take(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] Box<dyn Error + Send + Sync>);

    /// As in grafana/k6#826: of 12,131 requests 2,531 found no local port. They are ours, and outside every
    /// ratio of the gateway.
    #[test]
    fn a_lack_of_ports_is_told_from_a_refusal_by_the_target() {
        let os = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        let deep = |errno| Wrapped(Box::new(io::Error::other(Wrapped(Box::new(os(errno))))));
        let results =
            (0..12_131u32).map(|n| if n < 2_531 { Errno::ADDRNOTAVAIL } else { Errno::CONNREFUSED });
        assert_eq!(results.filter(|errno| exhausted(&deep(*errno))).count(), 2_531);
        for errno in LOCAL {
            assert!(exhausted(&deep(errno)) && exhausted(&os(errno)), "{errno}");
        }
        for errno in [Errno::CONNRESET, Errno::PIPE, Errno::TIMEDOUT] {
            assert!(!exhausted(&deep(errno)), "{errno}");
        }
    }
}
