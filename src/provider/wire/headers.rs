//! Headers that callers, gateways and providers of this house agree on. Names are in lower case.

/// The id a request travels under; see [`super::RequestId`].
pub const REQUEST_ID: &str = "x-request-id";

/// On whose behalf a request comes.
pub const TENANT: &str = "x-tenant";

/// How important a request is: 0 is the most important, and without the header it is 1.
pub const TIER: &str = "x-tier";

/// What makes two requests the same operation: the same key, and the same body.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Says `true` with an answer that was made for another request of the same operation.
pub const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";

/// Says `false` with a refusal whose wait nobody keeps: SDKs then do not try again, instead of coming early.
pub const SHOULD_RETRY: &str = "x-should-retry";

/// Only callers who speak Anthropic's API send it.
pub const ANTHROPIC_VERSION: &str = "anthropic-version";

/// The tier of a request that names none.
pub const STANDARD_TIER: u8 = 1;
