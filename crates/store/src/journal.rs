//! Implements the port [`Journal`]: the reads of a resumed run and the three fenced writes of a lease holder.

use std::collections::BTreeMap;

use uuid::Uuid;

use tarsy_core::alert_update::NumberedUpdate;
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::execution::recovery::LostCall;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::skills::TextHash;
use tarsy_engine::ports::{
    Appended, Checkpoint, Journal, Lease, RecordedAttempts, SessionEnd, SessionRecord, SessionStep,
    StoreError, StoredResult, Timeline,
};

use super::call::Operation;
use super::connect::Store;
use super::fence::counted;
use super::reads::attempts::ReadAttempts;
use super::reads::{alert_updates, record, result};
use super::writes::approvals::checkpoint::WriteCheckpoint;
use super::writes::finish::Finish;
use super::writes::notify::PlannedRows;
use super::writes::recover::{self, Loss};
use super::writes::step::Step;

impl Journal for Store {
    async fn load(&self, session: SessionId) -> Result<SessionRecord, StoreError> {
        let stored = self
            .run(Operation::Session, move |connection| {
                record::session(connection, session.0)
            })
            .await?;
        stored
            .ok_or_else(|| StoreError::Conflict(format!("no session {session}")))?
            .decoded()
    }

    async fn entries(
        &self,
        session: SessionId,
        execution: ExecutionId,
    ) -> Result<Vec<RecordedEntry>, StoreError> {
        let rows = self
            .run(Operation::Entries, move |connection| {
                record::journal(connection, session.0, execution.0)
            })
            .await?;
        record::decoded(rows)
    }

    async fn attempts(
        &self,
        session: SessionId,
        execution: ExecutionId,
    ) -> Result<RecordedAttempts, StoreError> {
        let read = ReadAttempts::new(session, execution);
        Ok(self
            .run(Operation::Attempts, move |connection| read.read(connection))
            .await?)
    }

    async fn result(
        &self,
        session: SessionId,
        timeline: Timeline,
        event: u32,
    ) -> Result<Option<StoredResult>, StoreError> {
        Ok(self
            .run(Operation::Result, move |connection| {
                result::result(connection, session, timeline, event)
            })
            .await?)
    }

    async fn skill_texts(
        &self,
        hashes: Vec<TextHash>,
    ) -> Result<BTreeMap<TextHash, String>, StoreError> {
        Ok(self.read_skill_texts(hashes).await?)
    }

    async fn alert_updates(
        &self,
        session: SessionId,
        after: u32,
    ) -> Result<Vec<NumberedUpdate>, StoreError> {
        let rows = self.run(Operation::AlertUpdates, move |connection| {
            alert_updates::read(connection, session, after)
        });
        alert_updates::decoded(rows.await?)
    }

    async fn append(&self, lease: Lease, checkpoint: Checkpoint) -> Result<Appended, StoreError> {
        let has_requests = !checkpoint.asked.is_empty() || !checkpoint.closed.is_empty();
        let notifications = if checkpoint.asked.is_empty() {
            PlannedRows::default()
        } else {
            self.outgoing.of_request().into()
        };
        let write = WriteCheckpoint::new(lease, checkpoint, notifications)?;
        let written = self
            .run(Operation::Checkpoint, move |connection| {
                write.write(connection)
            })
            .await?;
        if has_requests {
            self.outgoing.has_changed();
        }
        counted("checkpoint", written)
            .map(|committed| self.tails.pass_on(lease.session_id, committed))
    }

    async fn step(&self, lease: Lease, step: SessionStep) -> Result<(), StoreError> {
        let write = Step::new(lease, step);
        let written = self
            .run(Operation::Step, move |connection| write.write(connection))
            .await?;
        counted("step", written).map(|committed| self.tails.pass_on(lease.session_id, committed))
    }

    async fn finish(&self, lease: Lease, end: SessionEnd) -> Result<(), StoreError> {
        let write = Finish::new(lease, end, self.link(lease.session_id));
        let written = self
            .run(Operation::Finish, move |connection| write.write(connection))
            .await?;
        self.outgoing.has_changed();
        counted("finish", written).map(|committed| self.tails.pass_on(lease.session_id, committed))
    }

    async fn remember(&self, session: SessionId, calls: Vec<LostCall>) -> Result<(), StoreError> {
        // Chosen once, so that a repeated call stores the loss once.
        let id = Uuid::new_v4();
        let stored = self.run(Operation::Recover, move |connection| {
            let loss = Loss {
                id,
                kept: None,
                restored: 0,
                calls: &calls,
            };
            recover::remember(connection, session, &loss)
        });
        Ok(stored.await?)
    }
}
