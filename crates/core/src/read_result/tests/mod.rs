//! Tests of the built-in tool that reads results.

mod pointer;
mod tally;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::execution::results::indented;
use crate::plan::Limits;

fn stored(text: &str) -> StoredResult {
    StoredResult {
        tool: "k8s.logs".to_owned(),
        text: Some(text.to_owned()),
    }
}

fn plan(max_tool_result_tokens: u32) -> AgentPlan {
    let limits = Limits {
        max_tool_result_tokens,
        ..Limits::default()
    };
    AgentPlan {
        limits,
        ..AgentPlan::default()
    }
}

fn read(text: &str, arguments: &Value) -> Result<String, String> {
    answer(
        &Request::parse(&arguments.to_string(), Timeline::Own)?,
        Some(&stored(text)),
        &plan(1_000),
        &|| true,
    )
}

fn log(lines: u32) -> String {
    (1..=lines)
        .map(|line| {
            format!(
                "line {line} {}\n",
                if line % 100 == 0 { "OOMKilled" } else { "ok" }
            )
        })
        .collect()
}

#[test]
fn pages_of_lines_continue_until_the_end() {
    let text = log(1_000);
    let mut from = 1;
    let mut seen = String::new();

    loop {
        let page = read(&text, &json!({"event": 5, "from_line": from})).unwrap();
        assert!(page.len() <= bytes_of(1_000), "{}", page.len());
        let lines: Vec<&str> = page.lines().collect();
        let head = lines[0];
        let note = lines[lines.len() - 1];

        assert!(
            head.starts_with(&format!("event 5 (k8s.logs), lines {from} to ")),
            "{head}"
        );
        for line in &lines[1..lines.len() - 1] {
            seen.push_str(line.split_once("| ").unwrap().1);
            seen.push('\n');
        }
        match note
            .strip_prefix("[more: from_line ")
            .and_then(|rest| rest.strip_suffix(']'))
        {
            Some(next) => from = next.parse().unwrap(),
            None => break assert_eq!(note, "[this is the end of the result]"),
        }
    }
    assert_eq!(seen, text);
    let two = read(&text, &json!({"event": "5", "from_line": "7", "lines": 2})).unwrap();
    assert_eq!(
        two,
        format!(
            "event 5 (k8s.logs), lines 7 to 8 of 1000; {} bytes in total\n7| line 7 ok\n8| line 8 ok\n[more: from_line 9]",
            text.len()
        )
    );
    let error = read(&text, &json!({"event": 5, "from_line": 1_001})).unwrap_err();
    assert_eq!(
        error,
        "there is no line 1001: the result of event 5 has 1000 lines"
    );
}

