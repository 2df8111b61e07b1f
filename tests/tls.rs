//! Targets behind TLS whose certificate nobody vouches for.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use assert_cmd::Command;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "fixtures", "tls", name].iter().collect()
}

/// A server with this certificate that answers 404 and the version it was asked in; it ends with the test's process.
fn server(certificate: &str) -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let url = format!("https://localhost:{}", listener.local_addr()?.port());
    let chain = vec![CertificateDer::from_pem_file(fixture(certificate))?];
    let key = PrivateKeyDer::from_pem_file(fixture("key.pem"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || runtime.block_on(serve(listener, TlsAcceptor::from(Arc::new(config)))));
    Ok(url)
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor) -> Outcome<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // a caller that does not trust us ends here
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let http = auto::Builder::new(TokioExecutor::new());
            let _ = http.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::from(format!("spoken: {:?}", request.version())));
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}

/// What a run says on stderr, and that it could not be made.
fn refused(url: &str, sets: &[&str]) -> Outcome<String> {
    let mut command = Command::cargo_bin("tenfold")?;
    command.args(["run", concat!(env!("CARGO_MANIFEST_DIR"), "/plans/smoke.yaml"), "--target", url]);
    command.args(sets.iter().flat_map(|set| ["--set", set]));
    let folder = tempfile::tempdir()?;
    command.arg("--out").arg(folder.path()).env("TENFOLD_LIMITS", folder.path().join("none.json"));
    let output = command.assert().code(4).get_output().clone();
    Ok(String::from_utf8(output.stderr)?)
}

/// As in alexfernandez/loadtest#108 and grafana/k6#234: a certificate signed by nobody ends the run before its load, says
/// why, and names the two ways out; both lead through, with either sender and either protocol.
#[test]
fn a_certificate_that_nobody_vouches_for_is_named_before_the_load() {
    let url = server("self-signed.pem").unwrap();
    let trusted = format!("target.request.ca_file={}", fixture("self-signed.pem").display());
    for sender in ["target.request.sender=reqwest", "target.request.sender=hyper"] {
        for (http, spoken) in [("target.request.http=1.1", "HTTP/1.1"), ("target.request.http=2", "HTTP/2.0")]
        {
            let said = refused(&url, &[sender, http]).unwrap();
            assert!(said.contains("signed by nobody this machine trusts"), "{sender} {http}: {said}");
            assert!(said.contains("ca_file") && said.contains("insecure"), "{said}");
            for way in [trusted.as_str(), "target.request.insecure=true"] {
                let said = refused(&url, &[sender, http, way]).unwrap();
                let through = format!("spoken: {spoken}");
                assert!(said.contains("answered 404") && said.contains(&through), "{sender} {way}: {said}");
            }
        }
    }
}

/// As in grafana/k6#218: what is wrong with a certificate is told by its name, whichever sender found it.
#[test]
fn what_is_wrong_with_a_certificate_is_told_with_its_way_out() {
    let wrongs = [
        ("other-name.pem", "has a certificate for other names", "call it by a name"),
        ("expired.pem", "has a certificate that has expired", "have it renewed"),
        ("authority.pem", "has the certificate of an authority as its own", "CA:FALSE"),
    ];
    for (certificate, what, way_out) in wrongs {
        let url = server(certificate).unwrap();
        let trusted = format!("target.request.ca_file={}", fixture(certificate).display());
        for sender in ["target.request.sender=reqwest", "target.request.sender=hyper"] {
            let said = refused(&url, &[sender, &trusted]).unwrap();
            assert!(said.contains(what) && said.contains(way_out), "{certificate} {sender}: {said}");
            assert!(said.contains("target.request.insecure"), "{said}");
            let said = refused(&url, &[sender, "target.request.insecure=true"]).unwrap();
            assert!(said.contains("answered 404"), "{certificate} {sender}: {said}");
        }
    }
}

/// A target that speaks no TLS where https was written is told from one that is not there.
#[test]
fn a_target_that_speaks_no_tls_is_told_from_one_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // what a plain server says to a greeting it does not understand
            let _ =
                io::Write::write_all(&mut &stream, b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
            let _ = io::copy(&mut &stream, &mut io::sink());
        }
    });
    for sender in ["target.request.sender=reqwest", "target.request.sender=hyper"] {
        let said = refused(&url, &[sender]).unwrap();
        assert!(said.contains("broke off the TLS handshake") && said.contains("http://"), "{sender}: {said}");
    }
}
