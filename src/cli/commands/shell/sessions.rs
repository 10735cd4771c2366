//! Completes session ids in a shell.

use std::ffi::OsStr;
use std::time::Duration;

use clap::Parser as _;
use clap_complete::CompletionCandidate;

use crate::cli::args::Cli;
use crate::cli::commands::database::Database;
use crate::cli::commands::with_address_files;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::{Charset, one_line};
use tarsy_reports::words;
use tarsy_store::{SessionFilter, SessionLine};

/// The number of proposed sessions, the newest first.
const MAX_SESSIONS: u32 = 50;
/// A person waits at the keyboard.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The newest sessions whose id begins or ends as the word; none if the database does not answer in time.
pub(super) fn named(word: &OsStr) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else {
        return Vec::new();
    };
    newest()
        .unwrap_or_default()
        .iter()
        .enumerate()
        .filter_map(|(order, session)| candidate(word, session, order))
        .collect()
}

fn newest() -> anyhow::Result<Vec<SessionLine>> {
    // The addresses are those of the environment: a shell does not tell the options before the word.
    let global = with_address_files(Cli::try_parse_from(["tarsy", "queue"])?.global)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let found = runtime.block_on(async {
        let database = Database::new(&global, "completion")?;
        let filter = SessionFilter {
            limit: MAX_SESSIONS,
            ..SessionFilter::default()
        };
        anyhow::Ok(tokio::time::timeout(TIMEOUT, database.store.list_sessions(filter)).await??)
    });
    // A call that hangs must not keep the shell waiting.
    runtime.shutdown_background();
    found
}

fn candidate(word: &str, session: &SessionLine, order: usize) -> Option<CompletionCandidate> {
    let title = session.title.as_deref().unwrap_or("(no title)");
    let title = one_line(title, Charset::Unicode);
    let help = format!("{}: {title}", words::status_word(session.status.as_str()));
    Some(
        CompletionCandidate::new(proposed(word, session.session_id)?)
            .help(Some(help.into()))
            .display_order(Some(order)),
    )
}

/// The short id, or the whole one if the word is its beginning.
fn proposed(word: &str, session: SessionId) -> Option<String> {
    [session.short(), session.to_string()]
        .into_iter()
        .find(|id| id.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_id_is_proposed_or_the_whole_one_that_was_begun() {
        let session = SessionId::parse("0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa").unwrap();
        for (word, expected) in [
            ("", Some("77d0b3aa")),
            ("77d", Some("77d0b3aa")),
            ("0198b2c4-5", Some("0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa")),
            ("9", None),
        ] {
            assert_eq!(proposed(word, session).as_deref(), expected, "{word}");
        }
    }
}
