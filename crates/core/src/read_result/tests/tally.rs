//! Tests of the counts and numbers of a result.

use std::cell::Cell;

use proptest::prelude::*;
use serde_json::json;

use super::{plan, read, stored};
use crate::read_result::{Request, Timeline, answer};

#[test]
fn matches_are_counted_with_the_lines_that_have_them() {
    let text = "GET 200\nGET 500 500\nPOST 500\n\nGET 200\n";
    let count = |arguments: serde_json::Value| read(text, &arguments).unwrap();
    assert_eq!(
        count(json!({"event": 5, "pattern": "5\\d\\d", "show": "count"})),
        "event 5 (k8s.logs), 3 matches of the pattern \"5\\\\d\\\\d\" in 2 of 5 lines"
    );
    assert_eq!(
        count(json!({"event": 5, "search": "post", "show": "count"})),
        "event 5 (k8s.logs), 1 match of \"post\" in 1 of 5 lines"
    );
    assert_eq!(
        count(json!({"event": 5, "pattern": "^$", "show": "count", "from_line": 2, "lines": 3})),
        "event 5 (k8s.logs), 1 match of the pattern \"^$\" in 1 of 5 lines"
    );
    assert_eq!(
        count(json!({"event": 5, "pattern": "none", "show": "count"})),
        "event 5 (k8s.logs), 0 matches of the pattern \"none\" in 0 of 5 lines"
    );
}

#[test]
fn numbers_are_those_of_the_group_or_the_first_behind_the_match() {
    let text = "took=12ms n=1\ntook=1,250ms n=2\nfailed\ntook=-3.5ms n=3\ntook=none\n";
    let behind = read(
        text,
        &json!({"event": 5, "search": "took=", "show": "numbers"}),
    )
    .unwrap();
    assert_eq!(
        behind,
        "event 5 (k8s.logs), 4 matches of \"took=\" in 4 of 5 lines\n\
         | count 3, min -3.5, median 12, p90 1,250, max 1,250\n\
         [no number follows in 1 of the matches]"
    );
    let group = read(
        text,
        &json!({"event": 5, "pattern": "took.* n=(\\d)", "show": "numbers"}),
    )
    .unwrap();
    assert!(
        group.ends_with("| count 3, min 1, median 2, p90 3, max 3"),
        "{group}"
    );
}

#[test]
fn numbers_of_different_units_are_not_silently_compared() {
    let text = "took 900ms\ntook 2s\ntook 3s\n";
    let read = read(
        text,
        &json!({"event": 5, "search": "took", "show": "numbers"}),
    )
    .unwrap();
    assert!(
        read.ends_with("[the numbers have different units and were not converted: ms (1), s (2)]"),
        "{read}"
    );
}

#[test]
fn a_row_stands_for_each_period_by_the_times_of_the_lines() {
    let text = "2026-11-27T03:10:00Z ERROR a\n  at x ERROR\n2026-11-27T03:50:00Z ok\n2026-11-27T05:59:59Z ERROR b\n";
    let rows = read(text, &json!({"event": 5, "pattern": "ERROR", "per": "1h"})).unwrap();
    assert_eq!(
        rows,
        "event 5 (k8s.logs), 3 matches of the pattern \"ERROR\" in 3 of 4 lines\n\
         2026-11-27T03:00Z| 2\n2026-11-27T05:00Z| 1\n[a period without a match has no row]"
    );
    let local =
        "before ERROR\n2026-11-27 03:10:00,5 ERROR took 7\n2026-11-27 03:29:00 ERROR took 9\n";
    let rows = read(
        local,
        &json!({"event": 5, "pattern": "ERROR", "per": "15m", "show": "numbers"}),
    )
    .unwrap();
    assert!(
        rows.contains(
            "\n2026-11-27T03:00| 1, min 7, median 7, p90 7, max 7\n2026-11-27T03:15| 1, min 9,"
        ) && rows.contains("[1 stand before the first time]")
            && rows.contains("[the times of the lines name no zone]"),
        "{rows}"
    );
    assert!(
        read(
            "ERROR\n",
            &json!({"event": 5, "search": "ERROR", "per": "1h"})
        )
        .unwrap_err()
        .contains("have no time: per needs lines that begin with one")
    );
}

#[test]
fn the_most_frequent_texts_of_a_group_are_counted_and_the_others_named() {
    let text: String = (0..30)
        .flat_map(|code| {
            vec![format!("status={code} took {code}\n"); if code < 10 { 3 } else { 1 }]
        })
        .collect();
    let rows = read(
        &text,
        &json!({"event": 5, "pattern": "status=(\\d+)", "by": "group"}),
    )
    .unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 22, "{rows}");
    assert_eq!((lines[1], lines[10], lines[11]), ("3| 0", "3| 9", "1| 10"));
    assert_eq!(lines[21], "[10 other texts of the group are rarer]");
}

