//! The line that a person gets after their decision is recorded, where their channel has an address for it.

use crate::ports::{VerdictRecord, VerdictRefusal, Vote, VoteRecord};
use tarsy_core::approvals::{Choice, Refusal};
use tarsy_core::execution::entry::ApprovalOutcome;

/// The answer to a vote.
pub(super) fn words(vote: &Vote, record: &VoteRecord) -> &'static str {
    match (record.refused, vote.choice) {
        (Some(refusal), _) => refused(refusal),
        (None, Choice::Approve) => approved(record.outcome.as_deref()),
        (None, Choice::Deny) => "Recorded: you denied this call.",
        (None, Choice::DenySession) => {
            "Recorded: you denied every call of this tool in this investigation."
        }
    }
}

/// The answer to a verdict about an analysis.
pub(super) fn to_verdict(record: &VerdictRecord) -> &'static str {
    match record {
        VerdictRecord::Recorded(_) | VerdictRecord::Repeated => {
            "Recorded. The newest verdict about an investigation counts."
        }
        VerdictRecord::Refused(VerdictRefusal::UnknownSession) => {
            "Not recorded: this investigation is not known."
        }
        VerdictRecord::Refused(VerdictRefusal::NotEnded) => {
            "Not recorded: this investigation has not ended."
        }
        VerdictRecord::Refused(VerdictRefusal::TooManyVerdicts) => {
            "Not recorded: this investigation has too many verdicts."
        }
    }
}

fn approved(outcome: Option<&str>) -> &'static str {
    match outcome {
        None => "Recorded. Another person has to approve this call as well.",
        Some(outcome) if outcome == ApprovalOutcome::Approved.as_str() => {
            "Recorded: you approved this call. It is sent as it was shown, unless the approval lapses, the tool changes or \
             changes are frozen before that. The page shows what became of it."
        }
        Some(_) => "Recorded. The call was not approved: the page shows who decided.",
    }
}

pub(super) fn refused(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::WrongChannel => "Not counted: this policy takes no decisions from Slack.",
        Refusal::BadSignature => {
            "Not counted: the process that receives clicks has another key than the workers."
        }
        Refusal::UnknownPerson => {
            "Not counted: this policy counts only people of approvals.people."
        }
        Refusal::NoRight => "Not counted: you are in no group that may decide about this call.",
        Refusal::NoGroups => {
            "Not counted: Slack could not be asked in time which groups you are in. Decide again."
        }
        Refusal::OwnQuestion => {
            "Not counted: this call belongs to a question of yours, so another person has to approve it."
        }
        Refusal::Frozen => "Not counted: operators have frozen all changes.",
        Refusal::Ended => "Not counted: the investigation has ended or is being cancelled.",
        Refusal::Decided => "Not counted: this call was decided before.",
        Refusal::Again => "Not counted again: you have approved this call before.",
        Refusal::Expired => "Not counted: the time for a decision has passed.",
        Refusal::OtherCall => {
            "Not counted: the message shows another call than the one that waits."
        }
        Refusal::Changed => {
            "Not counted: the alert has changed since this message. Look at the page and decide there."
        }
        Refusal::Late => {
            "Not counted: your decision waited too long before it was recorded. Decide again."
        }
        Refusal::TooMany => "Not counted: this call has too many votes.",
        Refusal::Unknown => "Not counted: this call is not known.",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_an_approval_that_decided_is_called_one() {
        for (outcome, is_approval) in [
            (None, false),
            (Some("approved"), true),
            (Some("denied"), false),
        ] {
            let line = approved(outcome);
            assert_eq!(
                line.contains("you approved this call"),
                is_approval,
                "{line}"
            );
        }
    }

    #[test]
    fn each_reason_has_a_line_of_its_own_that_says_that_the_vote_does_not_count() {
        let lines: BTreeSet<&str> = Refusal::ALL.into_iter().map(refused).collect();
        assert_eq!(lines.len(), Refusal::ALL.len());
        assert!(
            lines.iter().all(|line| line.starts_with("Not counted")),
            "{lines:?}"
        );
    }
}
