//! The number of messages of people that no worker has recorded.

use std::time::Duration;

use crate::connection::Nats;
use crate::error::{Error, within};
use crate::names::PEOPLE;

/// A login without the right to ask gets no answer.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Nats {
    /// The messages of people that wait: those that were never delivered, and those that could not be recorded yet.
    ///
    /// # Errors
    /// [`Error::NoStream`] where there is none for these messages, or when it cannot be read.
    pub async fn pending_of_people(&self) -> Result<u64, Error> {
        let read = self.find_stream(PEOPLE);
        let info = within(TIMEOUT, format!("{PEOPLE} gave no answer"), read).await?;
        let info = info.ok_or_else(|| Error::NoStream(PEOPLE.to_owned()))?;
        Ok(info.state.messages)
    }
}
