//! `tarsy drill --again`: the same alert once more. The second investigation is shown the first one, in its prompt and
//! on its page.

use anyhow::Context as _;
use serde_json::json;
use uuid::Uuid;

use super::{alert_of, report_faults};
use crate::cli::commands::output::note;
use crate::cli::commands::watch::follow::{Sources, Target};
use crate::cli::exit::Exit;
use crate::cli::watch::Options;
use tarsy_bus::{FINGERPRINT, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::FORCE;
use tarsy_core::past::given_in;
use tarsy_drill::Drill;
use tarsy_engine::ports::Journal as _;
use tarsy_reports::SeenBefore;

/// The fingerprint of the alerts of a drill: each drill has its own, so that it does not join the session of an earlier
/// one.
pub(super) fn fingerprint(first: SessionId) -> String {
    format!("drill {first}")
}

/// Investigates the alert of the first session again, and prints where the first one is shown.
pub(super) async fn run(
    sources: &Sources,
    drill: &Drill,
    first: SessionId,
    options: Options,
) -> anyhow::Result<Exit> {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session, FINGERPRINT: fingerprint(first), FORCE: "true"});
    sources.nats.publish_alert(alert_of(drill, headers)).await?;
    note(&format!(
        "\nThe same alert again, as session {}; the first was {}\n",
        session.short(),
        first.short()
    ))?;
    let target = Target {
        session,
        queue: None,
    };
    let exit = sources.show(target, options, |_| Ok(())).await?;
    if exit != Exit::Done {
        return Ok(exit);
    }
    let store = sources.store.as_ref().context("no database")?;
    let plan = store.load(session).await?.plan;
    let mut agents = plan.stages.iter().flat_map(|stage| &stage.agents);
    let given = agents.find_map(|agent| given_in(&agent.user_prompt));
    let report = store.report(session).await?;
    let seen = report.and_then(|report| report.seen_before);
    let faults = faults(first, given, seen.as_ref());
    report_faults(drill, &faults);
    if !faults.is_empty() {
        return Ok(Exit::Failed);
    }
    note("\nBehind the alert, the model was shown:\n")?;
    for line in given.unwrap_or_default().lines() {
        note(&format!("  {line}"))?;
    }
    if let Some(seen) = seen {
        note(&format!(
            "\nIts page, its report and `tarsy sessions past {}` say \"Seen before\": {}, in session {}",
            session.short(),
            seen.in_words(),
            first.short()
        ))?;
    }
    Ok(Exit::Done)
}

/// The places in which the first investigation is missing.
fn faults(first: SessionId, given: Option<&str>, seen: Option<&SeenBefore>) -> Vec<String> {
    let short = first.short();
    let is_given = given.is_some_and(|given| given.contains(&format!("session {short}")));
    let is_seen = seen.is_some_and(|seen| {
        let mut sessions = seen.sessions.iter();
        sessions.any(|session| session.session_id == first)
    });
    let places = [
        (is_given, "the prompt of the second investigation"),
        (is_seen, "the report of the second investigation"),
    ];
    places
        .into_iter()
        .filter(|(is_there, _)| !is_there)
        .map(|(_, place)| format!("{place} does not name session {short}"))
        .collect()
}
