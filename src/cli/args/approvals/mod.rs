//! Arguments of `approvals`.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};

use super::values::{ACCEPTED, Edge, duration, parse_moment, since};
use crate::cli::session_ref::SessionRef;
use tarsy_core::approvals::Sender;
use tarsy_core::clock::Moment;

/// A list shows at most so many rows.
const MAX_LIST: i64 = 1000;
/// The shortest part of a call's hash that names it.
const MIN_CALL: usize = 8;
/// The longest text of a person, in characters.
const MAX_TEXT: usize = 2_000;

/// The commands about calls that wait for a person.
#[derive(Clone, Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List the calls that wait for a person, the oldest first
    #[command(alias = "ls")]
    List(ApprovalsListArgs),
    /// Show a call with everything that speaks for it and against it
    Show(ApprovalsShowArgs),
    /// Approve a call, exactly as it is shown
    Approve(ApprovalsApproveArgs),
    /// Deny a call
    Deny(ApprovalsDenyArgs),
    /// Print every vote with what its person saw, for an audit
    Export(ApprovalsExportArgs),
    /// Stop all changes: no call that may change something is sent, and no approval counts
    Freeze(ApprovalsFreezeArgs),
    /// End the freeze of changes
    Unfreeze(ApprovalsUnfreezeArgs),
}

/// A request, as `<session>:<event>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRef {
    pub session: SessionRef,
    pub event: u32,
}

impl FromStr for RequestRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.trim().split_once([':', '/']);
        let request = parts.and_then(|(session, event): (&str, &str)| {
            Some(Self {
                session: session.parse().ok()?,
                event: event.parse().ok()?,
            })
        });
        request.ok_or_else(|| {
            "accepted: <session>:<event> as tarsy approvals list shows it, such as 7f3a9c12:42"
                .to_owned()
        })
    }
}

/// The person who decides.
#[derive(Args, Clone, Debug)]
pub struct PersonArgs {
    /// Your name in approvals.people (cli) [default: the one for which the broker permits decisions]
    #[arg(long = "as", value_name = "NAME", env = "TARSY_PERSON", value_parser = sender)]
    pub person: Option<Sender>,
}

