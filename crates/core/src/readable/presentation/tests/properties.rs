//! Properties of folded texts.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{marks, presented};
use crate::readable::cut::ReadBack;

/// Lines of a log: times that grow, few words, values.
fn log() -> impl Strategy<Value = String> {
    let line = (0_usize..3, 0_u32..1000, prop::bool::weighted(0.1));
    prop::collection::vec(line, 8..160).prop_map(|lines| {
        let mut text = String::new();
        for (index, (word, number, has_frame)) in lines.iter().enumerate() {
            let word = ["read", "read", "wrote"][*word];
            let minute = index % 60;
            let hour = index / 60;
            text.push_str(&format!(
                "2026-11-27T{hour:02}:{minute:02}:00Z worker {word} took {number} at offset {index}\n"
            ));
            if *has_frame {
                text.push_str("    at a frame\n");
            }
        }
        text
    })
}

/// Cycles of two to four records with other words, each with a number.
fn cycles() -> impl Strategy<Value = String> {
    let numbers = prop::collection::vec(prop_oneof![Just(7_u32), 0_u32..1000], 160);
    (2_usize..=4, 12_usize..40, numbers).prop_map(|(period, repetitions, numbers)| {
        (0..period * repetitions)
            .zip(numbers)
            .map(|(index, number)| {
                let word = ["began", "read", "wrote", "ended"][index % period];
                let hour = index / 60;
                let minute = index % 60;
                format!("2026-11-27T{hour:02}:{minute:02}:00Z worker {word} took {number} of all\n")
            })
            .collect()
    })
}

/// The number of a line of [`cycles`].
fn took(line: &str) -> u32 {
    let behind = line.split("took ").nth(1).unwrap();
    behind.split(' ').next().unwrap().parse().unwrap()
}

/// The ranges of the value `took` in a mark.
fn ranges(mark: &str) -> Vec<(u32, u32)> {
    let differences = mark
        .split("; ")
        .map(|part| part.trim_start_matches("differ: "));
    differences
        .filter_map(|part| part.strip_prefix("took "))
        .map(|range| {
            let range = range.split([',', '…']).next().unwrap().trim();
            let ends: Vec<u32> = range
                .split(" to ")
                .map(|end| end.parse().unwrap())
                .collect();
            (ends[0], ends[ends.len() - 1])
        })
        .collect()
}

proptest! {
    #[test]
    fn every_line_of_the_whole_is_shown_or_in_the_range_of_a_mark(text in log()) {
        let shown = presented(&text);
        let mut restored = Vec::new();
        let whole: Vec<&str> = text.lines().collect();
        let marks = marks(&shown);
        let own = shown.facts.clone().unwrap().own_lines;
        let mut next_mark = marks.iter();
        for (number, line) in (1_u32..).zip(shown.text.trim_end_matches('\n').split('\n')) {
            if own.contains(&number) {
                let mark = next_mark.next().unwrap();
                prop_assert_eq!(usize::try_from(mark.first).unwrap(), restored.len() + 1);
                for hidden in mark.first..=mark.last {
                    restored.push(whole[usize::try_from(hidden).unwrap() - 1]);
                }
            } else {
                restored.push(line);
            }
        }
        prop_assert_eq!(restored, whole);
    }

    #[test]
    fn the_range_of_a_mark_contains_all_hidden_numbers(text in log()) {
        let whole: Vec<&str> = text.lines().collect();
        for mark in marks(&presented(&text)) {
            if !mark.text.contains("more like the line above") {
                continue;
            }
            let took = mark.text.split("; ").find_map(|part| part.trim_start_matches("differ: ").strip_prefix("took "));
            let hidden = whole[usize::try_from(mark.first).unwrap() - 1..usize::try_from(mark.last).unwrap()].iter();
            let hidden: BTreeSet<u32> = hidden
                .filter_map(|line| line.split("took ").nth(1))
                .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
                .collect();
            let Some(took) = took else { continue };
            let range = took.split(',').next().unwrap();
            let range = range.split(" …").next().unwrap();
            let ends: Vec<u32> = range.split(" to ").map(|end| end.parse().unwrap()).collect();
            prop_assert_eq!(Some(&ends[0]), hidden.first());
            prop_assert_eq!(ends.last(), hidden.last());
        }
    }

    #[test]
    fn each_hidden_number_of_a_cycle_is_as_in_the_lines_above_or_in_a_range(text in cycles()) {
        let whole: Vec<&str> = text.lines().collect();
        let shown = presented(&text);
        // Up to four values of one record are words of it, and end a run where they change.
        let has_words = ["began", "read", "wrote", "ended"].iter().any(|word| {
            let lines = whole.iter().filter(|line| line.contains(word));
            let values: BTreeSet<u32> = lines.map(|line| took(line)).collect();
            (2..=4).contains(&values.len())
        });
        prop_assert!(has_words || !marks(&shown).is_empty(), "{}", shown.text);
        for mark in marks(&shown) {
            let count = mark.text.split(" lines above").next().unwrap().rsplit(' ').next().unwrap();
            let of_one: usize = count.parse().unwrap_or(1);
            let ranges = ranges(&mark.text);
            let first = usize::try_from(mark.first).unwrap() - 1;
            let last = usize::try_from(mark.last).unwrap();
            for (index, line) in whole[first..last].iter().enumerate() {
                let number = took(line);
                let above = took(whole[first - of_one + index % of_one]);
                let is_in_range = ranges.iter().any(|(least, greatest)| (*least..=*greatest).contains(&number));
                prop_assert!(number == above || is_in_range, "{number} in {}", mark.text);
            }
        }
    }

    #[test]
    fn the_first_and_the_last_repetition_are_shown(text in log()) {
        let whole: Vec<&str> = text.lines().collect();
        let shown = presented(&text);
        let lines: BTreeSet<&str> = shown.text.split('\n').collect();
        for mark in marks(&shown) {
            let before = usize::try_from(mark.first).unwrap() - 2;
            let after = usize::try_from(mark.last).unwrap();
            prop_assert!(lines.contains(whole[before]) && lines.contains(whole[after]));
            prop_assert!(!lines.contains(whole[before + 1]) || whole[before + 1] == "    at a frame");
        }
    }

    #[test]
    fn a_text_without_times_is_never_folded(text in "([a-c]{1,3} [0-9]{1,4}\n){0,300}") {
        prop_assert_eq!(presented(&text).text.len() >= text.len() || text.trim().is_empty(), true);
    }

    #[test]
    fn a_cut_of_a_cut_text_changes_nothing(text in log(), tokens in 150_u32..600) {
        let once = presented(&text).cut(tokens, ReadBack::No);
        prop_assert_eq!(once.clone().cut(tokens, ReadBack::No), once);
    }
}
