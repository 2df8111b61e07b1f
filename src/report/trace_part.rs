use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::words::{number, seconds, thousands};
use crate::plan::Plan;
use crate::workload::traces::Sum;

/// The window of the trace a load was played from, at the plan's speed and before its rate factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracePart {
    /// Its format.
    pub format: String,
    /// Rows in the file.
    pub in_file_rows: u64,
    /// From the first to the last of them.
    pub file_s: f64,
    /// Rows in the window, those without tokens included.
    pub in_window_rows: u64,
    /// Rows that the phases play, each as often as the plan's factor says.
    pub played_rows: u64,
    /// Rows without tokens: failed requests of the recording.
    pub without_tokens_rows: u64,
    /// What became of those: `drop`, `one` (they count as of one token) or `refuse`.
    pub zero_tokens: String,
    /// From the beginning of the window to its last row.
    pub lasts_s: f64,
    /// Rows a second of that.
    pub mean_per_s: Option<f64>,
    /// The most rows in one second, counted from the beginning of the window.
    pub busiest_second_rows: u64,
    /// Such seconds without a row.
    pub empty_seconds: u64,
    /// The shortest time between two rows.
    pub shortest_gap_s: Option<f64>,
    /// The longest.
    pub longest_gap_s: f64,
    /// Tokens of the prompts.
    pub prompt_tokens: SumPart,
    /// Tokens of the answers.
    pub output_tokens: SumPart,
}

/// Tokens of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SumPart {
    /// All of them.
    pub total: u64,
    /// The fewest in a row.
    pub least: u32,
    /// The most.
    pub most: u32,
}

impl From<Sum> for SumPart {
    fn from(Sum { total, least, most }: Sum) -> Self {
        Self { total, least, most }
    }
}

impl TracePart {
    /// Of the trace `plan` plays, if it plays one.
    pub fn of(plan: &Plan) -> Option<Self> {
        let trace = plan.load.arrivals.trace()?;
        let rows = trace.rows()?;
        let survey = rows.survey();
        let lasts = rows.all().last().map_or(0.0, |last| last.at as f64 / 1e9);
        let kept = rows.all().len() as u64;
        let phases = plan.load.phases.iter().enumerate();
        let played = phases.filter_map(|(i, phase)| trace.rows_in(i, phase.lasts)).sum();
        Some(Self {
            format: trace.spec().format.to_owned(),
            in_file_rows: survey.in_file,
            file_s: survey.file_lasts.as_secs_f64(),
            in_window_rows: survey.in_window,
            played_rows: played,
            without_tokens_rows: survey.without_tokens,
            zero_tokens: trace.spec().zero.name().to_owned(),
            lasts_s: lasts,
            mean_per_s: (lasts > 0.0).then(|| kept as f64 / lasts),
            busiest_second_rows: survey.busiest_second,
            empty_seconds: survey.empty_seconds,
            shortest_gap_s: survey.shortest_gap.map(|gap| gap.as_secs_f64()),
            longest_gap_s: survey.longest_gap.as_secs_f64(),
            prompt_tokens: survey.prompt.into(),
            output_tokens: survey.output.into(),
        })
    }

    /// What it is like, in a sentence.
    pub fn words(&self) -> String {
        let window = if self.in_window_rows == self.in_file_rows {
            String::new()
        } else {
            format!(", {} of them in the window", thousands(self.in_window_rows))
        };
        let without = match (self.without_tokens_rows, self.zero_tokens.as_str()) {
            (0, _) => "none without tokens".to_owned(),
            (n, "one") => format!("{} of no tokens taken for one", thousands(n)),
            (n, _) => format!("{} of no tokens left out", thousands(n)),
        };
        let mean =
            self.mean_per_s.map_or_else(String::new, |mean| format!("; {}/s in the mean", number(mean)));
        let shortest =
            self.shortest_gap_s.map_or_else(String::new, |gap| format!("{} at least and ", seconds(gap)));
        let tokens = |sum: &SumPart| {
            format!(
                "{} ({} to {})",
                thousands(sum.total),
                thousands(u64::from(sum.least)),
                thousands(u64::from(sum.most))
            )
        };
        format!(
            "the trace has {} rows in {}{window}, {without}; the phases play {} of them{mean}: at most {} in one second, \
             none in {} seconds; {shortest}{} at most from one to the next; {} tokens asked, {} answered",
            thousands(self.in_file_rows),
            seconds(self.file_s),
            thousands(self.played_rows),
            thousands(self.busiest_second_rows),
            thousands(self.empty_seconds),
            seconds(self.longest_gap_s),
            tokens(&self.prompt_tokens),
            tokens(&self.output_tokens),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use super::*;

    /// Three rows, a minute apart from the first; what is said of them is said of all, and what is played of the phases'.
    #[test]
    fn what_is_played_is_what_the_phases_play() {
        let text = include_str!("../../plans/shared-link.yaml");
        let trace = "at,asked,answered\n0,100,20\n1,200,30\n60,300,40\n61,300,0\n";
        let of = |sets: &[&str]| {
            let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
            let open = |_: &str| Ok(Box::new(trace.as_bytes()) as Box<dyn BufRead>);
            let loaded = crate::plan::parse_with(text, None, &sets, &|_| None, &open).unwrap();
            TracePart::of(&loaded.plan).unwrap()
        };
        let whole = of(&["load.phases=[{ name: all, for: 2m }]", "rehearsal={}"]);
        assert_eq!((whole.in_file_rows, whole.played_rows, whole.without_tokens_rows), (4, 3, 1));
        assert!((whole.mean_per_s.unwrap() - 3.0 / 60.0).abs() < 1e-9);
        assert_eq!((whole.empty_seconds, whole.busiest_second_rows), (58, 1));
        let words = whole.words();
        assert!(
            words.contains("4 rows in 61 s, 1 of no tokens left out; the phases play 3 of them; 0.05/s"),
            "{words}"
        );
        assert!(words.contains("600 (100 to 300) tokens asked, 90 (20 to 40) answered"), "{words}");
        let head = of(&["load.phases=[{ name: head, for: 30s }]", "rehearsal={}"]);
        assert_eq!((head.in_file_rows, head.played_rows), (4, 2));
    }
}