/// Arguments of `approvals list`.
#[derive(Args, Clone, Debug)]
pub struct ApprovalsListArgs {
    /// The largest number of rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "50")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_LIST))]
    pub limit: u32,
    /// Those that are decided or closed, too, the newest first
    #[arg(long)]
    pub all: bool,
    /// Only those of this investigation: the id, or at least six characters of its beginning or end
    #[arg(long, value_name = "SESSION")]
    pub session: Option<SessionRef>,
    /// Only those that were asked since then: 30m, 24h, 7d, today, yesterday, 2026-11-27, 2026-11-27T10:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Moment>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `approvals show`.
#[derive(Args, Clone, Debug)]
pub struct ApprovalsShowArgs {
    /// The request, such as 7f3a9c12:42
    pub request: RequestRef,
    /// Wait until it is decided or closed
    #[arg(long, short)]
    pub watch: bool,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `approvals approve`.
#[derive(Args, Clone, Debug)]
pub struct ApprovalsApproveArgs {
    /// The request, such as 7f3a9c12:42
    pub request: RequestRef,
    /// The call that you have read: 8 or more of the 64 digits of its hash; asked for on a terminal
    #[arg(long, value_name = "HEX", value_parser = call)]
    pub call: Option<String>,
    /// A text for the agent and for the record; it permits no other call
    #[arg(long, value_name = "TEXT", value_parser = person_text)]
    pub comment: Option<String>,
    #[command(flatten)]
    pub person: PersonArgs,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `approvals deny`.
#[derive(Args, Clone, Debug)]
pub struct ApprovalsDenyArgs {
    /// The request, such as 7f3a9c12:42
    pub request: RequestRef,
    /// Deny every later call of the tool in this investigation, too
    #[arg(long = "session")]
    pub later: bool,
    /// A text for the agent and for the record, such as the reason
    #[arg(long, value_name = "TEXT", value_parser = person_text)]
    pub comment: Option<String>,
    #[command(flatten)]
    pub person: PersonArgs,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `approvals export`.
#[derive(Args, Clone, Debug)]
pub struct ApprovalsExportArgs {
    /// Only votes since then: 30m, 24h, 30d, today, yesterday, 2026-11-27, 2026-11-27T10:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Moment>,
    /// One JSON object a line, the only form
    #[arg(long, required = true)]
    pub jsonl: bool,
}

/// Arguments of `approvals freeze`.
#[derive(Args, Clone, Debug)]
pub struct ApprovalsFreezeArgs {
    /// The end: 2h, 3d, 2026-11-27, 2026-11-27T10:00Z; without it a person has to end it
    #[arg(long, value_name = "TIME", value_parser = end)]
    pub until: Option<DateTime<Utc>>,
    /// The reason, for everyone who decides
    #[arg(long, value_name = "TEXT", value_parser = person_text)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub person: PersonArgs,
}

/// Arguments of `approvals unfreeze`.
#[derive(Args, Clone, Debug)]
pub struct ApprovalsUnfreezeArgs {
    #[command(flatten)]
    pub person: PersonArgs,
}

fn sender(text: &str) -> Result<Sender, String> {
    Sender::cli(text)
        .ok_or_else(|| "accepted: at most 64 letters, digits, - and _, as in `cli`".to_owned())
}

fn call(text: &str) -> Result<String, String> {
    let digits = text.trim().to_ascii_lowercase();
    let is_hash = digits.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash && (MIN_CALL..=64).contains(&digits.len()) {
        Ok(digits)
    } else {
        Err(format!(
            "accepted: {MIN_CALL} to 64 hexadecimal digits, as tarsy approvals show prints them"
        ))
    }
}

/// A text of a person, without spaces at its ends.
///
/// # Errors
/// A message for the user when the text is empty or too long.
pub(super) fn person_text(text: &str) -> Result<String, String> {
    let text = text.trim();
    let length = text.chars().count();
    if (1..=MAX_TEXT).contains(&length) {
        Ok(text.to_owned())
    } else {
        Err(format!("accepted: 1 to {MAX_TEXT} characters"))
    }
}

fn after(now: DateTime<Utc>, period: Duration) -> Option<DateTime<Utc>> {
    now.checked_add_signed(TimeDelta::from_std(period).ok()?)
}

/// The end of a freeze: a duration from now, or a moment.
fn end(text: &str) -> Result<DateTime<Utc>, String> {
    let now = Utc::now();
    let end = match duration(text) {
        Ok(period) => after(now, period),
        Err(_) => match parse_moment(text, Edge::End, now) {
            Some(Moment::At(at)) => Some(at),
            Some(Moment::Ago(_)) | None => None,
        },
    };
    let end = end.ok_or_else(|| format!("accepted: a duration such as 2h, or {ACCEPTED}"))?;
    if end <= now {
        return Err("accepted: a moment in the future".to_owned());
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_by_a_part_of_its_session_and_its_event() {
        for text in [
            "7f3a9c12:42",
            "7F3A9C12/42",
            "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa:42",
        ] {
            assert_eq!(text.parse::<RequestRef>().unwrap().event, 42, "{text}");
        }
        for text in ["", "7f3a9c12", "7f3a9c12:", "7f3a9c12:x", "7f3a:42", ":42"] {
            text.parse::<RequestRef>().unwrap_err();
        }
    }

    #[test]
    fn a_call_is_named_by_eight_digits_of_its_hash_or_more() {
        assert_eq!(call("ABCDEF01"), Ok("abcdef01".to_owned()));
        for text in ["", "abcdef0", "abcdefgh", &"a".repeat(65)] {
            call(text).unwrap_err();
        }
    }

    #[test]
    fn a_freeze_ends_in_the_future() {
        let hours = end("2h").unwrap() - Utc::now();
        assert!((110..=120).contains(&hours.num_minutes()), "{hours}");
        end("2099-01-01T00:00Z").unwrap();
        for text in ["2020-01-01", "yesterday", "soon", ""] {
            end(text).unwrap_err();
        }
    }
}
