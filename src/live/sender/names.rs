//! Which addresses the target's name has. It is looked up again at an interval and not for each connection, a request
//! never waits for a repeated look-up, and connections take the addresses in turn.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustix::io::Errno;
use tokio::net::lookup_host;

use crate::live::Clock;
use crate::plan::Lookup;
use crate::units::Moment;

/// Addresses of a name that are used at most.
const MOST: usize = 64;

/// A look-up that is under way.
type Looking = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// The addresses of the target's host.
pub(super) struct Names {
    host: String,
    /// The host, where it is an address.
    literal: Option<IpAddr>,
    port: u16,
    policy: Lookup,
    look: Box<dyn Fn() -> Looking + Send + Sync>,
    clock: Clock,
    turn: AtomicUsize,
    /// Held by whoever looks the name up for the first time; the others wait for what comes of it.
    first: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    addresses: Vec<IpAddr>,
    /// When the last look-up began.
    asked: Moment,
    under_way: bool,
    lookups: u64,
    peers: Vec<Arc<Peer>>,
}

/// An address connections were made to.
#[derive(Debug)]
pub(in crate::live) struct Peer {
    ip: IpAddr,
    answers: AtomicU64,
}

impl Peer {
    /// It has answered a request.
    pub(super) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// How a name was looked up, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// The name.
    pub host: String,
    /// When it was looked up.
    pub policy: Lookup,
    /// How often.
    pub lookups: u64,
    /// Every address it was known to have, and how many requests each has answered.
    pub addresses: Vec<(IpAddr, u64)>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names")
            .field("host", &self.host)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Names {
    /// Of the host of `url`, as the system knows them.
    pub(super) fn of(url: &Url, policy: Lookup) -> Arc<Self> {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let name = host.clone();
        let look = move || -> Looking {
            let name = name.clone();
            Box::pin(
                async move { Ok(lookup_host((name, port)).await?.map(|address| address.ip()).collect()) },
            )
        };
        Self::looked_up_by(host, port, policy, look)
    }

    /// The same, with `look` in the place of the system.
    pub(super) fn looked_up_by(
        host: String,
        port: u16,
        policy: Lookup,
        look: impl Fn() -> Looking + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            literal: host.parse().ok(),
            host,
            port,
            policy,
            look: Box::new(look),
            clock: Clock::start(),
            turn: AtomicUsize::new(0),
            first: tokio::sync::Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// The host, without brackets.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// All addresses for one connection, the one whose turn it is first.
    ///
    /// # Errors
    /// If the name could not be looked up and never was.
    pub(super) async fn in_turn(self: &Arc<Self>) -> io::Result<Vec<SocketAddr>> {
        if let Some(literal) = self.literal {
            return Ok(vec![SocketAddr::new(literal, self.port)]);
        }
        if self.known().addresses.is_empty() {
            let _first = self.first.lock().await;
            if self.known().addresses.is_empty() {
                self.look_up().await?;
            }
        } else if self.is_stale() {
            let again = Arc::clone(self);
            // where it fails the addresses that are known stay, until it is tried again
            tokio::spawn(async move { again.look_up().await });
        }
        let mut addresses = self.known().addresses.clone();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len();
        addresses.rotate_left(turn);
        Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, self.port)).collect())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // a panic of another leaves it whole
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is time to look the name up again; if so, whoever asked does.
    fn is_stale(&self) -> bool {
        let Lookup::Every(interval) = self.policy else { return false };
        let mut known = self.known();
        let stale = !known.under_way && self.clock.now().since(known.asked) >= interval;
        known.under_way |= stale;
        stale
    }

    async fn look_up(&self) -> io::Result<()> {
        let asked = self.clock.now();
        let found = (self.look)().await;
        let mut known = self.known();
        (known.under_way, known.asked) = (false, asked);
        known.lookups += 1;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for ip in found? {
            if addresses.len() < MOST && !addresses.contains(&ip) {
                addresses.push(ip);
            }
        }
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "failed to lookup address information"));
        }
        if addresses.iter().any(|ip| has_way_to(*ip)) {
            addresses.retain(|ip| has_way_to(*ip));
        }
        for ip in &addresses {
            known.peer(*ip);
        }
        known.addresses = addresses;
        Ok(())
    }

    /// The one at an address.
    pub(super) fn peer(&self, ip: IpAddr) -> Arc<Peer> {
        self.known().peer(ip)
    }

    /// Whether the target has a name, and is not given by its address.
    pub(super) const fn is_name(&self) -> bool {
        self.literal.is_none()
    }

    /// How the name was looked up; nothing where the target was given by its address.
    pub(super) fn looked(&self) -> Option<Looked> {
        if !self.is_name() {
            return None;
        }
        let known = self.known();
        let mut addresses: Vec<_> =
            known.peers.iter().map(|peer| (peer.ip, peer.answers.load(Ordering::Relaxed))).collect();
        addresses.sort_unstable();
        Some(Looked { host: self.host.clone(), policy: self.policy, lookups: known.lookups, addresses })
    }
}

impl Known {
    fn peer(&mut self, ip: IpAddr) -> Arc<Peer> {
        if let Some(peer) = self.peers.iter().find(|peer| peer.ip == ip) {
            return Arc::clone(peer);
        }
        let peer = Arc::new(Peer { ip, answers: AtomicU64::new(0) });
        self.peers.push(Arc::clone(&peer));
        peer
    }
}

