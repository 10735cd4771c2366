//! Tests of the output of `tools gaps`.

use super::sessions::id;
use super::{fits, narrow};
use crate::cli::render::tables::gaps;
use tarsy_reports::gaps::{Gaps, ToolGaps, UnknownTool, UnseenGroup};

#[test]
fn gaps_are_tables_of_what_was_not_seen_and_of_calls_without_a_result() {
    let unseen = |words: &[&str], sessions, newest: &str| UnseenGroup {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        sessions,
        newest: newest.to_owned(),
        newest_session: id("0d4be6c1"),
    };
    let found = Gaps {
        sessions: 214,
        has_older: false,
        not_seen: vec![
            unseen(
                &["metrics", "node"],
                12,
                "the metrics of the node, which would settle when its memory was used up",
            ),
            unseen(&[], 1, "a packet capture\u{1b}]0;owned\u{7}"),
        ],
        tools: vec![ToolGaps {
            tool: "k8s.pods_log".to_owned(),
            calls: 310,
            empty: 41,
            timed_out: 3,
            failed: 7,
            ..ToolGaps::default()
        }],
        unknown: vec![UnknownTool {
            name: "k8s.kubectl_get\u{202e}".to_owned(),
            calls: 5,
            sessions: 4,
        }],
    };
    insta::assert_snapshot!("gaps_80", fits(&gaps::gaps(&found, &narrow()), 80));
    let none = Gaps {
        sessions: 1,
        ..Gaps::default()
    };
    assert_eq!(
        gaps::gaps(&none, &narrow()),
        [
            "1 session looked at",
            "no gap: no line Not seen, and no call without a result"
        ]
    );
}
