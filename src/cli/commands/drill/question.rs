//! `tarsy drill --ask`: a question about the investigation, when it is over.

use serde_json::json;
use uuid::Uuid;

use crate::cli::commands::output::note;
use crate::cli::commands::watch::follow::{Sources, Target};
use crate::cli::commands::write_error;
use crate::cli::exit::Exit;
use crate::cli::watch::{Options, TimelineItem};
use tarsy_bus::{NewAlert, PARENT_ID, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

/// Asks a question about the investigation, shows the session that answers it, and checks that it has an answer.
pub(super) async fn ask(
    sources: &Sources,
    parent: SessionId,
    question: &str,
    options: Options,
) -> anyhow::Result<Exit> {
    let session = SessionId(Uuid::now_v7());
    let alert = NewAlert {
        priority: Priority::Critical,
        suffix: "drill".parse().ok(),
        body: question.as_bytes().to_vec(),
        headers: json!({SESSION_ID: session, PARENT_ID: parent}),
    };
    sources.nats.publish_question(alert).await?;
    note(&format!("\nA question: {question}\n"))?;
    let mut seen = Vec::new();
    let target = Target {
        session,
        queue: None,
    };
    let showing = sources.show(target, options, |item| {
        if let TimelineItem::Event(event) = item {
            seen.push(event.event_type.clone());
        }
        Ok(())
    });
    let exit = showing.await?;
    let wanted = [EventType::UserQuestion, EventType::FinalAnalysis];
    let missing: Vec<_> = wanted
        .iter()
        .filter(|wanted| !seen.contains(wanted))
        .collect();
    for event in &missing {
        write_error(&format!("the question: no event {event}"));
    }
    let unanswered = exit == Exit::Done && !missing.is_empty();
    Ok(if unanswered { Exit::Failed } else { exit })
}
