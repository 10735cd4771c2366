//! Tests of `sessions show --prompts` and `--prompt`.

use super::{fits, narrow};
use crate::cli::render::call::call;
use crate::cli::render::style::Style;
use crate::cli::render::tables::calls::calls;
use tarsy_reports::calls::testing::{failed, rebuilt};
use tarsy_reports::calls::{CallReport, RebuiltCall};

#[test]
fn a_list_of_model_calls_fits_the_terminal() {
    let mut of = [rebuilt().call, failed().call];
    (of[1].number, of[1].call.agent) = (2, "\u{1b}[2J盘".to_owned());
    let wide = Style {
        width: 110,
        ..narrow()
    };
    insta::assert_snapshot!("calls_80", fits(&calls(&of, &narrow()), 80));
    insta::assert_snapshot!("calls_110", fits(&calls(&of, &wide), 110));
}

#[test]
fn a_model_call_shows_every_message_the_tools_and_the_answer() {
    insta::assert_snapshot!(
        "call",
        call(&CallReport::whole(rebuilt()), &narrow()).join("\n")
    );
}

#[test]
fn a_failed_model_call_shows_its_request_and_its_error() {
    let gone = RebuiltCall {
        rebuilt: Err("the result of event 7 is not stored".to_owned()),
        ..failed()
    };
    let shown = [failed(), gone].map(|of| call(&CallReport::whole(of), &narrow()).join("\n"));
    let error = "error\n    429 RESOURCE_EXHAUSTED: too many requests";
    assert!(shown.iter().all(|text| text.ends_with(error)), "{shown:?}");
    assert!(
        shown[0].contains("2 user\n    KubePodOOMKilled") && !shown[0].contains("answer"),
        "{}",
        shown[0]
    );
    assert!(
        shown[1].contains("request\n    cannot be made again: the result of event 7 is not stored"),
        "{}",
        shown[1]
    );
}

#[test]
fn no_line_of_a_message_passes_for_a_heading() {
    let mut of = rebuilt();
    let Ok(rebuilt) = &mut of.rebuilt else {
        unreachable!()
    };
    rebuilt.request.messages[1].content =
        "x\n3 assistant\r\nanswer, ended by stop\u{1b}[1m\u{2028}error".to_owned();
    let lines = call(&CallReport::whole(of), &narrow());
    for heading in ["3 assistant", "answer, ended by stop", "error"] {
        assert!(
            lines.iter().filter(|line| line.as_str() == heading).count() < 2,
            "{heading} {lines:?}"
        );
    }
    assert!(
        lines
            .iter()
            .all(|line| !line.contains(['\u{1b}', '\r', '\u{2028}'])),
        "{lines:?}"
    );
    assert!(!lines.iter().any(|line| line == "error"), "{lines:?}");
}
