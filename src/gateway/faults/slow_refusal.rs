//! A refusal takes as long as if it were work.

use super::{Kind, Wrongs};

pub(super) const KIND: Kind =
    Kind { name: "slow_refusal", set: |wrongs, amount| wrongs.slow = amount.time() };

/// Waits before a refusal is written.
pub(super) async fn at(wrongs: &Wrongs) {
    tokio::time::sleep(wrongs.slow).await;
}
