//! `tenfold list`: the names a plan or a command line can use.

use super::{exit, say};
use crate::admission::{bounds, faults, orders, retry_after, shares};
use crate::live::COLUMNS;
use crate::plan::spawn::VARIABLES;
use crate::plan::{CHECKS, MEASURES, levers};
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

/// A table of names, each with a line about it.
struct Table {
    name: &'static str,
    about: &'static str,
    rows: fn() -> Vec<(&'static str, &'static str)>,
}

/// Every table, sorted.
const ALL: &[Table] = &[
    Table {
        name: "apis",
        about: "APIs that callers, gateway and provider speak (provider.api)",
        rows: || APIS.iter().map(|api| (api.name(), api.about())).collect(),
    },
    Table {
        name: "arrivals",
        about: "arrival processes (load.arrivals)",
        rows: || arrivals::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table {
        name: "bounds",
        about: "bounds on the queue (target.embedded.bound)",
        rows: || bounds::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table {
        name: "checks",
        about: "checks (checks)",
        rows: || CHECKS.iter().map(|check| (check.id, check.about)).collect(),
    },
    Table {
        name: "faults",
        about: "what can be wrong with the embedded gateway, the usual amount in brackets (target.embedded.faults)",
        rows: || faults::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table {
        name: "formats",
        about: "formats of a report (--format)",
        rows: || report::ALL.iter().map(|format| (format.name, format.about)).collect(),
    },
    Table {
        name: "levers",
        about: "what could be done about the event (levers, predict --lever)",
        rows: || levers::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table { name: "log", about: "columns of a log (run --log), in their order", rows: || COLUMNS.to_vec() },
    Table {
        name: "measures",
        about: "measures two builds are compared by (diff)",
        rows: || MEASURES.iter().map(|measure| (measure.known.id, measure.known.about)).collect(),
    },
    Table {
        name: "orders",
        about: "orders of service (target.embedded.order)",
        rows: || orders::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table {
        name: "retries",
        about: "SDKs whose retries callers can make (requests.0.on_refusal.retry.like)",
        rows: || retry::ALL.iter().map(|sdk| (sdk.name, sdk.about)).collect(),
    },
    Table {
        name: "retry-after",
        about: "Retry-After strategies (target.embedded.retry_after)",
        rows: || retry_after::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table {
        name: "shares",
        about: "ways to share among tenants (target.embedded.share)",
        rows: || shares::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table {
        name: "sizes",
        about: "sizes of prompts and answers (requests.0.prompt.tokens, requests.0.output.tokens)",
        rows: || sizes::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
    },
    Table {
        name: "traces",
        about: "formats of traces (load.arrivals.trace.format)",
        rows: || traces::ALL.iter().map(|format| (format.name, format.about)).collect(),
    },
    Table {
        name: "variables",
        about: "what a command finds in its environment, and its configuration may say (target.spawn)",
        rows: || VARIABLES.to_vec(),
    },
];

/// What is printed under the table of the same name.
const ALSO: &[Table] = &[Table {
    name: "faults",
    about: "what can be wrong with the provider for a while (provider.faults)",
    rows: || FaultKind::ALL.iter().map(|kind| (kind.name, kind.about)).collect(),
}];

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
}
