use super::*;
use crate::units::Node;
use crate::workload::testing::{map, read, text};

const AZURE_2023: &str = include_str!("../../../fixtures/traces/azure-2023.csv");
const AZURE_2024: &str = include_str!("../../../fixtures/traces/azure-2024.csv");
const BURSTGPT: &str = include_str!("../../../fixtures/traces/burstgpt.csv");
const MOONCAKE: &str = include_str!("../../../fixtures/traces/mooncake.jsonl");

fn spec(format: &str, more: &[(&str, &str)]) -> Spec {
    let mut entries = vec![("file", text("x")), ("format", text(format))];
    entries.extend(more.iter().map(|(key, value)| (*key, text(value))));
    if format == "csv" {
        let columns: Vec<(&str, Node)> = [("time", "at"), ("prompt", "in"), ("output", "out")]
            .map(|(key, name)| (key, text(name)))
            .to_vec();
        entries.push(("columns", map(columns)));
    }
    read(&map(entries))
}

fn rows(format: &str, more: &[(&str, &str)], file: impl AsRef<[u8]>) -> Result<Rows, String> {
    Rows::read(&spec(format, more), &mut file.as_ref()).map_err(|wrong| wrong.to_string())
}

#[test]
fn the_table_is_sorted_and_every_format_reads_its_excerpt() {
    assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
    for (format, file, count) in [
        ("azure", AZURE_2023, 120),
        ("azure", AZURE_2024, 60),
        ("burstgpt", BURSTGPT, 90),
        ("mooncake", MOONCAKE, 60),
    ] {
        let rows = rows(format, &[("zero_tokens", "one")], file).unwrap();
        assert_eq!(rows.all().len(), count, "{format}");
        assert_eq!(rows.all()[0].at, 0, "{format}: times count from the first row");
        assert!(rows.all().is_sorted_by_key(|row| row.at), "{format}");
        assert!(rows.all().iter().all(|row| row.prompt > 0 && row.output > 0), "{format}");
        let survey = rows.survey();
        assert_eq!((survey.in_file, survey.in_window), (count as u64, count as u64), "{format}");
        assert_eq!(survey.file_lasts.as_nanos(), u128::from(rows.all()[count - 1].at), "{format}");
    }
}

/// As in Azure/AzurePublicDataset's AzureLLMInferenceTrace_code.csv: CR LF, seven digits of a second and no zone, gaps of
/// microseconds, and no line end after the last row, which counts all the same.
#[test]
fn a_trace_of_2023_is_read_to_its_last_row() {
    assert!(AZURE_2023.contains("\r\n") && !AZURE_2023.ends_with('\n'), "the excerpt has what it is to show");
    let file = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                2023-11-16 18:17:03.9799600,4808,10\r\n\
                2023-11-16 18:17:03.9799660,3180,8\r\n\
                2023-11-16 18:20:41.1489260,549,173";
    let rows = rows("azure", &[], file).unwrap();
    let row = |at, prompt, output| Row { at, prompt, output };
    assert_eq!(rows.all(), [row(0, 4_808, 10), row(6_000, 3_180, 8), row(217_168_966_000, 549, 173)]);
    let survey = rows.survey();
    assert_eq!((survey.busiest_second, survey.longest_gap.as_micros()), (2, 217_168_960));
    assert_eq!((survey.shortest_gap, survey.empty_seconds), (Some(Duration::from_micros(6)), 216));
    assert_eq!((survey.prompt, survey.output), (sum(8_537, 549, 4_808), sum(191, 8, 173)));
}

const fn sum(total: u64, least: u32, most: u32) -> Sum {
    Sum { total, least, most }
}

