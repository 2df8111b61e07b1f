#![doc = "x"]
pub mod units; pub mod workload; pub mod provider; pub mod admission; pub mod plan; pub mod observe; pub mod measure; pub mod forecast; pub mod check; pub mod report;
