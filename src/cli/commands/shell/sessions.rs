//! Completes session ids in a shell.

use std::ffi::OsStr;

use clap_complete::CompletionCandidate;

use super::proposals::{Proposal, candidates, stored};
use tarsy_core::ids::SessionId;
use tarsy_reports::words;
use tarsy_store::{SessionFilter, SessionLine};

/// The number of proposed sessions, the newest first.
const MAX_SESSIONS: u32 = 50;

/// The newest sessions whose id begins or ends as the word.
pub(super) fn named(word: &OsStr) -> Vec<CompletionCandidate> {
    let newest = stored(|database| async move {
        let filter = SessionFilter {
            limit: MAX_SESSIONS,
            ..SessionFilter::default()
        };
        Ok(database.store.list_sessions(filter).await?)
    });
    candidates(word, newest.into_iter().map(proposal).collect())
}

fn proposal(session: SessionLine) -> Proposal {
    Proposal {
        ids: ids(session.session_id),
        about: words::status_word(session.status.as_str()),
        title: session.title,
    }
}

/// The short id, or the whole one if the word is its beginning.
fn ids(session: SessionId) -> Vec<String> {
    vec![session.short(), session.to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_id_is_proposed_or_the_whole_one_that_was_begun() {
        let session = SessionId::parse("0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa").unwrap();
        for (word, expected) in [
            ("", vec!["77d0b3aa"]),
            ("77d", vec!["77d0b3aa"]),
            ("0198b2c4-5", vec!["0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa"]),
            ("9", vec![]),
        ] {
            let proposal = Proposal {
                ids: ids(session),
                about: String::new(),
                title: None,
            };
            let found: Vec<String> = candidates(OsStr::new(word), vec![proposal])
                .iter()
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
                .collect();
            assert_eq!(found, expected, "{word}");
        }
    }
}