#[test]
fn a_line_that_is_too_long_for_a_page_is_read_by_its_bytes() {
    let text = format!("first\n{}\nlast", "é".repeat(9_000));
    let page = read(&text, &json!({"event": 5, "from_line": 2})).unwrap();
    let rest = page
        .split_once("from_byte ")
        .unwrap()
        .1
        .split_once(' ')
        .unwrap()
        .0;
    assert!(
        page.contains("[line 2 has 18000 bytes;") && page.ends_with("from_line 3 the next line]"),
        "{page}"
    );
    let mut from: usize = rest.parse().unwrap();
    let mut seen: usize = page.matches('é').count();

    loop {
        let page = read(&text, &json!({"event": 5, "from_byte": from})).unwrap();
        assert!(page.len() <= bytes_of(1_000), "{}", page.len());
        seen += page.matches('é').count();
        match page
            .lines()
            .last()
            .unwrap()
            .strip_prefix("[more: from_byte ")
        {
            Some(next) => from = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(seen, 9_000);
    assert!(
        read(&text, &json!({"event": 5, "from_byte": 99_999}))
            .unwrap_err()
            .contains("has 18011 bytes")
    );
}

#[test]
fn a_search_shows_each_match_with_the_lines_around_it() {
    let text = log(1_000);
    let found = read(
        &text,
        &json!({"event": 5, "search": "oomkilled", "context": 1}),
    )
    .unwrap();
    let begins = "event 5 (k8s.logs), matches 1 to 10 of 10\n99| line 99 ok\n100> line 100 OOMKilled\n101| line 101 ok\n199| ";
    assert!(
        found.starts_with(begins) && found.ends_with("\n[no more matches]"),
        "{found}"
    );
    let later = read(
        &text,
        &json!({"event": 5, "search": "OOM", "context": 0, "from_match": 10}),
    )
    .unwrap();
    assert_eq!(
        later,
        "event 5 (k8s.logs), matches 10 to 10 of 10\n1000> line 1000 OOMKilled\n[no more matches]"
    );
    let all = read(&text, &json!({"event": 5, "search": "line", "context": 0})).unwrap();
    assert!(
        all.len() <= bytes_of(1_000)
            && all
                .lines()
                .last()
                .unwrap()
                .starts_with("[more: from_match "),
        "{all}"
    );
    assert!(
        read(&text, &json!({"event": 5, "search": "nope"}))
            .unwrap_err()
            .contains("does not contain \"nope\"")
    );
    assert!(
        read(
            &text,
            &json!({"event": 5, "search": "OOM", "from_match": 11})
        )
        .unwrap_err()
        .contains("10 times")
    );
}

#[test]
fn neighbouring_matches_show_no_line_twice() {
    let text = "a\nhit 1\nb\nhit 2\nhit 3\nc\n";
    let found = read(text, &json!({"event": 5, "search": "hit", "context": 2})).unwrap();
    let shown: Vec<&str> = found.lines().collect();
    assert_eq!(
        &shown[1..shown.len() - 1],
        ["1| a", "2> hit 1", "3| b", "4> hit 2", "5> hit 3", "6| c"],
        "{found}"
    );
}

#[test]
fn a_match_in_a_long_line_is_shown_with_its_surroundings_and_offset() {
    let pods: Vec<Value> = (0..500)
        .map(|pod| json!({"name": format!("pod-{pod}"), "restarts": pod % 7}))
        .collect();
    let text = json!(pods).to_string();
    let found = read(&text, &json!({"event": 5, "search": "pod-333\""})).unwrap();
    let line = found.lines().nth(1).unwrap();
    let (offset, part) = line
        .strip_prefix("1> (from_byte ")
        .unwrap()
        .split_once(") …")
        .unwrap();
    let offset: usize = offset.parse().unwrap();
    assert!(
        part.contains("pod-333")
            && part.len() < 500
            && text
                .get(offset..)
                .unwrap()
                .starts_with(part.trim_end_matches('…'))
    );
}

#[test]
fn only_results_of_other_tools_are_read() {
    let request = Request::parse(r#"{"event": 9}"#, Timeline::Own).unwrap();
    assert!(
        answer(&request, None, &plan(100), &|| true)
            .unwrap_err()
            .starts_with("event 9 is no result of a tool call.")
    );
    let nested = StoredResult {
        tool: TOOL.to_owned(),
        text: Some("x".to_owned()),
    };
    assert!(
        answer(&request, Some(&nested), &plan(100), &|| true)
            .unwrap_err()
            .contains("read the event that it names")
    );
    let empty = StoredResult {
        tool: "k8s.logs".to_owned(),
        text: None,
    };
    assert_eq!(
        answer(&request, Some(&empty), &plan(100), &|| true).unwrap_err(),
        "the call of event 9 has no stored result."
    );
}

#[test]
fn invalid_arguments_are_told_to_the_model() {
    let fault = |arguments: &str| Request::parse(arguments, Timeline::Own).unwrap_err();
    assert!(fault("[1]").starts_with("the arguments are not a JSON object"));
    assert!(fault("{}").contains("event is missing"));
    assert!(fault(r#"{"event": -1}"#).contains("event is not a whole number"));
    assert!(
        fault(r#"{"event": 1, "line": 2}"#)
            .starts_with("unknown argument \"line\"; accepted: event, from_line")
    );
    assert!(fault(r#"{"event": 99999999999}"#).contains("there is no event 99999999999"));
    let timeline = |arguments: &str| {
        Request::parse(arguments, Timeline::Investigation).map(|request| request.timeline)
    };
    assert_eq!(timeline(r#"{"event": 1}"#), Ok(Timeline::Investigation));
    assert_eq!(
        timeline(r#"{"event": 1, "timeline": "now"}"#),
        Ok(Timeline::Own)
    );
    assert!(timeline(r#"{"event": 1, "timeline": "other"}"#).is_err());
}

#[test]
fn the_schemas_have_every_argument_and_only_a_question_has_a_timeline() {
    let keys = |spec: ToolSpec| {
        let schema: Value = serde_json::from_str(&spec.parameters_schema).unwrap();
        schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    let own = [
        "event",
        "from_line",
        "lines",
        "from_byte",
        "bytes",
        "search",
        "pattern",
        "show",
        "per",
        "by",
        "pointer",
        "context",
        "from_match",
    ]
    .map(str::to_owned);
    let sorted = |mut keys: Vec<String>| {
        keys.sort();
        keys
    };
    assert_eq!(sorted(keys(spec())), sorted(own.to_vec()));
    assert_eq!(
        sorted(keys(thread_spec())),
        sorted([own.to_vec(), vec!["timeline".to_owned()]].concat())
    );
    assert!(spec().read_only && thread_spec().description.contains("timeline: now"));
}

proptest! {
    #[test]
    fn no_part_is_longer_than_a_result_or_begins_a_line_as_the_result_does(
        text in "(Action: x|\\[event 7\\]|Final Answer:|é{1,40}|[a-c]{0,700}|\r?\n|\u{2028}){0,60}",
        from in 0_u32..4_000,
        tokens in 400_u32..2_000,
        kind in 0_usize..8,
    ) {
        let arguments = match kind {
            0 => json!({"event": 7, "from_line": from % 40 + 1}),
            1 => json!({"event": 7, "from_byte": from}),
            2 => json!({"event": 7, "pattern": "a|x", "from_match": from % 9 + 1}),
            3 => json!({"event": 7, "pattern": "(.*)", "by": "group"}),
            4 => json!({"event": 7, "pattern": "[a-c]", "show": "numbers"}),
            5 => json!({"event": 7, "pointer": "/*", "show": "count", "by": "group"}),
            6 => json!({"event": 7, "pointer": "/*"}),
            _ => json!({"event": 7, "search": "a", "from_match": from % 9 + 1}),
        };
        let request = Request::parse(&arguments.to_string(), Timeline::Own).unwrap();
        if let Ok(part) = answer(&request, Some(&stored(&text)), &plan(tokens), &|| true) {
            prop_assert!(part.len() <= bytes_of(tokens).max(700), "{}", part.len());
            for line in part.lines().skip(1) {
                let is_ours = line.starts_with('[') && !line.starts_with("[event");
                prop_assert!(is_ours || line.starts_with(|c: char| c.is_ascii_digit() || c == '|'), "{:?}", line);
            }
            prop_assert!(indented(&part).lines().all(|line| line.starts_with("    ")));
        }
    }
}
