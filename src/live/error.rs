//! Why a run could not be made.

use std::io;

/// Why a run could not be made. What a request suffers is no error but an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// No request came through the chain and back.
    #[error("the canary was lost: {0}")]
    Canary(String),
    /// An HTTP client could not be made.
    #[error(
        "the HTTP client could not be set up: check target.request.ca_file and the system's certificates"
    )]
    Client(#[source] reqwest::Error),
    /// Someone asked to end before the load had begun.
    #[error("interrupted before the load began")]
    Interrupted,
    /// The plan needs more than this machine has.
    #[error("this machine cannot carry the plan: {0}")]
    Preflight(String),
    /// The provider could not be started.
    #[error("the provider could not be started: {0}")]
    Provider(String),
    /// The target's address or headers cannot be used.
    #[error("{0}")]
    Request(String),
    /// The target could not be started, or ended before it was ready.
    #[error("{0}")]
    Target(String),
    /// A thread could not be started.
    #[error("a thread could not be started: raise the limit of processes (ulimit -u) or free some memory")]
    Thread(#[source] io::Error),
}
