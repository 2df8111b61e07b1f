//! How a connection comes up: the address, the source, and TLS where it is asked for.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Url;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

use super::names::{Names, Peer};
use super::tls;
use crate::live::LiveError;
use crate::live::trouble::{self, Tls, Trouble};
use crate::plan::{Http, TargetRequest};

/// A connection, with or without TLS.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Where connections go, and where they come from.
pub(super) struct Route {
    names: Arc<Names>,
    sources: Vec<IpAddr>,
    next: AtomicUsize,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    http: Http,
}

impl Route {
    /// To the host of `url`, whose addresses `names` knows, as `request` says.
    pub(super) fn new(url: &Url, request: &TargetRequest, names: Arc<Names>) -> Result<Self, LiveError> {
        let tls = (url.scheme() == "https").then(|| {
            let host = names.host();
            let name = ServerName::try_from(host.to_owned())
                .map_err(|_| LiveError::Request(format!("`{host}` is no name a certificate can have")))?;
            Ok::<_, LiveError>((TlsConnector::from(Arc::new(tls::config(request)?)), name))
        });
        Ok(Self {
            sources: request.transport.source_addresses.clone(),
            next: AtomicUsize::new(0),
            tls: tls.transpose()?,
            names,
            http: request.transport.http,
        })
    }

    /// A new connection, TLS and all, and whom it is to.
    pub(super) async fn connect(&self) -> Result<(Box<dyn Io>, Arc<Peer>), Trouble> {
        let (stream, peer) = self.tcp().await.map_err(|error| trouble::of_connecting(&error))?;
        // small requests go out at once
        let _ = stream.set_nodelay(true);
        let Some((connector, name)) = &self.tls else { return Ok((Box::new(stream), peer)) };
        let stream = connector.connect(name.clone(), stream).await.map_err(|e| trouble::of_handshake(&e))?;
        let agreed = stream.get_ref().1.alpn_protocol();
        if matches!(self.http, Http::Two { .. }) && agreed != Some(b"h2") {
            return Err(Trouble::Tls(Tls::NoProtocol));
        }
        Ok((Box::new(stream), peer))
    }

    async fn tcp(&self) -> io::Result<(TcpStream, Arc<Peer>)> {
        let mut failed = None;
        for address in self.names.in_turn().await? {
            match self.to(address).await {
                Ok(stream) => return Ok((stream, self.names.peer(address.ip()))),
                Err(error) => failed = Some(graver(failed, error)),
            }
        }
        let none = || io::Error::new(io::ErrorKind::AddrNotAvailable, "failed to lookup address information");
        Err(failed.unwrap_or_else(none))
    }

    async fn to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if !self.sources.is_empty() {
            let source = self.sources[self.next.fetch_add(1, Ordering::Relaxed) % self.sources.len()];
            socket.bind(SocketAddr::new(source, 0))?;
        }
        socket.connect(address).await
    }
}

/// Of the errors of several addresses the one that is told: the last, unless that is a lack of ours and another was not. An
/// address of a kind this machine has no route for looks like such a lack, and must not excuse a target that is down.
fn graver(before: Option<io::Error>, error: io::Error) -> io::Error {
    match before {
        Some(before) if trouble::exhausted(&error) && !trouble::exhausted(&before) => before,
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn an_address_that_cannot_be_used_does_not_excuse_a_target_that_is_down() {
        let os = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        let told = |errors: [Errno; 2]| {
            let last = errors.into_iter().map(os).fold(None, |failed, error| Some(graver(failed, error)));
            last.unwrap().raw_os_error().unwrap()
        };
        for errors in [[Errno::CONNREFUSED, Errno::ADDRNOTAVAIL], [Errno::ADDRNOTAVAIL, Errno::CONNREFUSED]] {
            assert_eq!(told(errors), Errno::CONNREFUSED.raw_os_error());
        }
        assert_eq!(told([Errno::MFILE, Errno::MFILE]), Errno::MFILE.raw_os_error());
        assert_eq!(told([Errno::CONNREFUSED, Errno::CONNRESET]), Errno::CONNRESET.raw_os_error());
    }
}
