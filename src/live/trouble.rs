//! Whose fault a failed exchange is.

use std::error::Error;
use std::io;

use rustix::io::Errno;
use rustls::CertificateError;

use crate::observe::Broken;

/// Why an exchange has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// This machine had no port, descriptor or memory left. Ours, never booked on the target.
    Exhausted,
    /// The target and we could not agree on TLS.
    Tls(Tls),
    /// Anything else the target or the way to it did.
    Broken(Broken),
}

/// What stands in the way of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tls {
    /// The certificate's issuer is not among those this machine trusts, or it has signed itself.
    UnknownIssuer,
    /// The certificate is for other names.
    OtherName,
    /// The certificate is an authority's, which may not vouch for a server by itself: what `openssl req -x509` makes.
    Authority,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYet,
    /// Something else is wrong with the certificate.
    BadCertificate,
    /// The other side ended the handshake, or speaks no TLS.
    Broken,
    /// The other side does not speak the protocol that was asked for.
    NoProtocol,
}

impl Tls {
    /// All of them.
    #[cfg(test)]
    const ALL: [Self; 8] = [
        Self::UnknownIssuer,
        Self::OtherName,
        Self::Authority,
        Self::Expired,
        Self::NotYet,
        Self::BadCertificate,
        Self::Broken,
        Self::NoProtocol,
    ];

    /// What it is, to be read after the target's address, and the way out.
    pub(super) const fn words(self) -> (&'static str, &'static str) {
        const TRUST: &str = "name its issuer's certificate in target.request.ca_file, or take any certificate with \
                             target.request.insecure: true";
        match self {
            Self::UnknownIssuer => ("has a certificate signed by nobody this machine trusts", TRUST),
            Self::OtherName => (
                "has a certificate for other names",
                "call it by a name the certificate is for, or take any certificate with target.request.insecure: true",
            ),
            Self::Authority => (
                "has the certificate of an authority as its own",
                "make it one of a server (openssl req -x509 -addext basicConstraints=critical,CA:FALSE …), or take any \
                 certificate with target.request.insecure: true",
            ),
            Self::Expired => (
                "has a certificate that has expired",
                "have it renewed, look whether this machine's clock is right, or take any certificate with \
                 target.request.insecure: true",
            ),
            Self::NotYet => (
                "has a certificate that is not valid yet",
                "look whether this machine's clock is right, or take any certificate with target.request.insecure: true",
            ),
            Self::BadCertificate => ("has a certificate that cannot be checked", TRUST),
            Self::Broken => {
                ("broke off the TLS handshake", "does it speak TLS at all? write http:// if it does not")
            }
            Self::NoProtocol => (
                "does not speak HTTP/2 over TLS (it agreed to no `h2`)",
                "leave out target.request.http: 2, or have it switched on there",
            ),
        }
    }

    /// What it counts as where it happens during a load.
    const fn counts_as(self) -> Broken {
        match self {
            Self::Broken | Self::NoProtocol => Broken::Connect,
            _ => Broken::Untrusted,
        }
    }
}

impl Trouble {
    /// What it is booked on the target as; nothing if it is ours.
    pub(super) const fn broken(self) -> Option<Broken> {
        match self {
            Self::Exhausted => None,
            Self::Tls(tls) => Some(tls.counts_as()),
            Self::Broken(why) => Some(why),
        }
    }
}

/// What this machine lacks when it says so. A socket that is bound to a source address before it connects is told of a lack
/// of ports as "address in use".
const LOCAL: [Errno; 6] =
    [Errno::ADDRNOTAVAIL, Errno::ADDRINUSE, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];

/// Reads an error of reqwest. `headed` says whether the head of an answer had been read.
///
/// Local exhaustion shows only deep in the chain of sources, so the whole chain is walked.
pub(super) fn of(error: &reqwest::Error, headed: bool) -> Trouble {
    read(error, error.is_timeout(), error.is_connect(), headed)
}

/// Reads why no connection came up.
pub(super) fn of_connecting(error: &io::Error) -> Trouble {
    read(error, false, true, false)
}

/// Reads why no TLS came up on a connection that was there.
pub(super) fn of_handshake(error: &io::Error) -> Trouble {
    match read(error, false, true, false) {
        // whatever it did, it did so where TLS was to begin
        Trouble::Broken(Broken::Connect | Broken::Reset) => Trouble::Tls(Tls::Broken),
        other => other,
    }
}

/// Reads an error of hyper on a connection that was up. `headed` says whether the head of an answer had been read.
pub(super) fn of_exchange(error: &hyper::Error, headed: bool) -> Trouble {
    read(error, false, false, headed)
}

