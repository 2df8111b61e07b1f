use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::measure::Closed;

/// What is shown everything that ends, where it ends: off the path of sending, and in no hurry.
type Told = dyn FnMut(Closed<'_>) + Send;

/// Somebody who is shown everything that ends in a run.
#[derive(Clone)]
pub struct Listener(Arc<Mutex<Told>>);

impl Listener {
    /// Shows it to `told`.
    pub fn new(told: impl FnMut(Closed<'_>) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(told)))
    }

    /// Shows something that has ended.
    pub(super) fn tell(&self, closed: Closed<'_>) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(closed);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
