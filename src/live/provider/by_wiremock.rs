//! One mock answers everything. Its responder runs under wiremock's lock, so it does nothing but read the body once and
//! ask the machine; the service time is wiremock's delay, which holds no lock.

use std::io;
use std::net::TcpListener;

use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::office::{Answered, Came, Office};

impl Respond for Office {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let came = Came {
            method: &request.method,
            path: request.url.path(),
            headers: &request.headers,
            body: &request.body,
        };
        let reply = self.reply(&came);
        let body = match reply.body {
            Answered::Whole(body) => body,
            // never asked for: this engine refuses `stream`
            Answered::Stream { frames, .. } => frames.error,
        };
        ResponseTemplate::new(reply.status)
            .append_headers(reply.headers)
            .set_body_raw(body, reply.kind)
            .set_delay(reply.until.since(self.clock().now()))
    }
}

/// Starts wiremock from a thread of its own, so that it can be called with and without a runtime around.
pub(super) fn start(listener: TcpListener, office: Office) -> io::Result<MockServer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let starting = std::thread::Builder::new().name("provider-start".into()).spawn(move || {
        // wiremock's own thread is started from this one
        crate::live::run_before_others();
        runtime.block_on(async {
            let server = MockServer::builder().listener(listener).disable_request_recording().start().await;
            Mock::given(wiremock::matchers::any()).respond_with(office).mount(&server).await;
            server
        })
    })?;
    starting.join().map_err(|_| io::Error::other("wiremock did not start"))
}