/// Reads an error of HTTP/2. `headed` says whether the head of an answer had been read.
pub(super) fn of_stream(error: &h2::Error, headed: bool) -> Trouble {
    match error.get_io() {
        Some(io) => read(io, false, false, headed),
        None => Trouble::Broken(if headed { Broken::Cut } else { Broken::Closed }),
    }
}

/// Reads any of them: our own lack first, then TLS, then what the system says, then words.
fn read(error: &(dyn Error + 'static), timed_out: bool, connecting: bool, headed: bool) -> Trouble {
    if exhausted(error) {
        return Trouble::Exhausted;
    }
    if let Some(tls) = chain(error).find_map(tls) {
        return Trouble::Tls(tls);
    }
    let why = by_code(error).or_else(|| timed_out.then_some(Broken::TimedOut));
    Trouble::Broken(match why {
        // a body that is reset half way is as much cut short as one that just ends
        Some(Broken::Reset) if headed => Broken::Cut,
        why => why.unwrap_or_else(|| by_words(error, connecting, headed)),
    })
}

/// Where there is no code: by what kind of error lies in the chain.
fn by_words(error: &(dyn Error + 'static), connecting: bool, headed: bool) -> Broken {
    if chain(error).any(unresolved) {
        Broken::Unresolved
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
    names_one_of(error, &LOCAL)
}

/// Whether it names a lack of descriptors or memory, which nothing but this machine can be the cause of.
pub(super) fn starved(error: &(dyn Error + 'static)) -> bool {
    names_one_of(error, &[Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM])
}

fn names_one_of(error: &(dyn Error + 'static), all: &[Errno]) -> bool {
    let code =
        |link: &(dyn Error + 'static)| link.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    chain(error).filter_map(code).any(|code| all.iter().any(|errno| errno.raw_os_error() == code))
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

/// What rustls has against the other side.
fn tls(link: &(dyn Error + 'static)) -> Option<Tls> {
    use CertificateError as Bad;
    Some(match link.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => match why {
            Bad::UnknownIssuer => Tls::UnknownIssuer,
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Tls::OtherName,
            Bad::Expired | Bad::ExpiredContext { .. } => Tls::Expired,
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => Tls::NotYet,
            // the one kind without a name of its own there: the verifier's words have to do
            Bad::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => Tls::Authority,
            _ => Tls::BadCertificate,
        },
        rustls::Error::NoApplicationProtocol => Tls::NoProtocol,
        rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol) => Tls::NoProtocol,
        _ => Tls::Broken,
    })
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

    /// As in alexfernandez/loadtest#108: not one code for everything that can be wrong with TLS.
    #[test]
    fn each_trouble_with_tls_has_its_words_and_its_way_out() {
        use rustls::Error as Rustls;
        let wrapped = |error: Rustls| io::Error::other(Wrapped(Box::new(io::Error::other(error))));
        let bad = |why| of_handshake(&wrapped(Rustls::InvalidCertificate(why)));
        assert_eq!(bad(CertificateError::UnknownIssuer), Trouble::Tls(Tls::UnknownIssuer));
        assert_eq!(bad(CertificateError::Expired), Trouble::Tls(Tls::Expired));
        assert_eq!(bad(CertificateError::NotValidYet), Trouble::Tls(Tls::NotYet));
        assert_eq!(bad(CertificateError::NotValidForName), Trouble::Tls(Tls::OtherName));
        assert_eq!(bad(CertificateError::Revoked), Trouble::Tls(Tls::BadCertificate));
        assert_eq!(of_handshake(&wrapped(Rustls::NoApplicationProtocol)), Trouble::Tls(Tls::NoProtocol));
        let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(of_handshake(&ended), Trouble::Tls(Tls::Broken));
        let no_port = io::Error::from_raw_os_error(Errno::ADDRNOTAVAIL.raw_os_error());
        assert_eq!(of_handshake(&no_port), Trouble::Exhausted, "ours");

        let mut words: Vec<_> = Tls::ALL.iter().map(|tls| tls.words().0).collect();
        assert!(Tls::ALL.iter().all(|tls| !tls.words().1.is_empty()));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Tls::ALL.len(), "each has words of its own");
        assert_eq!(Trouble::Tls(Tls::Expired).broken(), Some(Broken::Untrusted));
        assert_eq!(Trouble::Tls(Tls::NoProtocol).broken(), Some(Broken::Connect));
        assert_eq!(Trouble::Exhausted.broken(), None);
    }
}
