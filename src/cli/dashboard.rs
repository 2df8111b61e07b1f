//! `--dashboard ADDR`: the report's page while the run goes on.
//!
//! It has a thread of its own. A page is made when someone asks for one and a second has gone by, from what the run
//! left on its [`Board`]; the path of no request passes here.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

use crate::live::{Board, Clock, Standing};
use crate::units::Moment;

/// The most browsers at once.
const MOST_CONNECTIONS: usize = 32;
/// How long a connection may take to send the head of a request, and may be idle between two.
const HEAD: Duration = Duration::from_secs(15);
/// The largest head of a request.
const MOST_HEAD: usize = 16 << 10;
/// How old a page may be when it is given out again.
const FRESH: Duration = Duration::from_secs(1);
/// How long the run is given to say how it stands, in steps of [`STEP`].
const STEPS: u32 = 25;
/// From one look at the board to the next.
const STEP: Duration = Duration::from_millis(20);
/// Who has looked within this time is waiting for the end of the run, too.
const WATCHING: Duration = Duration::from_secs(5);
/// How long a run's end is waited for being looked at: a little more than a page waits before it looks again.
const LAST_LOOK: Duration = Duration::from_millis(2_500);

/// Makes the page of a run that stands like this.
type Draw = Box<dyn Fn(Option<&Standing>) -> String + Send + Sync>;

/// The page of a run that goes on, served.
pub(super) struct Dashboard {
    /// Where a browser finds it.
    pub(super) url: String,
    /// Where the run leaves how it stands.
    pub(super) board: Board,
    desk: Arc<Desk>,
}

impl std::fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dashboard").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What its thread and the run share.
struct Desk {
    board: Board,
    clock: Clock,
    draw: Draw,
    page: Mutex<Page>,
    seen_the_end: AtomicBool,
}

/// The page that was given out last.
#[derive(Default)]
struct Page {
    text: Bytes,
    made: Option<Moment>,
    looked: Option<Moment>,
    /// Whether it is the report of a run that is over.
    over: bool,
}

/// Whether an address may be served on without being named once more.
pub(super) fn allowed(address: SocketAddr, confirmed: Option<&str>) -> Result<(), String> {
    let host = address.ip().to_string();
    let meant = confirmed.is_some_and(|name| name.trim_matches(['[', ']']) == host);
    if address.ip().is_loopback() || meant {
        return Ok(());
    }
    Err(format!(
        "the dashboard at {address} could be read by other machines; add `--confirm-dashboard {host}` if it is meant"
    ))
}

