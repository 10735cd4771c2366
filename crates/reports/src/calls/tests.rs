//! Tests of the reports about model calls: pages, words, and that no opaque bytes are in them.

use super::testing::{failed, rebuilt};
use super::*;

/// The call with so many messages of so many bytes.
fn with_messages(count: usize, bytes: usize) -> RebuiltCall {
    let mut call = rebuilt();
    let Ok(of) = &mut call.rebuilt else {
        unreachable!()
    };
    let mut message = of.request.messages[1].clone();
    message.content = "x".repeat(bytes);
    (of.request.messages, of.sources) = (vec![message; count], Vec::new());
    call
}

/// The numbers of the first and the last message, and of the next page.
fn range(report: &CallReport) -> (usize, usize, Option<usize>) {
    let request = report.request.as_ref().unwrap();
    let numbers: Vec<usize> = request
        .messages
        .iter()
        .map(|message| message.number)
        .collect();
    (
        numbers.first().copied().unwrap_or_default(),
        numbers.last().copied().unwrap_or_default(),
        request.next,
    )
}

#[test]
fn a_long_request_has_pages_of_a_hundred_messages() {
    assert_eq!(
        range(&CallReport::new(with_messages(250, 4_000))),
        (1, 250, None)
    );
    let long = || with_messages(250, 5_000);
    assert_eq!(range(&CallReport::new(long())), (1, 100, Some(101)));
    assert_eq!(range(&CallReport::from(long(), 101)), (101, 200, Some(201)));
    assert_eq!(range(&CallReport::from(long(), 201)), (201, 250, None));
    assert_eq!(range(&CallReport::from(long(), 251)), (0, 0, None));
    assert_eq!(
        range(&CallReport::from(with_messages(200, 1), 101)),
        (101, 200, None)
    );
    assert_eq!(range(&CallReport::whole(long())), (1, 250, None));
}

#[test]
fn the_own_form_of_a_provider_is_shown_by_its_size() {
    let report = CallReport::new(rebuilt());
    let own = report.request.as_ref().unwrap().messages[2]
        .own_form
        .as_ref()
        .unwrap();
    assert_eq!(own_form(own), "[own form of google, 3,412 bytes]");
    let sizes = [0, 999, 1_000, 1_234_567].map(|bytes| {
        own_form(&OwnForm {
            bytes,
            ..own.clone()
        })
    });
    let sizes = sizes.map(|words| {
        words
            .split_once(", ")
            .unwrap()
            .1
            .trim_end_matches(']')
            .to_owned()
    });
    assert_eq!(
        sizes,
        ["0 bytes", "999 bytes", "1,000 bytes", "1,234,567 bytes"]
    );
    let json = crate::json::line(&report).unwrap();
    assert!(
        !json.contains("payload") && json.contains("\"bytes\":3412"),
        "{json}"
    );
}

#[test]
fn messages_say_what_they_are() {
    let report = CallReport::new(rebuilt());
    let titles: Vec<String> = report
        .request
        .unwrap()
        .messages
        .iter()
        .map(message_title)
        .collect();
    let blanked = "tool k8s.get, event 5, blanked";
    assert_eq!(
        titles,
        [
            "system",
            "user",
            "assistant",
            blanked,
            "tool k8s.get, event 6, failed"
        ]
    );
    assert_eq!(call_title(&report.call), "call 1 of sre, turn 2");
}

#[test]
fn a_call_without_an_answer_has_its_error_and_its_request() {
    let report = CallReport::new(failed());
    assert_eq!(
        (
            report.answer,
            report.request.map(|request| request.message_count)
        ),
        (None, Some(5))
    );
    let gone = RebuiltCall {
        rebuilt: Err("the result of event 7 is not stored".to_owned()),
        ..failed()
    };
    let report = CallReport::new(gone);
    assert_eq!(
        (report.request, report.not_rebuilt.as_deref()),
        (None, Some("the result of event 7 is not stored"))
    );
}

#[test]
fn a_call_is_named_by_its_number_or_as_the_last_one() {
    assert_eq!("12".parse(), Ok(CallNumber::Number(12)));
    assert_eq!("last".parse(), Ok(CallNumber::Last));
    assert_eq!(
        [CallNumber::Number(3), CallNumber::Last].map(|number| number.to_string()),
        ["3", "last"]
    );
    for wrong in ["0", "-1", "", "first", "4294967296"] {
        assert!(wrong.parse::<CallNumber>().is_err(), "{wrong}");
    }
}
