//! `approvals approve` and `approvals deny`: send a decision, and wait until a worker has recorded it.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;
use chrono::Utc;
use serde_json::json;
use uuid::Uuid;

use super::{find, read};
use crate::admin::publishing::decisions::{self, Decision, Seen};
use crate::cli::args::{ApprovalsApproveArgs, ApprovalsDenyArgs, GlobalArgs};
use crate::cli::commands::database::Database;
use crate::cli::commands::output::{note, print, print_json, style};
use crate::cli::commands::person::{AsPerson, Looks, Next};
use crate::cli::exit::Exit;
use crate::cli::render::tables::approvals;
use tarsy_core::approvals::{CallHash, Choice};
use tarsy_reports::{ApprovalDetail, RequestState, VoteReport};

/// The digits that a person types, so that they have looked at the call.
const TYPED: usize = 4;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Text,
    Json,
}

pub(super) async fn approve(
    global: &GlobalArgs,
    args: ApprovalsApproveArgs,
) -> anyhow::Result<Exit> {
    let database = Database::new(global, "approvals")?;
    let detail = read(&database, find(&database, &args.request).await?).await?;
    check_open(&detail)?;
    match &args.call {
        Some(call) => check_call(detail.row.call_sha256, call)?,
        None => {
            if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
                bail!(
                    "nothing was sent: without a terminal, --call names the call that you have read (tarsy approvals \
                     show {} prints it)",
                    approvals::id(&detail.row)
                );
            }
            print(&approvals::show(&detail, Utc::now(), &style()))?;
            confirm(detail.row.call_sha256)?;
        }
    }
    let person = AsPerson::connect(global, &args.person).await?;
    let decision = decision(&person, &detail, Choice::Approve, args.comment);
    let output = if args.json {
        Output::Json
    } else {
        Output::Text
    };
    send(&database, &person, decision, output).await
}

pub(super) async fn deny(global: &GlobalArgs, args: ApprovalsDenyArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "approvals")?;
    let detail = read(&database, find(&database, &args.request).await?).await?;
    check_open(&detail)?;
    let choice = if args.later {
        Choice::DenySession
    } else {
        Choice::Deny
    };
    let person = AsPerson::connect(global, &args.person).await?;
    let decision = decision(&person, &detail, choice, args.comment);
    let output = if args.json {
        Output::Json
    } else {
        Output::Text
    };
    send(&database, &person, decision, output).await
}

fn decision(
    person: &AsPerson,
    detail: &ApprovalDetail,
    choice: Choice,
    comment: Option<String>,
) -> Decision {
    Decision {
        id: Uuid::new_v4(),
        sender: person.sender.clone(),
        request: detail.row.id(),
        seen: Seen {
            call: detail.row.call_sha256,
            updates: u32::try_from(detail.row.updates).unwrap_or_default(),
        },
        choice,
        comment,
        by: None,
        from: None,
    }
}

fn check_open(detail: &ApprovalDetail) -> anyhow::Result<()> {
    match detail.row.state {
        RequestState::Open => Ok(()),
        RequestState::Decided
        | RequestState::Expired
        | RequestState::Ended
        | RequestState::Closed => bail!(
            "nothing was sent: request {} is {}",
            approvals::id(&detail.row),
            approvals::state(&detail.row, Utc::now())
        ),
    }
}

fn check_call(hash: CallHash, named: &str) -> anyhow::Result<()> {
    if hash.to_string().starts_with(named) {
        return Ok(());
    }
    bail!("nothing was sent: the request asks for the call {hash}, and not for {named}")
}

/// Asks for the first digits of the call, which stand at the end of what was shown.
fn confirm(hash: CallHash) -> anyhow::Result<()> {
    let mut out = io::stderr().lock();
    write!(
        out,
        "\nType the first {TYPED} characters of the call to approve it: "
    )?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let typed = line.trim().to_ascii_lowercase();
    if typed.len() >= TYPED && hash.to_string().starts_with(&typed) {
        return Ok(());
    }
    bail!("nothing was sent: these are not the first {TYPED} characters of the call")
}

async fn send(
    database: &Database,
    person: &AsPerson,
    decision: Decision,
    output: Output,
) -> anyhow::Result<Exit> {
    let id = decision.id;
    let request = decision.request;
    person.publish(&decisions::message(decision)).await?;
    let vote = recorded(database, id).await?;
    let refused = vote.as_ref().and_then(|vote| vote.refused.as_deref());
    let result = match (&vote, refused) {
        (None, _) => "sent",
        (Some(_), Some(_)) => "refused",
        (Some(_), None) => "recorded",
    };
    match output {
        Output::Json => {
            let name = request.to_string();
            let report = json!({"request": name, "vote": id, "result": result, "refused": refused});
            print_json(&report)?;
        }
        Output::Text => note(&words(vote.as_ref()))?,
    }
    Ok(match (&vote, refused) {
        (None, _) => Exit::NotRecorded,
        (Some(_), Some(_)) => Exit::StillRunning,
        (Some(_), None) => Exit::Done,
    })
}

/// The record of a vote; `None` if no worker has recorded it in time.
async fn recorded(database: &Database, id: Uuid) -> anyhow::Result<Option<VoteReport>> {
    let mut looks = Looks::begin();
    loop {
        let look = database.call(database.store.approval_vote(id)).await;
        if let Some(vote) = looks.found(look) {
            return Ok(Some(vote));
        }
        if looks.next().await? == Next::End {
            return Ok(None);
        }
    }
}

fn words(vote: Option<&VoteReport>) -> String {
    match vote {
        None => "sent, not recorded yet: a worker records it when one runs (tarsy approvals show --watch)"
            .to_owned(),
        Some(vote) => match &vote.refused {
            None => format!("recorded: {} by {}", vote.verdict.replace('_', " "), vote.person),
            Some(reason) => format!("does not count: {}", refusal(reason)),
        },
    }
}

/// The reason of a refusal, for the person who decided.
fn refusal(word: &str) -> String {
    let text = match word {
        "wrong_channel" => "the policy does not accept decisions at the command line",
        "bad_signature" => {
            "its signature is missing or wrong: this machine needs approvals.keys.cli"
        }
        "unknown_person" => "approvals.people has no person with this name as cli",
        "no_right" => "you are in no group of the policy's approvers",
        "no_groups" => "your groups could not be asked for",
        "own_question" => {
            "you have asked this question, and another person has to approve its calls"
        }
        "frozen" => "all changes are frozen",
        "ended" => "the investigation has ended, or is being cancelled",
        "decided" => "the request was decided or closed before",
        "again" => "you have approved it before",
        "expired" => "the time of the request has passed",
        "other_call" => "it names another call than the request",
        "changed" => "the alert has changed since you looked: look again, and decide again",
        "late" => "it waited too long before it was recorded: decide again",
        "too_many" => "the request has too many votes",
        other => other,
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_the_beginning_of_its_hash() {
        let hash = CallHash([0xab; 32]);
        check_call(hash, "abababab").unwrap();
        check_call(hash, &"ab".repeat(32)).unwrap();
        let error = check_call(hash, "babababa").unwrap_err().to_string();
        assert!(error.starts_with("nothing was sent"), "{error}");
    }

    #[test]
    fn every_refusal_has_words_for_the_person() {
        for refusal in tarsy_core::approvals::Refusal::ALL {
            let word = refusal.as_str();
            if word != "unknown" {
                assert!(super::refusal(word).contains(' '), "{word}");
            }
        }
    }
}
