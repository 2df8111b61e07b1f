//! What certificates are trusted, and which protocol is asked for.

use std::fs;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;

use crate::live::LiveError;
use crate::plan::{Http, TargetRequest};

/// TLS as `request` says.
pub(super) fn config(request: &TargetRequest) -> Result<ClientConfig, LiveError> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if request.insecure {
        Arc::new(Anyone(Arc::clone(&provider)))
    } else {
        let extra = extra_roots(request)?;
        let unusable =
            |e: rustls::Error| LiveError::Request(format!("the certificates to trust cannot be used: {e}"));
        Arc::new(Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(unusable)?)
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| LiveError::Request(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![match request.transport.http {
        Http::One => b"http/1.1".to_vec(),
        Http::Two { .. } => b"h2".to_vec(),
    }];
    Ok(config)
}

fn extra_roots(request: &TargetRequest) -> Result<Vec<CertificateDer<'static>>, LiveError> {
    let Some(path) = &request.ca_file else { return Ok(Vec::new()) };
    let unusable =
        |why: String| LiveError::Request(format!("target.request.ca_file {}: {why}", path.display()));
    let pem = fs::read(path).map_err(|e| unusable(e.to_string()))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|e| unusable(e.to_string()))?;
    if all.is_empty() { Err(unusable("there is no certificate in it".into())) } else { Ok(all) }
}

/// Takes any certificate: `target.request.insecure`. Signatures are still checked.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
