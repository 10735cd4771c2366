//! Implements the port [`RecordVerdict`].

use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use uuid::Uuid;

use tarsy_core::verdicts::MAX_VERDICTS;
use tarsy_engine::ports::{NewVerdict, RecordVerdict, StoreError, VerdictRecord, VerdictRefusal};

use crate::call::Operation;
use crate::connect::Store;
use crate::rows::nul;
use crate::statement::statement;

pub(crate) struct WriteVerdict {
    id: Uuid,
    session_id: Uuid,
    person: String,
    account: String,
    channel: String,
    verdict: String,
    cause: Option<String>,
    action: Option<String>,
    max: i64,
}

statement!(WriteVerdict, "verdict_record.sql" -> (Text, Nullable<Text>), [
    id, session_id, person, account, channel, verdict, cause, action, max,
]);

impl WriteVerdict {
    fn new(verdict: NewVerdict) -> Self {
        Self {
            id: verdict.id,
            session_id: verdict.session.0,
            person: nul::replace(verdict.person),
            account: nul::replace(verdict.account),
            channel: verdict.channel.as_str().to_owned(),
            verdict: verdict.rating.as_str().to_owned(),
            cause: verdict.cause.map(nul::replace),
            action: verdict.action.map(nul::replace),
            max: i64::from(MAX_VERDICTS),
        }
    }
}

impl RecordVerdict for Store {
    async fn record_verdict(&self, verdict: NewVerdict) -> Result<VerdictRecord, StoreError> {
        let write = WriteVerdict::new(verdict);
        let row: (String, Option<String>) = self
            .run(Operation::Vote, move |connection| {
                (&write).get_result(connection)
            })
            .await?;
        Ok(record(&row.0, row.1))
    }
}

/// The outcome by the word of the statement.
fn record(word: &str, chain: Option<String>) -> VerdictRecord {
    let refusal = VerdictRefusal::ALL
        .into_iter()
        .find(|refusal| refusal.as_str() == word);
    match refusal {
        Some(refusal) => VerdictRecord::Refused(refusal),
        None if word == "recorded" => VerdictRecord::Recorded(chain.unwrap_or_default()),
        None => VerdictRecord::Repeated,
    }
}
