//! The note about what a person sent: recorded, not counted, or sent and not recorded yet.

use maud::{Markup, html};

use super::words;
use crate::decisions::refusal;
use crate::ports::NoRecord;
use crate::shell::words::{brief, moment, sentence};
use tarsy_reports::VoteReport;

/// The outcome of a form.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Outcome<'a> {
    /// No form was sent.
    #[default]
    None,
    /// A worker has recorded this vote, which may not count.
    Vote(&'a VoteReport),
    /// It is in the stream of people's messages, or may be; the address shows the vote, once it is recorded.
    Sent { again: &'a str, missing: NoRecord },
    /// It was not sent.
    Problem(&'a str),
}

/// The note at the top of a page.
pub(super) fn note(outcome: &Outcome<'_>) -> Markup {
    match outcome {
        Outcome::None => html! {},
        Outcome::Vote(vote) => match &vote.refused {
            None => html! {
                p.banner.good #outcome role="status" {
                    "Recorded: " (brief(&vote.person, 120)) " " (words::decision(&vote.verdict)) " at " (moment(vote.at)) "."
                }
            },
            Some(word) => html! {
                p.banner.err #outcome role="alert" { "Not counted: " (refusal(word)) "." }
            },
        },
        Outcome::Sent { again, missing } => html! {
            p.banner #outcome role="status" { (unrecorded(*missing)) " " a href=(again) { "Look again" } }
        },
        Outcome::Problem(problem) => html! {
            p.banner.err #outcome role="alert" { (sentence(&brief(problem, 600))) }
        },
    }
}

/// The words about what was sent, or may have been, while its record is not shown.
pub(crate) fn unrecorded(missing: NoRecord) -> &'static str {
    match missing {
        NoRecord::NotYet => "Sent, not recorded yet: no worker has recorded it so far.",
        NoRecord::Unconfirmed => {
            "It may have been sent, and is not recorded yet: nats has not confirmed it in time."
        }
        NoRecord::Unread => {
            "It may be recorded, or recorded later: the database could not be read."
        }
    }
}
