use std::time::Duration;

use proptest::prelude::*;

use super::*;
use tarsy_core::clock::Moment;

fn now() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-11-28T06:30:00Z")
        .unwrap()
        .to_utc()
}

fn at(text: &str) -> Option<Moment> {
    Some(Moment::At(
        DateTime::parse_from_rfc3339(text).unwrap().to_utc(),
    ))
}

#[test]
fn parameters_are_checked_and_empty_ones_are_absent() {
    let query = "status=failed&status=timed-out,running&severity=high,critical&chain=a&source=&label=a%3Db&since=24h\
                     &q=+oom+&other=1&before=&until=2026-11-27&label=c=d,e&questions=hidden";
    let label = |key: &str, value: &str| Label {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let filter = SessionFilter {
        limit: 50,
        statuses: vec![RunStatus::Failed, RunStatus::TimedOut, RunStatus::Running],
        waits_for_approval: false,
        severities: vec![Severity::High, Severity::Critical],
        chains: vec!["a".to_owned()],
        sources: Vec::new(),
        labels: vec![label("a", "b"), label("c", "d,e")],
        since: Some(Moment::Ago(Duration::from_hours(24))),
        until: at("2026-11-28T00:00:00Z"),
        search: Some("oom".to_owned()),
        questions: Questions::Hidden,
        about: Vec::new(),
    };
    let page = ListQuery::parse(Some(query)).page(now()).unwrap();
    assert_eq!(
        page,
        SessionPage {
            filter,
            before: None
        }
    );
    assert_eq!(
        ListQuery::parse(Some("since=2026-11-27T10:00Z"))
            .page(now())
            .unwrap()
            .filter
            .since,
        at("2026-11-27T10:00:00Z")
    );
    let accepted = "since: accepted: 3h, 7d, today, yesterday, 2026-11-27 or 2026-11-27T10:00Z";
    for (wrong, named) in [
        ("status=lost", "status: accepted: running, completed"),
        (
            "severity=bad",
            "severity: accepted: critical, high, normal, low",
        ),
        ("label=x", "label: accepted: key=value"),
        ("since=tomorrow", accepted),
        ("until=2026-13-01", "until: accepted: 3h"),
        ("questions=no", "questions: accepted: shown, hidden"),
        ("before=7", "before"),
        ("limit=501", "limit: accepted: 1 to 500"),
        ("limit=0", "limit"),
        (
            &format!("q={}", "a".repeat(201)),
            "q: accepted: at most 200 bytes",
        ),
        (&format!("chain={}", "a".repeat(201)), "chain: accepted"),
        (
            &(0..30).map(|n| format!("chain={n}&")).collect::<String>(),
            "chain: accepted: at most 20 values",
        ),
    ] {
        let fault = ListQuery::parse(Some(wrong))
            .page(now())
            .unwrap_err()
            .to_string();
        assert!(fault.starts_with(named), "{wrong}: {fault}");
    }
}

#[test]
fn a_page_keeps_what_is_right_of_a_wrong_address() {
    let selection = ListQuery::parse(Some(
        "status=lost,failed&since=tomorrow&label=x&label=a=b&until=x",
    ))
    .selection(now());
    assert_eq!(
        selection.query,
        ListQuery::parse(Some("status=failed&label=a=b"))
    );
    assert_eq!(selection.page.filter.statuses, [RunStatus::Failed]);
    assert_eq!(selection.faults.len(), 4, "{:?}", selection.faults);
}

#[test]
fn each_value_can_be_left_out_alone() {
    let query = ListQuery::parse(Some(
        "status=failed&severity=high,low&label=a=b&since=7d&until=1d&q=x",
    ));
    let parts = query.parts();
    let named: Vec<String> = parts
        .iter()
        .map(|part| format!("{} {}", part.name, part.value))
        .collect();
    let expected = [
        "status failed",
        "severity high",
        "severity low",
        "label a=b",
        "since 7d",
        "until 1d",
        "words x",
    ];
    assert_eq!(named, expected);
    assert_eq!(
        parts[1].without,
        ListQuery::parse(Some(
            "status=failed&severity=low&label=a=b&since=7d&until=1d&q=x"
        ))
    );
    assert!(parts.iter().all(|part| part.without.parts().len() == 6));
}

proptest! {
    #[test]
    fn no_address_breaks_the_page(query in "([a-z]{0,6}(status|since|label|until|severity|q|limit)?=[^#]{0,12}&){0,6}") {
        let selection = ListQuery::parse(Some(&query)).selection(now());
        // What is kept is right, and stays so when it is written as an address.
        let again = selection.query.selection(now());
        prop_assert_eq!((&again.page, again.faults.len()), (&selection.page, 0));
        let mut written = url::form_urlencoded::Serializer::new(String::new());
        selection.query.pairs().iter().for_each(|pair| { written.append_pair(pair.name, pair.value); });
        let read = ListQuery::parse(Some(&written.finish())).selection(now());
        prop_assert_eq!(read.page.filter, selection.page.filter);
    }
}
