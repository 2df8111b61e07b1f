#![doc = "x"]
pub mod units; pub mod workload; pub mod provider; pub mod admission; pub mod plan; pub mod observe; pub mod measure;
#[cfg(feature = "cli")] pub mod cli;
