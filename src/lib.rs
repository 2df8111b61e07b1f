//! tenfold rehearses the day a gateway gets ten times its traffic.
//!
//! One process plays both ends: the callers, who keep arriving whatever the answers do (an open loop), and the
//! provider behind the gateway, with a token quota scaled so that load over capacity is that of the real event.
//! Standing on both sides it sees what no load generator can: how deep the gateway's queue was, whether it began to
//! shed where arithmetic says it must, whether its `Retry-After` told the truth, what memory it held, how long its
//! backlog took to drain, and how many tokens were spent for callers who had already left.
//!
//! # One idea
//!
//! A rehearsal is a function from a plan to measures. Live and simulated are two evaluators of it.
//!
//! ```text
//! plans/x.yaml ─▶ plan ─▶ workload ──┬─▶ simulate ─┐
//!                  │     (due times,  │  virtual    ├─▶ observe ─▶ measure ─▶ check ─▶ report
//!                  │      sizes, ids) └─▶ live ─────┘  (one request's     (a fold)   (verdicts)
//!                  │                      real sockets  two sides joined)
//!                  └─▶ forecast ──────────────────────────────────────────────▲     report A + B ─▶ diff
//! ```
//!
//! What a gateway decides ([`admission`]) and what a provider grants ([`provider`]) are pure machines: no clock, no
//! socket, no randomness of their own; the present instant is an argument. The simulator and the real servers drive
//! the very same code, and both evaluators emit the same [`observe::Sighting`]s. Arrows never go back.
//!
//! # The rooms
//!
//! | module | what it is | may use |
//! |---|---|---|
//! | [`units`] | instants, amounts, rates, the typed reader of configurations | std, serde |
//! | [`workload`] | who calls, when, with what | units |
//! | [`admission`] | the gateway's decisions | units |
//! | [`provider`] | the provider's decisions; wire formats | units |
//! | [`plan`] | YAML to a plan, valid by construction | the four above |
//! | [`observe`] | both sides of a request, joined | units, plan and below |
//! | [`measure`] | windows, histograms, totals: a commutative monoid | observe and below |
//! | [`forecast`] | closed forms: bound, onset, shed share, drain, memory | measure and below |
//! | [`simulate`] | virtual time | measure and below |
//! | [`check`] | one check a file, verdicts | all above |
//! | [`diff`] | two builds side by side, each one run or several | all above |
//! | [`report`] | plain data, one file a format; what of a report is compared | all above |
//! | `gateway` | the reference gateway: an HTTP shell around admission | units, admission, provider's wire formats |
//! | `live` | clock, generator, client, provider shell, target, run | plan to measure, gateway's configuration |
//! | `cli` | the command line | everything |
//!
//! The layers are proved twice: without default features everything down to `report` builds with no runtime, socket
//! or command-line crate in the graph, and a test reads every `use crate::` line and fails with the file, the line and
//! the rule.
//!
//! # How to add one thing
//!
//! One new file, and two adjacent lines in the folder's `mod.rs`: `mod x;` and an entry in its sorted table `ALL`. The
//! table gives lookup by name in a plan, the "known: …" list in errors, `tenfold list`, and a place in the property
//! tests.
//!
//! | what | folder | table |
//! |---|---|---|
//! | an arrival process | `workload/arrivals/` | [`workload::arrivals::ALL`] |
//! | a distribution of sizes | `workload/sizes/` | [`workload::sizes::ALL`] |
//! | a format of traces | `workload/traces/` | [`workload::traces::ALL`] |
//! | an SDK whose retries are made | `workload/retry/` | [`workload::retry::ALL`] |
//! | a bound on the queue | `admission/bounds/` | [`admission::bounds::ALL`] |
//! | an order of service | `admission/orders/` | [`admission::orders::ALL`] |
//! | a Retry-After strategy | `admission/retry_after/` | [`admission::retry_after::ALL`] |
//! | an API of providers | `provider/wire/` | [`provider::wire::APIS`] |
//! | a check | `check/` | [`check::ALL`] |
//! | a measure two builds are compared by | `diff/measure.rs` | [`diff::ALL`] |
//! | a report format | `report/` | [`report::ALL`] |
//! | a form of a comparison | `report/comparison/` | [`report::comparison::ALL`] |

pub mod admission;
pub mod check;
pub mod diff;
pub mod forecast;
pub mod measure;
pub mod observe;
pub mod plan;
pub mod provider;
pub mod report;
pub mod simulate;
pub mod units;
pub mod workload;

#[cfg(feature = "live")]
pub mod gateway;
#[cfg(feature = "live")]
pub mod live;

#[cfg(feature = "cli")]
pub mod cli;