/// The same, of as many rows as that trace has, as unevenly spaced: what is found in it is what a look at all of its rows
/// finds, and the last one, which has no line end, is among them.
#[test]
fn what_is_found_in_a_long_trace_is_what_its_rows_are() {
    const ROWS: u64 = 8_819;
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // bursts of rows microseconds apart, with pauses of seconds between them
    let (mut tenths, mut all) = (0u64, Vec::new());
    for n in 0..ROWS {
        tenths += if n % 40 == 0 { draw(300_000_000) } else { 60 + draw(400_000) };
        all.push((tenths, 3 + draw(7_435) as u32, 6 + draw(1_894) as u32));
    }
    let line = |(tenths, prompt, output): &(u64, u32, u32)| {
        let (secs, part) = (tenths / 10_000_000, tenths % 10_000_000);
        let (hours, minutes) = (secs / 3_600, secs / 60 % 60);
        assert!(hours < 24, "it is one day");
        format!("2023-11-16 {hours:02}:{minutes:02}:{:02}.{part:07},{prompt},{output}", secs % 60)
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    let rows =
        rows("azure", &[], format!("TIMESTAMP,ContextTokens,GeneratedTokens\r\n{}", lines.join("\r\n")));
    let (rows, first) = (rows.unwrap(), all[0].0);
    let survey = rows.survey();
    assert_eq!((survey.in_file, rows.all().len() as u64), (ROWS, ROWS), "the last is not lost");
    let seconds: Vec<u64> = all.iter().map(|(at, ..)| (at - first) / 10_000_000).collect();
    let counts = (0..=seconds[seconds.len() - 1]).map(|s| seconds.iter().filter(|at| **at == s).count());
    let counts: Vec<usize> = counts.collect();
    assert_eq!(survey.busiest_second, *counts.iter().max().unwrap() as u64);
    assert_eq!(survey.empty_seconds, counts.iter().filter(|count| **count == 0).count() as u64);
    let gaps = all.windows(2).map(|pair| Duration::from_nanos((pair[1].0 - pair[0].0) * 100));
    assert_eq!(survey.shortest_gap, gaps.clone().min());
    assert_eq!(Some(survey.longest_gap), gaps.max());
    let span = Duration::from_nanos((all[all.len() - 1].0 - first) * 100);
    assert_eq!((survey.file_lasts, survey.window_lasts), (span, span));
    let tokens = |of: fn(&(u64, u32, u32)) -> u32| {
        let all = || all.iter().map(of);
        sum(all().map(u64::from).sum(), all().min().unwrap(), all().max().unwrap())
    };
    assert_eq!((survey.prompt, survey.output), (tokens(|row| row.1), tokens(|row| row.2)));
}

/// As in HPMLL/BurstGPT#11 and vllm-project/vllm#13063, which filters such rows and forgets the times: a row of no tokens is a request that failed; what becomes of it is for the plan to say.
#[test]
fn rows_without_tokens_are_left_out_kept_or_refused_and_counted() {
    let file = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                5,a,1.5,ChatGPT,472,18,490,Conversation log\n\
                45,a,0,GPT-4,1087,0,1087,API log\n\
                118,b,2.5,ChatGPT,417,276.0,693,Conversation log\n";
    let dropped = rows("burstgpt", &[], file).unwrap();
    assert_eq!((dropped.all().len(), dropped.survey().without_tokens), (2, 1));
    assert_eq!(dropped.all()[1].at, 113_000_000_000, "those that stay keep their times");
    let kept = rows("burstgpt", &[("zero_tokens", "one")], file).unwrap();
    assert_eq!((kept.all().len(), kept.all()[1].output), (3, 1));
    let refused = rows("burstgpt", &[("zero_tokens", "refuse")], file).unwrap_err();
    assert!(refused.starts_with("line 3: an answer of no tokens"), "{refused}");
}

/// As in ai-dynamo/aiperf#786: a missing column is named, and a trace without rows is refused.
#[test]
fn a_missing_column_and_an_empty_trace_are_told() {
    let said = rows("burstgpt", &[], "Timestamp,Model,Request tokens\n5,ChatGPT,472\n").unwrap_err();
    assert_eq!(said, "line 1: there is no column `Response tokens`: it has Timestamp, Model, Request tokens");
    assert_eq!(rows("azure", &[], "").unwrap_err(), "it is empty");
    let header = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";
    assert_eq!(rows("azure", &[], header).unwrap_err(), "there is no row in it");
    assert_eq!(rows("mooncake", &[], "").unwrap_err(), "there is no row in it");
    let said = rows("csv", &[], "at,in,IN,out\n1,2,3,4\n").unwrap_err();
    assert_eq!(said, "line 1: there is more than one column `in`", "which of them is meant?");
    let said = rows("mooncake", &[], r#"{"timestamp": 0, "input_length": 5}"#).unwrap_err();
    assert!(said.starts_with("line 1: there is no `output_length`"), "{said}");
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let csv = |lines: &[&str]| format!("at,in,out\n{}\n", lines.join("\n"));
    let said = |file: String| rows("csv", &[], file).unwrap_err();
    for (lines, expected) in [
        (vec!["1,5,5", "3,5,5", "2.5,5,5"], "line 4: it is 500ms earlier than the row before: sort"),
        (vec!["1,5,5", "2,5"], "line 3: 2 fields, where the first line names 3"),
        (vec!["1,5,5", "2,5,5,5"], "line 3: 4 fields, where the first line names 3"),
        (vec!["1,5,5", "x,5,5"], "line 3: `at` is `x`, not seconds"),
        (vec!["1,5,5", "nan,5,5"], "line 3: `at` is `nan`, not seconds"),
        (vec!["-1,5,5"], "line 2: `at` is `-1`, not seconds"),
        (vec!["1,-5,5"], "line 2: `in` is `-5`, no number of tokens"),
        (vec!["1,5,NaN"], "line 2: `out` is `NaN`, no number of tokens"),
        (vec!["1,5,1e9"], "line 2: `out` is `1e9`, no number of tokens"),
        (vec!["1,99999999999999999999,5"], "line 2: `in` is `99999999999999999999`, no number of tokens"),
        (vec!["1,5,5.5"], "line 2: `out` is `5.5`, no number of tokens"),
        (vec!["1,\"5,5"], "line 2: a quote is never closed"),
        (vec!["1,5,5", "", "2,5,5"], "line 3: an empty line stands between rows"),
        (vec!["1,5,5", "99999999999,5,5"], "line 3: it comes more than a year after the first row"),
        (vec!["1,\u{1b}[2J,5"], "line 2: `in` is `\\u{1b}[2J`, no number"),
    ] {
        let said = said(csv(&lines));
        assert!(said.starts_with(expected), "{lines:?}: {said}");
    }
    let half = rows("csv", &[], "at,in,out\n1,5,5\n2,5").unwrap_err();
    assert!(
        half.starts_with("line 3: 2 fields") && half.contains("the file ends within this line"),
        "{half}"
    );
    let half = rows("mooncake", &[], &MOONCAKE[..MOONCAKE.len() - 9]).unwrap_err();
    assert!(half.starts_with("line 60: no JSON object") && half.contains("is it whole?"), "{half}");
}

#[test]
fn a_byte_order_mark_and_line_ends_of_either_kind_are_taken_others_are_named() {
    let plain = rows("csv", &[], "at,in,out\n1,5,6\n2,7,8\n").unwrap();
    for same in [
        "\u{feff}at,in,out\r\n1,5,6\r\n2,7,8\r\n\r\n",
        "at , in,\"out\"\n1,5,6\n2,7.0,\"8\"",
        "OUT,AT,IN\n6,1,5\n8,2,7",
    ] {
        assert_eq!(rows("csv", &[], same).unwrap(), plain, "{same:?}");
    }
    let said = rows("csv", &[], "at,in,out\n\u{feff}1,5,6\n").unwrap_err();
    assert!(said.starts_with("line 2: `at` is `\\u{feff}1`"), "files put together: {said}");
    let utf16: Vec<u8> = [0xFF, 0xFE].into_iter().chain("at,in".bytes().flat_map(|b| [b, 0])).collect();
    assert!(rows("csv", &[], utf16).unwrap_err().contains("UTF-16"));
    assert_eq!(rows("csv", &[], b"at,in,out\n1,5,\xff\n").unwrap_err(), "line 2: it is not UTF-8");
}

#[test]
fn a_file_that_is_no_trace_is_not_read_into_memory() {
    let endless = vec![b'x'; 4 << 20];
    assert!(rows("csv", &[], &endless).unwrap_err().starts_with("line 1: it is longer than 262144 bytes"));
    let zeros = [&b"at,in,out\n"[..], &vec![0u8; 4 << 20]].concat();
    assert!(rows("csv", &[], &zeros).unwrap_err().starts_with("line 2: it is longer than"));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(rows("mooncake", &[], deep).unwrap_err().starts_with("line 1: no JSON object"));
}

#[test]
fn a_window_begins_at_zero_and_speed_divides_its_times() {
    let file: String =
        ["at,in,out\n".to_owned()].into_iter().chain((0..100).map(|s| format!("{s},5,5\n"))).collect();
    let read_csv = |more: &[(&str, &str)], file: &str| rows("csv", more, file);
    let rows = read_csv(&[("from", "10s"), ("to", "30s"), ("speed", "4")], &file).unwrap();
    assert_eq!(rows.all().len(), 20);
    assert_eq!((rows.all()[0].at, rows.all()[1].at), (0, 250_000_000));
    let survey = rows.survey();
    assert_eq!((survey.in_file, survey.in_window, survey.busiest_second), (100, 20, 4));
    assert_eq!((survey.file_lasts.as_secs(), survey.window_lasts.as_secs()), (99, 20));
    assert_eq!(rows.count(Duration::from_secs(1), Duration::from_secs(2)), 8);
    let empty = read_csv(&[("from", "1000s")], &file).unwrap_err();
    assert!(empty.starts_with("no row is left of 100: 0 lie in the window"), "{empty}");
}

#[test]
fn two_traces_share_a_fingerprint_only_if_their_rows_are_the_same() {
    let print = |file: &str| rows("csv", &[], file).unwrap().survey().fingerprint;
    let one = print("at,in,out\n1,5,6\n2,7,8\n");
    assert_eq!(one, print("at,in,out\r\n11,5,6\r\n12,7,8"), "times count from the first row");
    assert_ne!(one, print("at,in,out\n1,5,6\n2,8,7\n"));
}
