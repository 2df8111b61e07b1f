//! `tenfold list`: the names a plan or a command line can use.

use std::borrow::Cow;

use super::{exit, say};
use crate::admission::{bounds, faults, orders, retry_after, shares};
use crate::check::{self, Standard};
use crate::live::COLUMNS;
use crate::plan::spawn::VARIABLES;
use crate::plan::{MEASURES, levers};
use crate::provider::FaultKind;
use crate::provider::wire::APIS;
use crate::report;
use crate::workload::{arrivals, retry, sizes, traces};

/// List the names plans and commands can use.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// One table only
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(ALL.iter().map(|table| table.name)))]
    table: Option<String>,
}

/// A name, and a line about it.
type Row = (&'static str, Cow<'static, str>);

/// A table of names, each with a line about it.
struct Table {
    name: &'static str,
    about: &'static str,
    rows: fn() -> Vec<Row>,
}

/// Every table, sorted.
const ALL: &[Table] = &[
    Table {
        name: "apis",
        about: "APIs that callers, gateway and provider speak (provider.api)",
        rows: || APIS.iter().map(|api| (api.name(), api.about().into())).collect(),
    },
    Table {
        name: "arrivals",
        about: "arrival processes (load.arrivals)",
        rows: || arrivals::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table {
        name: "bounds",
        about: "bounds on the queue (target.embedded.bound)",
        rows: || bounds::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table {
        name: "checks",
        about: "checks, the limit they are held to in brackets (checks: { ID: { limit: …, off: true, allow_no_data: true } })",
        rows: checks,
    },
    Table {
        name: "faults",
        about: "what can be wrong with the embedded gateway, the usual amount in brackets (target.embedded.faults)",
        rows: || faults::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table {
        name: "formats",
        about: "formats of a report (--format)",
        rows: || report::ALL.iter().map(|format| (format.name, format.about.into())).collect(),
    },
    Table {
        name: "levers",
        about: "what could be done about the event (levers, predict --lever)",
        rows: || levers::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table { name: "log", about: "columns of a log (run --log), in their order", rows: || plain(COLUMNS) },
    Table {
        name: "measures",
        about: "measures two builds are compared by (diff)",
        rows: || MEASURES.iter().map(|measure| (measure.known.id, measure.known.about.into())).collect(),
    },
    Table {
        name: "orders",
        about: "orders of service (target.embedded.order)",
        rows: || orders::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table {
        name: "retries",
        about: "SDKs whose retries callers can make (requests.0.on_refusal.retry.like)",
        rows: || retry::ALL.iter().map(|sdk| (sdk.name, sdk.about.into())).collect(),
    },
    Table {
        name: "retry-after",
        about: "Retry-After strategies (target.embedded.retry_after)",
        rows: || retry_after::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table {
        name: "shares",
        about: "ways to share among tenants (target.embedded.share)",
        rows: || shares::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table {
        name: "sizes",
        about: "sizes of prompts and answers (requests.0.prompt.tokens, requests.0.output.tokens)",
        rows: || sizes::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
    },
    Table {
        name: "traces",
        about: "formats of traces (load.arrivals.trace.format)",
        rows: || traces::ALL.iter().map(|format| (format.name, format.about.into())).collect(),
    },
    Table {
        name: "variables",
        about: "what a command finds in its environment, and its configuration may say (target.spawn)",
        rows: || plain(VARIABLES),
    },
];

/// What is printed under the table of the same name.
const ALSO: &[Table] = &[Table {
    name: "faults",
    about: "what can be wrong with the provider for a while (provider.faults)",
    rows: || FaultKind::ALL.iter().map(|kind| (kind.name, kind.about.into())).collect(),
}];

/// Every check, sorted, with its limit.
fn checks() -> Vec<Row> {
    let row = |kind: &'static check::Kind| match kind.limit {
        Standard::Nothing => (kind.id, kind.about.into()),
        limit => (kind.id, format!("{} [{limit}]", kind.about).into()),
    };
    let mut rows: Vec<Row> = check::ALL.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

fn plain(rows: &[(&'static str, &'static str)]) -> Vec<Row> {
    rows.iter().map(|(name, about)| (*name, (*about).into())).collect()
}

impl Args {
    /// Prints one table, or all.
    pub(super) fn run(&self) -> u8 {
        let wanted = |table: &&Table| self.table.as_deref().is_none_or(|name| name == table.name);
        let also = |table: &'static Table| ALSO.iter().filter(|also| also.name == table.name);
        let tables = ALL.iter().filter(wanted).flat_map(|table| std::iter::once(table).chain(also(table)));
        let tables: Vec<String> = tables.map(render).collect();
        say(&tables.join("\n"));
        exit::PASSED
    }
}

fn render(table: &Table) -> String {
    let rows = (table.rows)();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines = rows.iter().map(|(name, about)| format!("  {name:width$}  {about}\n"));
    format!("{}\n{}", table.about, lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_every_row_says_something() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for table in ALL.iter().chain(ALSO) {
            assert!(ALL.iter().any(|main| main.name == table.name), "{}", table.name);
            let rows = (table.rows)();
            // the columns of a log stand in their own order
            let sorted = rows.windows(2).all(|pair| pair[0].0 < pair[1].0);
            assert!(sorted || table.name == "log", "{}", table.name);
            assert!(rows.iter().all(|(name, about)| !name.is_empty() && !about.is_empty()), "{}", table.name);
            assert!(!rows.is_empty(), "{}", table.name);
        }
        let orders = ALL.iter().find(|table| table.name == "orders").unwrap();
        let row = render(orders)
            .lines()
            .any(|line| line.starts_with("  fifo ") && line.ends_with("first in, first out"));
        assert!(row, "{}", render(orders));
    }

    #[test]
    fn the_readme_has_a_row_for_every_check_with_its_limit() {
        let readme = include_str!("../../README.md");
        for kind in check::ALL {
            let start = format!("| `{}` | ", kind.id);
            let row = readme.lines().find(|line| line.starts_with(&start));
            let row = row.unwrap_or_else(|| panic!("{} has no row", kind.id));
            let limit = if kind.limit == Standard::Nothing { String::new() } else { kind.limit.to_string() };
            assert!(row.ends_with(&format!("| {limit} |")), "{row}: its limit is {limit}");
        }
    }
}
