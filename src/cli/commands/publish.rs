//! The end of every command that publishes an alert or a question: prints the session's id, or follows its timeline.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::output::{note, print, print_json};
use super::watch::follow::{Sources, Target};
use super::watch::waiting::QueueWatch;
use crate::bus::{Nats, Priority, Published};
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::view::{TerminalEnv, ViewArgs};
use crate::investigation::ids::SessionId;
use crate::store::Store;

/// An alert or a question that the stream has stored.
pub(super) struct PublishedSession {
    pub(super) session: SessionId,
    pub(super) published: Published,
    pub(super) priority: Priority,
    /// Another session that this one refers to.
    pub(super) origin: Option<Origin>,
}

/// A session that a published alert or question refers to.
pub(super) struct Origin {
    /// The key in the JSON output.
    pub(super) key: &'static str,
    pub(super) session: SessionId,
    /// The words before the id in the remark.
    pub(super) words: &'static str,
}

impl PublishedSession {
    /// Prints where the session is queued, and its id.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(super) fn print(&self, view: &ViewArgs) -> anyhow::Result<Exit> {
        note(&self.remark())?;
        if view.json {
            print_json(&self.json())?;
        } else {
            print(&[self.session.to_string()])?;
            note(&format!("Watch: tarsy watch {}", self.session.short()))?;
        }
        Ok(Exit::Done)
    }

    /// Prints where the session is queued, then follows it to its end.
    ///
    /// # Errors
    /// When the output cannot be written, or the timeline breaks off.
    pub(super) async fn follow(self, nats: Nats, store: Option<Arc<Store>>, view: &ViewArgs) -> anyhow::Result<Exit> {
        note(&self.remark())?;
        let queue = QueueWatch::of_alert(&nats, self.priority, self.published.sequence);
        let target = Target { session: self.session, queue: Some(queue) };
        Sources { nats, store }.show(target, view.options(&TerminalEnv::of_process()), |_| Ok(())).await
    }

    fn remark(&self) -> String {
        let published = messages::published(&self.published.subject, self.published.sequence, self.session);
        match &self.origin {
            Some(Origin { session, words, .. }) => format!("{published}; {words} {}", session.short()),
            None => published,
        }
    }

    fn json(&self) -> Value {
        let mut json = Map::new();
        json.insert("session_id".to_owned(), self.session.to_string().into());
        if let Some(Origin { key, session, .. }) = &self.origin {
            json.insert((*key).to_owned(), session.to_string().into());
        }
        json.insert("subject".to_owned(), self.published.subject.as_str().into());
        json.insert("stream_sequence".to_owned(), self.published.sequence.into());
        Value::Object(json)
    }
}
