//! The conversation for the next request, and the entries that its messages are made from.

use super::State;
use crate::execution::conversation::{self, Message};
use crate::execution::entry::Entry;

/// The entry that a message is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSource {
    /// The number of the entry in the journal, from 1.
    pub entry: u32,
    /// The number of its event, if it is a result.
    pub event: Option<u32>,
    pub form: MessageForm,
}

/// The part of an entry that its message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageForm {
    Whole,
    /// A note stands in the place of the result.
    Blanked,
    /// A summary stands in the place of the result.
    Summarised,
}

impl State {
    /// The conversation so far, for the next request.
    pub fn messages(&self) -> Vec<Message> {
        self.naming_refused(conversation::messages(
            &self.entries,
            &self.options,
            self.window.blanked(),
        ))
    }

    /// The entries of [`Self::messages`], in the same order: those with a role.
    pub(crate) fn message_sources(&self) -> Vec<MessageSource> {
        let blanked = self.window.blanked();
        let form = |entry: u32, of: &Entry, summary: Option<usize>| match summary {
            _ if of.result().is_some() && blanked.covers(entry, of) => MessageForm::Blanked,
            Some(_) => MessageForm::Summarised,
            None => MessageForm::Whole,
        };
        let entries = (1_u32..)
            .zip(self.entries.iter().zip(&self.options))
            .filter(|(_, (of, _))| of.role().is_some());
        entries
            .map(|(entry, (of, options))| MessageSource {
                entry,
                event: options.event,
                form: form(entry, of, options.summary),
            })
            .collect()
    }
}
