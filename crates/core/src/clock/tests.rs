use super::*;
use crate::testing::alert;

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

const NOW: &str = "2026-11-27T03:32:31.250Z";

fn opening(source: &str, changed_at: Option<&str>, received_at: &str) -> String {
    let alert = Alert {
        source: source.to_owned(),
        at: changed_at.map(time),
        ..alert("x")
    };
    let clock = ClockPlan::of_alert(&alert, time(received_at));
    StatedTime::Opening {
        clock,
        at: time(NOW),
    }
    .added_to("Look.")
}

#[test]
fn the_first_message_states_the_time_and_the_age_of_the_alert() {
    let text = opening(
        "alertmanager",
        Some("2026-11-27T00:59:00Z"),
        "2026-11-27T03:32:29Z",
    );
    assert_eq!(
        text,
        "Look.\n\nIt is now 2026-11-27 03:32:31 UTC, Friday (epoch 1795750351).\n\
         The alert has been firing since 2026-11-27 00:59:00 UTC, for 2 h 33 min; the fault is older by the time for \
         which its rule waits. tarsy received it 2 s ago."
    );
}

#[test]
fn a_time_of_another_source_is_the_word_of_its_sender() {
    let text = opening("json", Some("2026-11-27T00:59:00Z"), NOW);
    let expected = "Its sender says that its status changed at 2026-11-27 00:59:00 UTC, 2 h 33 min ago. \
                    tarsy received it just now.";
    assert_eq!(text.lines().last(), Some(expected));
    assert_eq!(
        opening("json", None, "2026-11-26T03:31:00Z").lines().last(),
        Some("tarsy received it 1 day ago.")
    );
}

#[test]
fn a_time_that_cannot_be_is_quoted_without_an_age() {
    for at in [
        "0001-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "2026-11-27T03:32:32Z",
        "2300-01-01T00:00:00Z",
    ] {
        for source in ["grafana", "json"] {
            let text = opening(source, Some(at), NOW);
            let expected = format!(
                "The time in the alert is {}. tarsy received it just now.",
                at.replace('Z', "+00:00")
            );
            assert_eq!(text.lines().last(), Some(expected.as_str()), "{source}");
        }
    }
}

#[test]
fn a_question_has_the_end_of_its_investigation() {
    let last = |ended_at| {
        let text = StatedTime::Opening {
            clock: ClockPlan::of_question(ended_at),
            at: time(NOW),
        }
        .added_to("Why?");
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(
        last(Some(time("2026-11-24T23:00:00Z"))),
        "The investigation ended 2 days 4 h ago."
    );
    assert_eq!(
        last(None),
        "It is now 2026-11-27 03:32:31 UTC, Friday (epoch 1795750351)."
    );
}

#[test]
fn only_a_long_pause_has_a_message() {
    let clock = ClockPlan::of_question(None);
    assert_eq!(
        clock.after_pause(time("2026-11-27T03:22:31.250Z"), time(NOW)),
        None
    );
    let message = clock.after_pause(time("2026-11-27T02:55:00Z"), time(NOW));
    let expected = "It is now 2026-11-27 03:32:31 UTC, 37 min after the message above; what it shows may have changed.";
    assert_eq!(message.as_deref(), Some(expected));
    let drill = ClockPlan {
        offset_s: -86_400,
        ..clock
    };
    let message = drill
        .after_pause(time("2026-11-27T02:55:00Z"), time(NOW))
        .unwrap();
    assert!(
        message.starts_with("It is now 2026-11-26 03:32:31 UTC, 37 min after"),
        "{message}"
    );
}

#[test]
fn the_turns_that_are_left_are_stated_when_they_are_few() {
    let shown = [6, 5, 1, 0].map(|turns| StatedTime::of_result(time(NOW), turns).in_heading());
    assert_eq!(
        shown,
        [
            " 03:32:31",
            " 03:32:31, 5 turns left",
            " 03:32:31, 1 turn left",
            " 03:32:31"
        ]
    );
}

#[test]
fn a_length_has_its_two_largest_units() {
    let cases = [
        (0, "0 s"),
        (59, "59 s"),
        (61, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (9_211, "2 h 33 min"),
        (86_459, "1 day"),
        (187_200, "2 days 4 h"),
    ];
    for (seconds, expected) in cases {
        assert_eq!(in_words(TimeDelta::seconds(seconds)), expected, "{seconds}");
    }
}
