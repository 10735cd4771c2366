//! The faults of single checkpoints.

use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::Text;

use crate::support::postgres::TestDatabase;

/// Sleeps inside the checkpoint's statement, when it holds both of its locks.
pub(super) const STALLS: &str = "
    CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(substr(NEW.content, 7)::float8); RETURN NEW; END $$;
    CREATE TRIGGER stall BEFORE INSERT ON entries FOR EACH ROW WHEN (NEW.content LIKE 'stall %') EXECUTE FUNCTION stall()";

/// The fault of one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    Plain,
    /// The statement sleeps while it holds its locks.
    Stalled,
    /// The statement takes effect; its reply is lost.
    ReplyLost,
    /// The backend is terminated at about the time that the statement runs.
    BackendKilled,
    /// The statement is sent on two connections at once.
    SentTwice,
}

impl Fault {
    pub(super) fn random() -> Self {
        match fastrand::u32(0..1000) {
            0..6 => Self::Stalled,
            6..30 => Self::ReplyLost,
            30..46 => Self::BackendKilled,
            46..76 => Self::SentTwice,
            _ => Self::Plain,
        }
    }

    /// Whether the writer may get no answer, so that a takeover can come before its next try.
    pub(super) fn leaves_the_outcome_open(self) -> bool {
        match self {
            Self::Plain | Self::Stalled => false,
            Self::ReplyLost | Self::BackendKilled | Self::SentTwice => true,
        }
    }
}

/// Ends the backends of one application, up to 3 ms from now.
pub(super) async fn terminate(database: &TestDatabase, application: &str) {
    let delay = Duration::from_micros(fastrand::u64(0..3000));
    tokio::time::sleep(delay).await; // the time of the fault: anywhere within a write
    let (mut connection, application) = (database.connection(), application.to_owned());
    tokio::task::spawn_blocking(move || {
        diesel::sql_query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
        )
        .bind::<Text, _>(application)
        .execute(&mut connection)
        .expect("to terminate");
    })
    .await
    .expect("the termination");
}
