//! The number of messages of people that no worker has recorded.

use crate::connection::{Nats, REQUEST_TIMEOUT};
use crate::error::Error;
use crate::names::PEOPLE;
use crate::stream::get::stream_info;

impl Nats {
    /// The messages of people that wait: those that were never delivered, and those that could not be recorded yet.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub async fn pending_of_people(&self) -> Result<u64, Error> {
        let info = stream_info(self, PEOPLE, REQUEST_TIMEOUT).await?;
        Ok(info.state.messages)
    }
}
