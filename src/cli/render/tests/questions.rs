//! Questions in lists of sessions.

use super::sessions::{at, id, line};
use super::{fits, narrow};
use crate::cli::render::tables::list;
use tarsy_engine::ports::RunStatus;
use tarsy_store::SessionLine;

#[test]
fn questions_stand_below_their_investigation_and_none_is_critical() {
    let question = |last: &str, status: RunStatus, parent: &str, title: &str| SessionLine {
        parent_id: Some(id(parent)),
        ..line(last, status, title)
    };
    let lines = [
        question("00000005", RunStatus::Failed, "a41c9e02", "And now?"),
        question(
            "00000004",
            RunStatus::Completed,
            "77770000",
            "Of an older one?",
        ),
        line("00000003", RunStatus::Failed, "DiskFull db-3"),
        question(
            "00000002",
            RunStatus::Completed,
            "a41c9e02",
            "Would 768Mi be enough?",
        ),
        line(
            "a41c9e02",
            RunStatus::Completed,
            "KubePodOOMKilled checkout",
        ),
    ];
    insta::assert_snapshot!(
        "questions_80",
        fits(&list::sessions(&lines, at(95), &narrow()), 80)
    );
}