impl Dashboard {
    /// Serves what `draw` makes at `address`; port 0 takes a free one.
    pub(super) fn start(
        address: SocketAddr,
        draw: impl Fn(Option<&Standing>) -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}/", listener.local_addr()?);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let board = Board::default();
        let desk = Arc::new(Desk {
            board: board.clone(),
            clock: Clock::start(),
            draw: Box::new(draw),
            page: Mutex::default(),
            seen_the_end: AtomicBool::new(false),
        });
        let serving = Arc::clone(&desk);
        thread::Builder::new().name("dashboard".into()).spawn(move || {
            runtime.block_on(async {
                // an address that was bound just now can be taken over
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    serve(serving, listener).await;
                }
            });
        })?;
        Ok(Self { url, board, desk })
    }

    /// The run is over, and this is its page. Whoever is looking gets it, if within a few seconds.
    pub(super) fn finish(&self, page: String) {
        let watched = {
            let mut kept = self.desk.page.lock().unwrap_or_else(PoisonError::into_inner);
            (kept.text, kept.over) = (page.into(), true);
            kept.looked.is_some_and(|at| self.desk.clock.now().since(at) < WATCHING)
        };
        let until = self.desk.clock.now() + LAST_LOOK;
        while watched && !self.desk.seen_the_end.load(Ordering::Acquire) && self.desk.clock.now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        if watched {
            // the answer is on its way
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Desk {
    async fn page(&self) -> Bytes {
        let now = self.clock.now();
        {
            let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
            page.looked = Some(now);
            if page.over {
                self.seen_the_end.store(true, Ordering::Release);
            }
            if page.over || page.made.is_some_and(|made| now.since(made) < FRESH) {
                return page.text.clone();
            }
        }
        let text = Bytes::from((self.draw)(self.newer().await.as_deref()));
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        if !page.over {
            (page.text, page.made) = (text, Some(now));
        }
        page.text.clone()
    }

    /// How the run stands now; the latest that is known, if it does not say within half a second.
    async fn newer(&self) -> Option<Arc<Standing>> {
        let before = self.board.look();
        let is_new = |standing: &Arc<Standing>| before.as_ref().is_none_or(|old| !Arc::ptr_eq(old, standing));
        for _ in 0..STEPS {
            if let Some(standing) = self.board.latest().filter(is_new) {
                return Some(standing);
            }
            tokio::time::sleep(STEP).await;
        }
        before
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let (method, path) = (request.method(), request.uri().path());
        let (status, kind, body) = if !for_us(request.headers()) {
            (StatusCode::FORBIDDEN, "text/plain", Bytes::from_static(b"call it by its address\n"))
        } else if path != "/" {
            (StatusCode::NOT_FOUND, "text/plain", Bytes::from_static(b"the page is at /\n"))
        } else if !matches!(*method, Method::GET | Method::HEAD) {
            (
                StatusCode::METHOD_NOT_ALLOWED,
                "text/plain",
                Bytes::from_static(b"it can be read, that is all\n"),
            )
        } else {
            (StatusCode::OK, "text/html; charset=utf-8", self.page().await)
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        response
    }
}

/// Whether a request names us by an address: a page of elsewhere whose name was turned to this machine does not.
fn for_us(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|b| b.is_ascii_digit()) => bare,
        _ => host,
    };
    bare.eq_ignore_ascii_case("localhost") || bare.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

async fn serve(desk: Arc<Desk>, listener: tokio::net::TcpListener) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // a lack of descriptors, or a caller that is gone again
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let desk = Arc::clone(&desk);
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let desk = Arc::clone(&desk);
                async move { Ok::<_, Infallible>(desk.answer(&request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(MOST_HEAD)
                .serve_connection(TokioIo::new(stream), service);
            // how a browser leaves is its own affair
            let _ = pin!(connection).await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn ask(url: &str, head: &str) -> String {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).unwrap();
        let host = if head.contains("Host:") { "" } else { "Host: localhost:1\r\n" };
        write!(stream, "{head}\r\n{host}Connection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn it_gives_the_page_and_nothing_else() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let dashboard =
            Dashboard::start(local, |standing| format!("so far: {}", standing.is_some())).unwrap();
        let page = ask(&dashboard.url, "GET / HTTP/1.1");
        assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("so far: false"), "{page}");
        assert!(page.contains("no-store") && page.contains("nosniff"));
        assert!(ask(&dashboard.url, "GET /etc/passwd HTTP/1.1").starts_with("HTTP/1.1 404"));
        assert!(ask(&dashboard.url, "POST / HTTP/1.1").starts_with("HTTP/1.1 405"));
        let elsewhere = ask(&dashboard.url, "GET / HTTP/1.1\r\nHost: evil.example:80");
        assert!(elsewhere.starts_with("HTTP/1.1 403"), "{elsewhere}");
        assert!(ask(&dashboard.url, "GET / HTTP/1.1\r\nHost: [::1]:9").starts_with("HTTP/1.1 200"));
        dashboard.finish("the end".into());
        assert!(ask(&dashboard.url, "GET / HTTP/1.1").ends_with("the end"));
    }

    #[test]
    fn other_machines_may_look_only_if_that_is_meant() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(allowed(at("127.0.0.1:0"), None), Ok(()));
        assert_eq!(allowed(at("[::1]:80"), None), Ok(()));
        let said = allowed(at("0.0.0.0:80"), Some("127.0.0.1")).unwrap_err();
        assert!(said.contains("--confirm-dashboard 0.0.0.0"), "{said}");
        assert_eq!(allowed(at("0.0.0.0:80"), Some("0.0.0.0")), Ok(()));
        assert_eq!(allowed(at("[2001:db8::1]:80"), Some("[2001:db8::1]")), Ok(()));
    }
}
