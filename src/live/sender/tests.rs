use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;
use crate::live::body::{Template, Written};
use crate::live::{Clock, testing};
use crate::observe::Attempt;
use crate::plan::{Http, Lookup};
use crate::units::Tokens;

const BOTH: [SenderKind; 2] = [SenderKind::Reqwest, SenderKind::Hyper];

/// What a server of these tests does.
#[derive(Debug, Clone, Copy, Default)]
struct Manner {
    /// It closes its connection after each answer.
    closes: bool,
    /// Bytes of a body it takes at once, over HTTP/2.
    window: Option<u32>,
    /// It answers before it has read anything.
    hasty: bool,
    /// It never answers.
    silent: bool,
    /// How long a header of its answers is.
    header: usize,
}

/// What one has seen.
#[derive(Debug, Default)]
struct Heard {
    /// Whole bodies, with the number of the connection they came on.
    bodies: Vec<(usize, Vec<u8>)>,
    /// Requests whose caller went away.
    left: usize,
    connections: usize,
}

struct Leaving(Arc<Mutex<Heard>>, bool);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.lock().unwrap().left += usize::from(!self.1);
    }
}

async fn answered(
    request: Request<Incoming>,
    nth: usize,
    manner: Manner,
    heard: Arc<Mutex<Heard>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut leaving = Leaving(Arc::clone(&heard), false);
    if manner.silent {
        std::future::pending::<()>().await;
    }
    if !manner.hasty {
        let body = request.into_body().collect().await.map(|body| body.to_bytes().to_vec());
        heard.lock().unwrap().bodies.push((nth, body.unwrap_or_default()));
    }
    leaving.1 = true;
    let mut response = Response::new(Full::from("{}"));
    if manner.header > 0 {
        let long = http::HeaderValue::try_from("a".repeat(manner.header)).unwrap();
        response.headers_mut().insert("content-security-policy", long);
    }
    if manner.closes {
        response.headers_mut().insert("connection", http::HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Serves on `listener` for as long as the test runs. Where `ending` turns true every connection is told to end in order.
fn serve(listener: TcpListener, manner: Manner, ending: watch::Receiver<bool>) -> Arc<Mutex<Heard>> {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let shared = Arc::clone(&heard);
    tokio::spawn(async move {
        for nth in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            shared.lock().unwrap().connections += 1;
            let (heard, mut ending) = (Arc::clone(&shared), ending.clone());
            tokio::spawn(async move {
                let mut http = auto::Builder::new(TokioExecutor::new());
                http.http2().initial_stream_window_size(manner.window);
                let service = service_fn(move |request| answered(request, nth, manner, Arc::clone(&heard)));
                let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
                tokio::select! {
                    _ = connection.as_mut() => return,
                    _ = ending.wait_for(|ends| *ends) => connection.as_mut().graceful_shutdown(),
                }
                let _ = connection.await;
            });
        }
    });
    heard
}

fn request(sender: SenderKind, http: Http) -> TargetRequest {
    let mut request = testing::plan("http://127.0.0.1:1").target.request;
    request.transport = crate::plan::Transport { http, sender, ..crate::plan::Transport::default() };
    request
}

/// A request with a prompt of so many bytes.
fn outgoing(bytes: u64) -> Box<Outgoing> {
    let plan = testing::plan("http://127.0.0.1:1");
    let class = crate::workload::Class {
        bytes: crate::units::Bytes::new(bytes),
        ..plan.requests.classes()[0].clone()
    };
    let template = Template::new(plan.provider.api, "m", &class, plan.provider.count).unwrap();
    let written = Written::new(Attempt { seq: 0, nth: 0 }, Clock::start(), mpsc::channel().0);
    Box::new(Outgoing {
        headers: HeaderMap::new(),
        body: template.body("id".into(), Tokens::new(8), written),
    })
}

async fn exchange(sender: &Sender, bytes: u64) -> Result<Vec<u8>, Trouble> {
    let mut reply = sender.send(outgoing(bytes)).await?;
    let mut body = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

const TWO: Http = Http::Two { connections: None, streams: 100 };

/// A server that is never told to end, and a sender to it.
async fn to_one(manner: Manner, kind: SenderKind, http: Http) -> (Arc<Mutex<Heard>>, Sender) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/x", listener.local_addr().unwrap())).unwrap();
    // nobody sends: `wait_for` ends with an error, so the sender is kept
    let (keeps, ending) = watch::channel(false);
    std::mem::forget(keeps);
    (serve(listener, manner, ending), Sender::new(url, &request(kind, http), 100).unwrap())
}

/// As in grafana/k6#726 and #738: of a name with two addresses each gets half of the fresh connections, and both are told.
#[tokio::test]
async fn fresh_connections_share_out_over_all_addresses_of_a_name() {
    let ips: [IpAddr; 2] = [Ipv4Addr::new(127, 0, 0, 1).into(), Ipv4Addr::new(127, 0, 0, 2).into()];
    for kind in BOTH {
        let one = TcpListener::bind((ips[0], 0)).await.unwrap();
        let port = one.local_addr().unwrap().port();
        let two = TcpListener::bind(SocketAddr::new(ips[1], port)).await.unwrap();
        let (_keeps, ending) = watch::channel(false);
        let manner = Manner { closes: true, ..Manner::default() };
        let heard = [one, two].map(|listener| serve(listener, manner, ending.clone()));
        let names = names::testing::named(port, Lookup::Every(Duration::from_secs(60)), vec![ips.to_vec()]);
        let url = Url::parse(&format!("http://gateway.example:{port}/x")).unwrap();
        let sender = Sender::to(url, &request(kind, Http::One), 10, names).unwrap();
        for _ in 0..1_000 {
            assert_eq!(exchange(&sender, 100).await.unwrap(), b"{}");
        }
        let looked = sender.looked().unwrap();
        assert_eq!(looked.lookups, 1, "not for each of them");
        for (i, heard) in heard.iter().enumerate() {
            let got = heard.lock().unwrap().bodies.len();
            assert!((400..=600).contains(&got), "{kind:?}: {got} of 1,000 to {}", ips[i]);
            assert_eq!(looked.addresses[i], (ips[i], got as u64), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_large_body_goes_through_a_small_window_whole() {
    for kind in BOTH {
        let (heard, sender) = to_one(Manner { window: Some(1_000), ..Manner::default() }, kind, TWO).await;
        assert_eq!(exchange(&sender, 60_000).await.unwrap(), b"{}");
        let heard = heard.lock().unwrap();
        assert!(heard.bodies[0].1.len() > 60_000, "{kind:?}: {}", heard.bodies[0].1.len());
        assert!(serde_json::from_slice::<serde_json::Value>(&heard.bodies[0].1).is_ok());
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_the_whole_request_is_written_is_read() {
    for kind in BOTH {
        let manner = Manner { window: Some(1_000), hasty: true, ..Manner::default() };
        let (_, sender) = to_one(manner, kind, TWO).await;
        let answer = tokio::time::timeout(Duration::from_secs(20), exchange(&sender, 60_000)).await;
        assert_eq!(answer.unwrap().unwrap(), b"{}", "{kind:?}");
    }
}

#[tokio::test]
async fn a_caller_who_leaves_resets_its_stream_and_the_connection_stands() {
    for kind in BOTH {
        let (heard, sender) = to_one(Manner { silent: true, ..Manner::default() }, kind, TWO).await;
        for n in 1..=3 {
            let left = tokio::time::timeout(Duration::from_millis(100), exchange(&sender, 100)).await;
            assert!(left.is_err());
            while heard.lock().unwrap().left < n {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        assert_eq!(heard.lock().unwrap().connections, 1, "{kind:?}");
    }
}

/// Over HTTP/1.1 there is no other way to say that one has left than to close.
#[tokio::test]
async fn a_caller_who_leaves_closes_its_connection_and_the_next_has_another() {
    for kind in BOTH {
        let (heard, sender) = to_one(Manner { silent: true, ..Manner::default() }, kind, Http::One).await;
        for n in 1..=3 {
            let left = tokio::time::timeout(Duration::from_millis(100), exchange(&sender, 100)).await;
            assert!(left.is_err());
            while heard.lock().unwrap().left < n {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(heard.lock().unwrap().connections, n, "{kind:?}");
        }
    }
}

/// What gateways and the proxies before them add to an answer makes a head of some kilobytes.
#[tokio::test]
async fn long_heads_are_understood() {
    for (kind, http) in
        [(SenderKind::Reqwest, Http::One), (SenderKind::Hyper, Http::One), (SenderKind::Hyper, TWO)]
    {
        let manner = Manner { header: 15_000, ..Manner::default() };
        let (_, sender) = to_one(manner, kind, http).await;
        for _ in 0..2 {
            assert_eq!(exchange(&sender, 100).await.unwrap(), b"{}", "{kind:?}");
        }
    }
}

/// A server that is told to end lets what is open end, and takes no more: the next request has a connection of its own.
#[tokio::test]
async fn after_a_servers_farewell_another_connection_is_opened() {
    for kind in BOTH {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/x", listener.local_addr().unwrap())).unwrap();
        let (end, ending) = watch::channel(false);
        let heard = serve(listener, Manner::default(), ending);
        let sender = Sender::new(url, &request(kind, TWO), 100).unwrap();
        exchange(&sender, 100).await.unwrap();
        exchange(&sender, 100).await.unwrap();
        end.send(true).unwrap();
        // it takes a moment until its word has come
        tokio::time::sleep(Duration::from_millis(50)).await;
        end.send(false).unwrap();
        exchange(&sender, 100).await.unwrap();
        let heard = heard.lock().unwrap();
        let on: Vec<usize> = heard.bodies.iter().map(|(nth, _)| *nth).collect();
        assert_eq!(on, [0, 0, 1], "{kind:?}");
    }
}
