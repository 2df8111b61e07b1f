#![doc = "x"]
pub mod admission;
pub mod measure;
pub mod observe;
pub mod plan;
pub mod provider;
pub mod units;
pub mod workload;
