//! Implements the ports [`WaitingCalls`] and [`Votes`]: requests for approvals, votes, and the parking of sessions.

use diesel::prelude::*;

use tarsy_core::approvals::RequestId;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{
    FreezeChange, Lease, Outcomes, Parking, RequestCounts, RequestFacts, Sessions, StoreError,
    Vote, VoteRecord, Votes, WaitingCalls,
};

use super::call::Operation;
use super::connect::Store;
use super::error::Error;
use super::fence::counted;
use super::reads::approvals::waiting::{
    self, CountRequests, ReadOutcomes, ReadRequestFacts, ReadWaiting, WaitingForPeople,
};
use super::writes::approvals::freeze::RecordFreeze;
use super::writes::approvals::park::Park;
use super::writes::approvals::vote::RecordVote;

impl WaitingCalls for Store {
    async fn outcomes(&self, session: SessionId) -> Result<Outcomes, StoreError> {
        let read = ReadOutcomes {
            session_id: session.0,
        };
        let rows = self
            .run(Operation::Approvals, move |connection| {
                read.read(connection)
            })
            .await?;
        waiting::outcomes(session, rows)
    }

    async fn request_counts(
        &self,
        session: SessionId,
        enough: u32,
    ) -> Result<RequestCounts, StoreError> {
        let read = CountRequests {
            session_id: session.0,
            enough: i64::from(enough),
        };
        let counts = self
            .run(Operation::Approvals, move |connection| {
                read.read(connection)
            })
            .await?;
        counts.ok_or_else(|| StoreError::Behind(format!("session {session} is gone")))
    }

    async fn park(&self, lease: Lease, seen: u32) -> Result<Parking, StoreError> {
        let write = Park::new(lease, seen);
        let parked = self
            .run(Operation::Release, move |connection| {
                write.write(connection)
            })
            .await?;
        counted("park", parked)
    }
}

impl Votes for Store {
    async fn request_facts(&self, request: RequestId) -> Result<Option<RequestFacts>, StoreError> {
        let read = ReadRequestFacts::new(request);
        Ok(self
            .run(Operation::Approvals, move |connection| {
                read.read(connection)
            })
            .await?)
    }

    async fn record_vote(&self, vote: Vote) -> Result<VoteRecord, StoreError> {
        let id = vote.id;
        let write = RecordVote::new(vote);
        let record = self
            .run(Operation::Vote, move |connection| write.write(connection))
            .await?;
        record.ok_or_else(|| {
            StoreError::Unavailable(format!("vote {id} is being recorded by another worker"))
        })
    }

    async fn record_requeue(
        &self,
        session: SessionId,
        stream_sequence: u64,
    ) -> Result<(), StoreError> {
        Sessions::requeued(self, session, stream_sequence).await
    }

    async fn record_freeze(&self, freeze: FreezeChange) -> Result<(), StoreError> {
        let write = RecordFreeze::new(freeze);
        let _changed: i64 = self
            .run(Operation::Vote, move |connection| {
                (&write).get_result(connection)
            })
            .await?;
        Ok(())
    }
}

impl Store {
    /// Counts the requests and sessions that wait for people now, for the gauges of a worker.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn waiting_for_people(&self) -> Result<WaitingForPeople, Error> {
        let read = ReadWaiting::default();
        self.run(Operation::Approvals, move |connection| {
            read.read(connection)
        })
        .await
    }
}
