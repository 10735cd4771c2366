//! `tarsy ask`: asks a question about an ended investigation. A separate session answers it.

use std::path::Path;

use serde_json::json;
use uuid::Uuid;

use super::database::Database;
use super::publish::{Origin, PublishedSession};
use super::watch::follow::Sources;
use super::{addresses, load_config, sessions, submit};
use crate::admin::publishing::questions;
use crate::cli::args::{AskArgs, GlobalArgs};
use crate::cli::exit::Exit;
use tarsy_bus::{CHAIN, NewAlert, PARENT_ID, Priority, SESSION_ID, TRACEPARENT};
use tarsy_core::ids::SessionId;

pub(super) async fn run(global: &GlobalArgs, args: AskArgs) -> anyhow::Result<Exit> {
    let body = body(&args.question.join(" "))?;
    submit::check_chain(&load_config(global)?, args.chain.as_deref())?;
    let database = Database::new(global, "ask")?;
    let (_, report) = sessions::read(&database, &args.session).await?;
    let parent = questions::may_ask(&report).map_err(anyhow::Error::msg)?;
    let nats = addresses(global).nats_for_command("ask").await?;
    let session = SessionId(Uuid::now_v7());
    let headers = json!({
        SESSION_ID: session, PARENT_ID: parent, CHAIN: args.chain, TRACEPARENT: submit::caller(),
    });
    let priority = args
        .priority
        .map_or_else(|| questions::urgency(&report), Priority::from);
    let question = NewAlert {
        priority,
        suffix: Some(questions::SUFFIX.parse()?),
        body,
        headers,
    };
    let published = nats.publish_question(question).await?;
    let origin = Some(Origin {
        key: "parent_id",
        session: parent,
        words: "asks about",
    });
    let sources = (!args.no_watch).then(|| Sources::new(global, nats, Some(database.store)));
    PublishedSession {
        session,
        published,
        priority,
        origin,
    }
    .finish(global, sources, &args.view)
    .await
}

/// The bytes of the question: the argument, or standard input.
fn body(question: &str) -> anyhow::Result<Vec<u8>> {
    let body = if question == "-" {
        submit::read(Path::new("-"))?
    } else {
        question.as_bytes().to_vec()
    };
    questions::check_text(&body).map_err(anyhow::Error::msg)?;
    Ok(body)
}
