use super::*;
use proptest::prelude::*;

/// `line:column text` of every scalar, and `key` for each key, in order.
fn show(node: &Node, out: &mut Vec<String>) {
    match &node.value {
        Value::Null => out.push(format!("{} null", node.place)),
        Value::Text { text, plain } => {
            out.push(format!("{} {}{text}", node.place, if *plain { "" } else { "quoted " }));
        }
        Value::List(items) => items.iter().for_each(|item| show(item, out)),
        Value::Map(entries) => {
            for (key, value) in entries {
                out.push(format!("{} {}:", key.place, key.text));
                show(value, out);
            }
        }
    }
}

fn shown(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    match read(text) {
        Ok(node) => show(&node, &mut out),
        Err(fault) => out.push(format!("{} fault: {}", fault.place, fault.message)),
    }
    out
}

#[test]
fn scalars_keep_their_text_and_their_place() {
    let text = "a: 1.10\nb: [500_000, no, 1:30, 0x1F, .inf, -5, 1e400, true]\nc: \"q \\u00e9\"\nd: 'it''s'\n\
                e:\nf: ~\ng: null\n404: x\nh: 2001-01-01\ni: !!str 5\nj: a\n  b\nk: |\n  block\n";
    let expected = [
        "1:1 a:",
        "1:4 1.10",
        "2:1 b:",
        "2:5 500_000",
        "2:14 no",
        "2:18 1:30",
        "2:24 0x1F",
        "2:30 .inf",
        "2:36 -5",
        "2:40 1e400",
        "2:47 true",
        "3:1 c:",
        "3:4 quoted q é",
        "4:1 d:",
        "4:4 quoted it's",
        "5:1 e:",
        "5:2 null",
        "6:1 f:",
        "6:4 null",
        "7:1 g:",
        "7:4 null",
        "8:1 404:",
        "8:6 x",
        "9:1 h:",
        "9:4 2001-01-01",
        "10:1 i:",
        "10:10 5",
        "11:1 j:",
        "11:4 a b",
        "13:1 k:",
    ];
    let found = shown(text);
    for (want, got) in expected.iter().zip(&found) {
        assert_eq!(want, got, "{found:#?}");
    }
    assert!(found.last().unwrap().ends_with("quoted block\n"), "{found:#?}");
}

#[test]
fn line_ends_and_byte_order_marks_do_not_move_a_place() {
    assert_eq!(shown("\u{feff}a: 1\r\nbé: 2.0\r\n"), ["1:1 a:", "1:4 1", "2:1 bé:", "2:5 2.0"]);
}

#[test]
fn duplicates_reach_the_reader() {
    assert_eq!(shown("a: 1\na: 2\n"), ["1:1 a:", "1:4 1", "2:1 a:", "2:4 2"]);
}

#[test]
fn a_merge_is_applied_and_what_the_map_says_itself_wins() {
    let found = shown("base: &b {rate: 5, for: 1s}\nstage: {<<: *b, rate: 6}\n");
    assert_eq!(found[5..].iter().filter(|line| line.ends_with("rate:")).count(), 1, "{found:#?}");
    assert!(
        found[5..].iter().any(|line| line == "2:23 6") || found[5..].iter().any(|l| l.ends_with(" 6")),
        "{found:#?}"
    );
    assert!(found[5..].iter().any(|line| line.ends_with(" 1s")), "{found:#?}");
}

/// As in redhat-developer/vscode-yaml#924: the merge key is no part of YAML 1.2, and some readers drop it without a word.
#[test]
fn a_merge_key_works_and_is_never_dropped() {
    let found = shown("base: &b {rate: 5}\nstage: {<<: *b, duration: 30s}\n");
    let stage = &found[found.iter().position(|line| line.ends_with("stage:")).unwrap()..];
    assert!(
        stage.iter().any(|line| line.ends_with("rate:")) && stage.iter().any(|line| line.ends_with(" 5")),
        "{found:#?}"
    );
    assert!(
        stage.iter().any(|line| line.ends_with(" 30s")) && !stage.iter().any(|line| line.contains("<<")),
        "{found:#?}"
    );
    // two merges of a map: both come in, and a key of both is there twice or the first one's
    let found = shown("a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: *a, <<: *b}\n");
    let c = found.iter().position(|line| line.ends_with("c:")).map(|at| &found[at..]);
    let whole = c.is_some_and(|c| ["x:", "y:"].iter().all(|key| c.iter().any(|line| line.ends_with(key))));
    assert!(whole || found.iter().any(|line| line.contains("fault")), "{found:#?}");
}

/// As in moraes/config#1, where a tab as indent gave `cannot start any token`.
#[test]
fn a_tab_as_indent_is_called_a_tab_and_has_its_line() {
    assert_eq!(shown("stages:\n\t- rate: 5\n"), ["2:1 fault: a tab indents this line: use spaces"]);
}

#[test]
fn what_is_no_plan_text_is_one_fault_with_a_place() {
    let cases = [
        ("", "1:1 fault: the file is empty"),
        ("# only a comment\n", "1:1 fault: the file is empty"),
        ("\ttenfold: 1\n", "1:1 fault: a tab indents"),
        ("stages:\n\t- rate: 5\n", "2:1 fault: a tab indents"),
        ("a: 1\n---\nb: 2\n", "fault: a second document"),
        ("a: *nobody\n", "1:4 fault: this alias names no anchor"),
        ("a: [1, 2\n", "fault: this is no YAML"),
        ("a: 1\n b: 2\n", "fault: this is no YAML"),
        ("a: \u{0}\n", "fault: "),
    ];
    for (text, expected) in cases {
        let found = shown(text);
        assert!(found.len() == 1 && found[0].contains(expected), "{text:?}: {found:#?}");
    }
    let fault = decode(b"a: 1\nb: \xff\n").unwrap_err();
    assert_eq!(fault.place.to_string(), "2:4");
}

#[test]
fn a_small_text_never_unfolds_to_a_large_one() {
    let nine = |c: char| format!("[{}]", vec![format!("*{c}"); 9].join(","));
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, of) in ('b'..='i').zip('a'..) {
        bomb.push_str(&format!("{name}: &{name} {}\n", nine(of)));
    }
    let mut merges = "m0: &m0 {k0: 1}\n".to_owned();
    for level in 1..=18 {
        let below = level - 1;
        merges.push_str(&format!("m{level}: &m{level} {{<<: [*m{below}, *m{below}], k{level}: 1}}\n"));
    }
    let deep = format!("a: {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let wide = format!("a: [{}]\n", "1,".repeat(30_000));
    let long = "a".repeat(MOST_BYTES + 1);
    for text in [bomb, merges, deep, wide] {
        let found = shown(&text);
        assert_eq!(found.len(), 1, "{}: {:?}", &text[..20], &found[..3]);
        assert!(found[0].contains("at most 40 levels, and 20000 values"), "{found:?}");
    }
    assert!(shown(&long)[0].contains("at most 1048576"));
}

#[test]
fn a_few_anchors_and_aliases_load() {
    let text = "a: &a 1s\nb: &b [*a]\nc: &c {x: *a}\nd: [*a, *b, *c]\n";
    let found = shown(text);
    assert_eq!(found.iter().filter(|line| line.ends_with("1:7 1s")).count(), 6, "{found:#?}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn no_mixture_of_signs_makes_it_panic(text in "[-:{}\\[\\],&*!|>'\"%@`#?~a1. \n\t\r]{0,60}") {
        let _ = read(&text);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(text) = decode(&bytes) {
            let _ = read(text);
        }
    }
}