/// The same for reqwest.
#[derive(Debug)]
pub(super) struct ForReqwest(pub(super) Arc<Names>);

impl Resolve for ForReqwest {
    fn resolve(&self, _: Name) -> Resolving {
        let names = Arc::clone(&self.0);
        Box::pin(async move { Ok(Box::new(names.in_turn().await?.into_iter()) as Addrs) })
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// A name whose addresses are what `answers` says, look-up by look-up; the last stays.
    pub(in super::super) fn named(port: u16, policy: Lookup, answers: Vec<Vec<IpAddr>>) -> Arc<Names> {
        let asked = AtomicUsize::new(0);
        Names::looked_up_by("gateway.example".to_owned(), port, policy, move || {
            let nth = asked.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
            let found = answers[nth].clone();
            Box::pin(async move { Ok(found) })
        })
    }
}

/// Whether this machine speaks the protocol of an address at all: where IPv6 is switched off a name may have such an address
/// all the same, and what connecting to it says looks like a lack of ports. Nothing is sent.
fn has_way_to(ip: IpAddr) -> bool {
    let from: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let tried = UdpSocket::bind((from, 0)).and_then(|socket| socket.connect((ip, 9)));
    !tried.is_err_and(|error| {
        matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported)
            || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::testing::named;
    use super::*;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
    const TWO: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

    async fn firsts(names: &Arc<Names>, often: usize) -> Vec<IpAddr> {
        let mut firsts = Vec::new();
        for _ in 0..often {
            firsts.push(names.in_turn().await.unwrap()[0].ip());
            // a repeated look-up goes on by itself
            tokio::task::yield_now().await;
        }
        firsts
    }

    /// As in grafana/k6#726 and tsenart/vegeta#162: connections share out over all addresses, for one look-up.
    #[tokio::test]
    async fn addresses_are_used_in_turn_and_a_name_is_not_looked_up_for_each_connection() {
        let names = named(80, Lookup::Every(Duration::from_secs(3_600)), vec![vec![ONE, TWO, ONE]]);
        let firsts = firsts(&names, 1_000).await;
        assert_eq!(firsts.iter().filter(|ip| **ip == ONE).count(), 500);
        let looked = names.looked().unwrap();
        assert_eq!((looked.lookups, looked.addresses), (1, vec![(ONE, 0), (TWO, 0)]));
    }

    /// As in grafana/k6#738: a record that changes in mid-run is seen, unless the plan pins it.
    #[tokio::test]
    async fn a_changed_record_is_followed_at_the_interval_and_not_where_it_is_pinned() {
        let records = || vec![vec![ONE], vec![TWO]];
        let names = named(80, Lookup::Every(Duration::ZERO), records());
        // whoever finds it stale does not wait for the look-up it begins
        assert_eq!(firsts(&names, 4).await, [ONE, ONE, TWO, TWO]);
        let looked = names.looked().unwrap();
        assert!(looked.lookups >= 2, "{looked:?}");
        assert_eq!(looked.addresses, [(ONE, 0), (TWO, 0)], "what it was before is not forgotten");

        let pinned = named(80, Lookup::Once, records());
        assert_eq!(firsts(&pinned, 4).await, [ONE; 4]);
        assert_eq!(pinned.looked().unwrap().lookups, 1);
    }

    #[tokio::test]
    async fn a_look_up_that_fails_later_leaves_what_is_known_and_the_first_one_says_so() {
        let failing = |good: usize| {
            let asked = AtomicUsize::new(0);
            Names::looked_up_by("gateway.example".into(), 80, Lookup::Every(Duration::ZERO), move || {
                let found = if asked.fetch_add(1, Ordering::Relaxed) < good {
                    Ok(vec![ONE])
                } else {
                    Err(io::Error::other("failed to lookup address information"))
                };
                Box::pin(async move { found })
            })
        };
        assert!(failing(0).in_turn().await.is_err());
        let names = failing(1);
        assert_eq!(firsts(&names, 5).await, [ONE; 5]);
        assert!(names.looked().unwrap().lookups > 1);
        let empty = named(80, Lookup::Once, vec![vec![]]);
        assert!(empty.in_turn().await.is_err(), "a name without an address");
    }

    #[tokio::test]
    async fn an_address_is_taken_as_it_is() {
        for host in ["127.0.0.1", "[::1]"] {
            let url = Url::parse(&format!("http://{host}:8080/x")).unwrap();
            let names = Names::of(&url, Lookup::Once);
            let shown: Vec<String> =
                names.in_turn().await.unwrap().iter().map(SocketAddr::to_string).collect();
            assert_eq!(shown, [format!("{host}:8080")]);
            assert_eq!(names.looked(), None);
        }
    }

    /// Where IPv6 is switched off, `localhost` may have an address of it all the same: connecting there says what a lack of
    /// ports says, and would excuse a target that is down.
    #[test]
    fn loopback_can_be_reached_and_an_address_without_a_way_is_told() {
        assert!(has_way_to(ONE) && has_way_to(TWO));
        let six = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        assert_eq!(has_way_to(Ipv6Addr::LOCALHOST.into()), six, "as this machine has it");
    }
}
