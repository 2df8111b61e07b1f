//! Rules of the policy that are not kept.

use super::{Amount, Kind};
use crate::admission::shares;

pub(super) const NO_RECHECK: Kind = Kind {
    name: "no_recheck",
    about: "nobody is tested again before being forwarded, however late",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.policy.recheck = false,
};

pub(super) const GREEDY_TENANT: Kind = Kind {
    name: "greedy_tenant",
    about: "tenants share nothing: who sends most is served most",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.policy.share = shares::standard(),
};

pub(super) const UNLIMITED_RETRIES: Kind = Kind {
    name: "unlimited_retries",
    about: "failed calls to the provider are repeated as long as the caller's time allows",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| {
        bent.policy.upstream.attempts = u16::MAX;
        bent.policy.upstream.budget = None;
    },
};

pub(super) const PER_REPLICA_QUOTAS: Kind = Kind {
    name: "per_replica_quotas",
    about: "each replica believes that it has the whole quota",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.whole_quotas = true,
};
