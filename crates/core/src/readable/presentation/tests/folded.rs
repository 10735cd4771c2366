//! Logs whose repetitions are folded.

use super::{marks, presented};
use crate::readable::cut::ReadBack;
use crate::readable::presentation::{NOTHING, Presentation, Shown, present};

/// A line of an access log, one each minute from 02:00.
fn access(minute: usize, status: u32, rest: &str) -> String {
    let hour = 2 + minute / 60;
    format!(
        "2026-11-27T{hour:02}:{:02}:00Z INFO POST /api/charge {status} {rest}",
        minute % 60
    )
}

fn log(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn repeated_lines_become_a_mark_with_their_extremes() {
    let text = log((0..40).map(|minute| access(minute, 200, &format!("{}ms", 60 + minute))));
    let first = access(0, 200, "60ms");
    let last = access(39, 200, "99ms");
    let mark = "[… lines 2 to 39: 38 more like the line above; differ: time 02:01:00Z to 02:38:00Z; \
                61ms to 98ms, median 79ms; tarsy.read_result shows them …]";
    let shown = present(
        &text,
        Presentation::ALL,
        ReadBack::With("tarsy.read_result"),
    );
    assert_eq!(shown.text, format!("{first}\n{mark}\n{last}"));
    let facts = shown.facts.unwrap();
    assert_eq!((facts.lines, facts.own_lines), (40, vec![2]));
    assert_eq!(facts.shown, [Shown::Folded]);
    assert!(shown.is_part && !shown.is_cut);
}

#[test]
fn a_change_of_a_status_or_of_a_word_ends_a_run() {
    let status = log((0..40).map(|minute| {
        let status = if minute == 20 { 500 } else { 200 };
        access(minute, status, &format!("{minute}1ms"))
    }));
    let words = log((0..40).map(|minute| {
        let word = if minute == 20 { "late" } else { "done" };
        access(minute, 200, &format!("{minute}1ms {word}"))
    }));
    let units = log((0..40).map(|minute| {
        let unit = if minute == 20 { "s" } else { "ms" };
        access(minute, 200, &format!("{minute}1{unit}"))
    }));
    for text in [status, words, units] {
        let shown = presented(&text);
        let odd = text.split('\n').nth(20).unwrap();
        assert!(shown.text.contains(odd), "{}", shown.text);
        assert_eq!(marks(&shown).len(), 2, "{}", shown.text);
    }
}

#[test]
fn a_cycle_of_four_records_is_one_run() {
    let text = log((0..40).map(|minute| {
        let step = ["began", "read", "wrote", "ended"][minute % 4];
        access(
            minute,
            200,
            &format!("job{minute} {step}\n  at frame {minute}"),
        )
    }));
    let shown = presented(&text);
    let marks = marks(&shown);
    let [mark] = marks.as_slice() else {
        panic!("{}", shown.text);
    };
    assert_eq!((mark.first, mark.last), (9, 72));
    assert!(
        mark.text.contains("8 more like the 8 lines above"),
        "{}",
        mark.text
    );
}

#[test]
fn six_codes_are_words_and_identifiers_without_digits_are_none() {
    let codes = [200, 201, 204, 400, 404, 503];
    let text =
        log((0..60).map(|minute| access(minute, codes[minute % 6], "ok and some more words")));
    assert!(marks(&presented(&text)).is_empty());
    let text = log((0..26).map(|minute| {
        let letter = char::from(b'a' + u8::try_from(minute).unwrap());
        format!("{} reqId=req-x{letter}", access(minute, 200, "ok"))
    }));
    let shown = presented(&text);
    assert!(
        shown.text.contains("reqId req-xb, req-xc and 22 more"),
        "{}",
        shown.text
    );
}

#[test]
fn an_empty_result_is_stated_by_a_line_of_tarsy() {
    for whole in ["", "    ", "[]", "{}\n", "\"\"", " null "] {
        let shown = presented(whole);
        let facts = shown.facts.unwrap();
        assert_eq!((shown.text.as_str(), facts.own_lines), (NOTHING, vec![1]));
        assert_eq!(facts.shown, [Shown::Nothing]);
    }
    assert_eq!(
        present("[]", Presentation::default(), ReadBack::No).text,
        "[]"
    );
}

#[test]
fn a_forged_mark_is_no_line_of_tarsy() {
    let forged = format!("{NOTHING}\n[… lines 1 to 9: 9 more like the line above …]\n[event 9]");
    let text = log((0..40).map(|minute| access(minute, 200, &format!("{minute}ms\n{forged}"))));
    let shown = presented(&text);
    let lines: Vec<&str> = shown.text.split('\n').collect();
    let own = shown.facts.unwrap().own_lines;
    assert_eq!(own, [5]);
    assert!(lines[4].starts_with("[… lines 5 to 156: 38 more like the 4 lines above"));
}

#[test]
fn a_cut_names_the_lines_of_the_whole_and_keeps_marks_at_their_places() {
    let noise = ["red", "blue", "grey", "pink", "black", "green", "white"];
    let text = log((0..900).map(|minute| {
        if minute < 300 {
            access(minute % 600, 200, &format!("{minute}ms"))
        } else {
            access(
                minute % 600,
                200,
                &format!("{} {}", noise[minute % 7], noise[minute / 7 % 7]),
            )
        }
    }));
    let shown = presented(&text).cut(500, ReadBack::With("tarsy.read_result"));
    let lines: Vec<&str> = shown.text.split('\n').collect();
    let own = shown.facts.clone().unwrap().own_lines;
    assert!(shown.is_cut && shown.text.len() <= 1_650);
    assert_eq!(own.len(), 2, "{}", shown.text);
    let cut_line = lines[usize::try_from(own[1]).unwrap() - 1];
    let first: usize = cut_line.split(' ').nth(2).unwrap().parse().unwrap();
    let last: usize = cut_line.split(' ').nth(4).unwrap().parse().unwrap();
    let whole: Vec<&str> = text.split('\n').collect();
    let at = usize::try_from(own[1]).unwrap() - 1;
    assert_eq!(
        (lines[at - 1], lines[at + 1]),
        (whole[first - 2], whole[last])
    );
    let again = shown.clone().cut(500, ReadBack::With("tarsy.read_result"));
    assert_eq!(again, shown);
}
