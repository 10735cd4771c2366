//! `tarsy verdict` and `tarsy verdicts`: send the verdict of a person about an analysis, and export verdicts.

use std::time::Duration;

use anyhow::bail;
use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::database::Database;
use super::output::{json_line, note, print, print_json};
use super::person::{AsPerson, Looks, Next};
use super::sessions;
use crate::admin::publishing::decisions::{self, Judgement};
use crate::cli::args::{GlobalArgs, VerdictArgs, VerdictsCommand, VerdictsExportArgs};
use crate::cli::exit::Exit;
use tarsy_core::clock::Moment;
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::{MAX_VERDICTS, PersonVerdict};
use tarsy_engine::ports::RunStatus;
use tarsy_store::AlertReport;

pub(super) async fn run(global: &GlobalArgs, command: VerdictsCommand) -> anyhow::Result<Exit> {
    match command {
        VerdictsCommand::Export(args) => export(global, args).await,
    }
}

/// Sends a verdict, and waits until a worker has recorded it.
pub(super) async fn judge(global: &GlobalArgs, args: VerdictArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "verdict")?;
    let (session, report) = sessions::read(&database, &args.session).await?;
    check_judgeable(&report)?;
    let person = AsPerson::connect(global, &args.person).await?;
    let judgement = Judgement {
        id: Uuid::new_v4(),
        sender: person.sender.clone(),
        session,
        rating: args.rating,
        cause: args.cause,
        action: args.action,
    };
    let id = judgement.id;
    person.publish(&decisions::verdict(judgement)).await?;
    let verdict = recorded(&database, id).await?;
    if args.json {
        let result = match &verdict {
            Some(_) => "recorded",
            None => "sent",
        };
        let report =
            json!({"session_id": session, "verdict_id": id, "result": result, "verdict": verdict});
        print_json(&report)?;
    } else {
        note(&words(verdict.as_ref(), session))?;
    }
    Ok(match verdict {
        Some(_) => Exit::Done,
        None => Exit::NotRecorded,
    })
}

/// Refuses what every worker would refuse. A refused verdict leaves no row that has the reason.
fn check_judgeable(report: &AlertReport) -> anyhow::Result<()> {
    let short = report.alert_id.short();
    let Some(session) = &report.session else {
        match report.joined_session_id {
            Some(joined) => bail!(
                "nothing was sent: alert {short} belongs to session {0}: tarsy verdict {0} judges that one",
                joined.short()
            ),
            None => bail!("nothing was sent: alert {short} was not investigated"),
        }
    };
    if session.finished_at.is_none() {
        bail!("nothing was sent: session {short} is not over yet (tarsy watch {short} follows it)");
    }
    if session.status == RunStatus::Limited {
        bail!(
            "nothing was sent: session {short} lists alerts above the limit of their route and was not investigated"
        );
    }
    if session.verdicts.len() >= usize::try_from(MAX_VERDICTS)? {
        bail!(
            "nothing was sent: session {short} has {MAX_VERDICTS} verdicts, and no more are recorded"
        );
    }
    Ok(())
}

/// The record of a verdict; `None` if no worker has recorded it in time.
async fn recorded(database: &Database, id: Uuid) -> anyhow::Result<Option<PersonVerdict>> {
    let mut looks = Looks::begin();
    loop {
        let look = database.call(database.store.recorded_verdict(id)).await;
        if let Some(verdict) = looks.found(look) {
            return Ok(Some(verdict));
        }
        if looks.next().await? == Next::End {
            return Ok(None);
        }
    }
}

fn words(verdict: Option<&PersonVerdict>, session: SessionId) -> String {
    match verdict {
        Some(verdict) => format!("recorded: {}", verdict.in_words()),
        None => format!(
            "sent, not recorded yet: a worker records it when one runs (tarsy sessions show {}). A refused verdict \
             leaves no record: the log of the workers has the reason (tarsy::audit)",
            session.short()
        ),
    }
}

/// Prints every judged session, page by page.
async fn export(global: &GlobalArgs, args: VerdictsExportArgs) -> anyhow::Result<Exit> {
    let database = Database::new(global, "verdicts")?;
    let mut after = None;
    loop {
        let since = args.since.map(|moment| age(moment, Utc::now()));
        let judged = database
            .call(database.store.judged_sessions(after, since))
            .await?;
        let Some(last) = judged.last() else {
            return Ok(Exit::Done);
        };
        after = Some(last.session_id);
        for session in &judged {
            print(&[json_line(session)?])?;
        }
    }
}

/// The time from a moment to `now`; none for a moment of the future.
fn age(moment: Moment, now: DateTime<Utc>) -> Duration {
    match moment {
        Moment::Ago(age) => age,
        Moment::At(at) => (now - at).to_std().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use tarsy_core::verdicts::Rating;

    #[test]
    fn a_verdict_without_a_record_is_not_called_recorded() {
        let session = SessionId::parse("0199d3f2-0000-7000-8000-000000000001").unwrap();
        let sent = words(None, session);
        assert!(
            sent.starts_with("sent, not recorded yet: ") && sent.contains("tarsy::audit"),
            "{sent}"
        );
        let verdict = PersonVerdict {
            at: Utc::now(),
            person: "ana".to_owned(),
            channel: "cli".to_owned(),
            rating: Rating::Wrong,
            cause: None,
            action: None,
        };
        assert_eq!(
            words(Some(&verdict), session),
            "recorded: judged wrong by ana"
        );
    }

    #[test]
    fn a_moment_of_the_future_has_no_age() {
        let now = Utc::now();
        let hour = Duration::from_secs(3_600);
        assert_eq!(age(Moment::Ago(hour), now), hour);
        assert_eq!(age(Moment::At(now - TimeDelta::hours(1)), now), hour);
        assert_eq!(
            age(Moment::At(now + TimeDelta::hours(1)), now),
            Duration::ZERO
        );
    }
}
