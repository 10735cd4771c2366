//! The end of every command that publishes an alert or a question: prints the session's id, or follows its timeline.

use serde_json::{Value, json};

use super::link;
use super::output::{add, note, print, print_json};
use super::watch::follow::{Sources, Target};
use super::watch::waiting::QueuePlace;
use crate::cli::args::GlobalArgs;
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::view::{TerminalEnv, ViewArgs};
use tarsy_bus::{Priority, Published};
use tarsy_core::ids::SessionId;

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
    /// Prints where the session is queued, then follows it to its end if there are sources, else prints its id.
    ///
    /// # Errors
    /// When the output cannot be written, or the timeline breaks off.
    pub(super) async fn finish(
        self,
        global: &GlobalArgs,
        sources: Option<Sources>,
        view: &ViewArgs,
    ) -> anyhow::Result<Exit> {
        note(&self.remark())?;
        if let Some(sources) = sources {
            let target = Target {
                session: self.session,
                queue: Some(QueuePlace::Alert {
                    priority: self.priority,
                    sequence: self.published.sequence,
                }),
            };
            return sources
                .show(target, view.options(&TerminalEnv::of_process()), |_| Ok(()))
                .await;
        }
        let link = link(global, self.session);
        if view.json {
            print_json(&self.json(link))?;
        } else {
            print(&[self.session.to_string()])?;
            note(&format!("Watch: tarsy watch {}", self.session.short()))?;
            if let Some(link) = &link {
                note(&messages::link(link))?;
            }
        }
        Ok(Exit::Done)
    }

    /// The remark on the published message: its subject, its sequence and the session.
    pub(super) fn remark(&self) -> String {
        let published = messages::published(
            &self.published.subject,
            self.published.sequence,
            self.session,
        );
        match &self.origin {
            Some(Origin { session, words, .. }) => {
                format!("{published}; {words} {}", session.short())
            }
            None => published,
        }
    }

    fn json(&self, link: Option<String>) -> Value {
        let Published { subject, sequence } = &self.published;
        let mut json =
            json!({"session_id": self.session, "subject": subject, "stream_sequence": sequence});
        if let Some(origin) = &self.origin {
            add(&mut json, origin.key, origin.session.to_string());
        }
        if let Some(link) = link {
            add(&mut json, "url", link);
        }
        json
    }
}