#[test]
fn arguments_that_do_not_fit_together_are_told() {
    let fault = |arguments: serde_json::Value| read("x", &arguments).unwrap_err();
    assert_eq!(
        fault(json!({"event": 5, "search": "a", "pattern": "b"})),
        "give either search or pattern"
    );
    assert!(
        fault(json!({"event": 5, "pattern": "a", "by": "group"}))
            .contains("a pattern with a group")
    );
    assert!(
        fault(json!({"event": 5, "pattern": "(a", "show": "count"}))
            .starts_with("pattern is no regular expression")
    );
    assert!(fault(json!({"event": 5, "pattern": "(?=a)"})).contains("no look-around"));
    assert!(
        fault(json!({"event": 5, "pattern": "a".repeat(201)})).contains("more than 200 characters")
    );
    assert!(
        fault(json!({"event": 5, "pattern": "(\\w{1000}){1000}"})).contains("exceeds size limit")
    );
    assert!(fault(json!({"event": 5, "search": "a", "per": "2h"})).contains("1m, 15m, 1h and 24h"));
    assert!(
        fault(json!({"event": 5, "search": "a", "per": "1h", "by": "group"}))
            .contains("either per or by")
    );
    assert!(fault(json!({"event": 5, "show": "lines", "per": "1h"})).contains("show: count"));
}

#[test]
fn a_call_whose_time_is_used_up_says_how_far_it_came() {
    let text = "a 1\n".repeat(1_000);
    let looks = Cell::new(0);
    let request = |arguments: serde_json::Value| {
        Request::parse(&arguments.to_string(), Timeline::Own).unwrap()
    };
    let limited = || {
        looks.set(looks.get() + 1);
        looks.get() <= 100
    };
    let count = request(json!({"event": 5, "search": "a", "show": "count"}));
    let counted = answer(&count, Some(&stored(&text)), &plan(1_000), &limited).unwrap();
    assert_eq!(
        counted,
        "event 5 (k8s.logs), 100 matches of \"a\" in 100 of 1000 lines\n\
         [the time of a call was used up there: from_line 101 goes on]"
    );
    looks.set(0);
    let parts = "a,".repeat(1 << 20);
    let long = answer(
        &request(json!({"event": 5, "pattern": "b"})),
        Some(&stored(&parts)),
        &plan(1_000),
        &limited,
    );
    assert_eq!(
        long.unwrap_err(),
        "the pattern \"b\" is not in the lines before 1; the time of a call is too short for line 1: search for a text, \
         or give a pointer into JSON"
    );
    looks.set(0);
    let none = request(json!({"event": 5, "pattern": "nope"}));
    assert!(
        answer(&none, Some(&stored(&text)), &plan(1_000), &limited)
            .unwrap_err()
            .ends_with("before 51; the time of a call was used up there: from_line 51 goes on"),
    );
}

#[test]
fn a_pattern_that_explodes_elsewhere_takes_linear_time() {
    // With back-tracking the first of these takes longer than the universe is old.
    let text = format!("{}!\n", "a".repeat(16_000));
    for pattern in ["(a+)+$", "(a|aa)+$", "(.*a){12}x", "([a-z]{1,50}\\d){5}"] {
        let read = read(
            &text,
            &json!({"event": 5, "pattern": pattern, "show": "count"}),
        )
        .unwrap();
        assert!(read.contains(" 0 matches of "), "{pattern}: {read}");
    }
}

#[test]
fn a_very_long_line_is_matched_in_parts_that_end_at_a_separator() {
    let text = format!("[{}]", vec!["\"ab\""; 20_000].join(","));
    let read = read(
        &text,
        &json!({"event": 5, "pattern": "\"ab\"", "show": "count"}),
    )
    .unwrap();
    assert!(
        read.contains(" 20000 matches of ") && read.contains("was matched in parts"),
        "{read}"
    );
}

proptest! {
    #[test]
    fn counts_are_those_of_a_naive_loop(
        lines in prop::collection::vec("[abx1 ]{0,12}", 0..40),
        from in 1_usize..50,
        count in 1_usize..50,
    ) {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let read = read(&text, &json!({
            "event": 5, "pattern": "a", "show": "count", "from_line": from, "lines": count,
        })).unwrap();
        let searched = lines.iter().skip(from - 1).take(count);
        let matches: usize = searched.clone().map(|line| line.matches('a').count()).sum();
        let with = searched.filter(|line| line.contains('a')).count();
        let noun = if matches == 1 { "match" } else { "matches" };
        prop_assert_eq!(
            read,
            format!("event 5 (k8s.logs), {matches} {noun} of the pattern \"a\" in {with} of {} lines", lines.len())
        );
    }

    #[test]
    fn numbers_are_those_of_a_sorted_list(mut numbers in prop::collection::vec(-1_000_000_i64..1_000_000, 1..200)) {
        let text: String = numbers.iter().map(|number| format!("n={number}\n")).collect();
        let read = read(&text, &json!({"event": 5, "search": "n=", "show": "numbers"})).unwrap();
        numbers.sort_unstable();
        let rank = |percent: usize| numbers[(numbers.len() * percent).div_ceil(100).max(1) - 1];
        prop_assert!(
            read.ends_with(&format!(
                "| count {}, min {}, median {}, p90 {}, max {}",
                numbers.len(), numbers[0], rank(50), rank(90), numbers[numbers.len() - 1],
            )),
            "{}", read
        );
    }
}
