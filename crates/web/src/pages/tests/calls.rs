//! Tests of the pages about model calls: what they show, and to whom.

use super::{shown, shown_to};
use crate::pages::calls::{call, list};
use crate::rights::Access;
use crate::shell::viewer::Viewer;
use crate::testing::backend::FakeBackend;
use crate::testing::data::{report, story};
use crate::testing::markup::{check, texts};
use tarsy_reports::calls::testing::{failed, rebuilt};
use tarsy_reports::calls::{CallReport, RebuiltCall};

const LINK: &str = "/sessions/0198b2c4-5d6e-7f80-9a1b-2c3da41c9e02/calls\"";

#[test]
fn the_page_of_a_session_links_to_its_calls_for_those_who_may_see_them() {
    let allowed = Viewer {
        access: Access {
            may_see_prompts: true,
            ..Access::default()
        },
        ..Viewer::default()
    };
    assert!(
        shown_to(&report(), &story(), &allowed)
            .whole()
            .contains(LINK)
    );
    assert!(!shown(&report(), &story()).whole().contains(LINK));
}

#[test]
fn a_call_has_its_messages_with_folded_results_its_tools_and_its_answer() {
    let page = call(report().alert_id, &CallReport::new(rebuilt())).into_string();
    assert_eq!(check(&page).err(), None);
    let open = [1, 2, 3, 4, 5].map(|number| page.contains(&format!("id=\"m{number}\" open")));
    assert_eq!(open, [true, true, true, false, false]);
    insta::assert_snapshot!("call", texts(&page));
}

#[test]
fn the_calls_of_a_session_are_a_table() {
    let calls = [rebuilt().call, failed().call];
    let page = list(report().alert_id, &calls).into_string();
    assert_eq!(check(&page).err(), None);
    insta::assert_snapshot!("calls", texts(&page));
    let empty = list(report().alert_id, &[]).into_string();
    assert!(empty.contains("No model call is stored"), "{empty}");
}

#[test]
fn a_failed_call_has_its_error_and_one_that_is_lost_its_reason() {
    let id = report().alert_id;
    let page = texts(&call(id, &CallReport::new(failed())).into_string());
    assert!(
        page.contains("too many requests")
            && page.contains("rate limited")
            && !page.contains("Answer"),
        "{page}"
    );
    let gone = RebuiltCall {
        rebuilt: Err("the plan of the session is not stored".to_owned()),
        ..rebuilt()
    };
    let page = texts(&call(id, &CallReport::new(gone)).into_string());
    assert!(
        page.contains("cannot be made again: the plan of the session is not stored."),
        "{page}"
    );
}

#[test]
fn a_long_request_links_to_its_other_pages() {
    let mut long = rebuilt();
    let Ok(of) = &mut long.rebuilt else {
        unreachable!()
    };
    of.request.messages = vec![of.request.messages[1].clone(); 250];
    let page = call(report().alert_id, &CallReport::from(long, 101)).into_string();
    assert_eq!(check(&page).err(), None);
    assert!(
        page.contains("calls/1?from=1\"") && page.contains("calls/1?from=201\""),
        "{page}"
    );
    assert!(
        texts(&page).contains("Messages 101 to 200 of 250."),
        "{}",
        texts(&page)
    );
}

#[tokio::test]
async fn without_the_right_the_calls_are_refused_with_a_sentence() {
    let backend = FakeBackend::with_events(3);
    let id = report().alert_id;
    for path in [
        format!("/sessions/{id}/calls"),
        format!("/sessions/{id}/calls/1"),
    ] {
        for prefix in ["", "/api/v1"] {
            let path = format!("{prefix}{path}");
            assert_eq!(
                backend.answer(&path, &[]).await.status().as_u16(),
                200,
                "{path}"
            );
            assert_eq!(
                backend
                    .answer_without_prompts(&path)
                    .await
                    .status()
                    .as_u16(),
                403,
                "{path}"
            );
        }
    }
    let last = backend
        .answer(&format!("/api/v1/sessions/{id}/calls/last"), &[])
        .await;
    let none = backend
        .answer(&format!("/api/v1/sessions/{id}/calls/2"), &[])
        .await;
    let wrong = backend
        .answer(&format!("/api/v1/sessions/{id}/calls/0"), &[])
        .await;
    assert_eq!(
        [last, none, wrong].map(|answer| answer.status().as_u16()),
        [200, 404, 400]
    );
}
