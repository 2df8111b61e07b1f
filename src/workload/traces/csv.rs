//! Any CSV whose first line names its columns: the plan says which are which, and how times are written.

use super::{Format, Layout};

pub(super) const FORMAT: Format = Format {
    name: "csv",
    about: "any CSV with named columns: columns: { time: at, prompt: in, output: out }, clock: seconds",
    layout: Layout::Csv,
    columns: None,
    clock: None,
};
