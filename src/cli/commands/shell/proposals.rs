//! Proposals for a word that a person begins in a shell: ids that the database has.

use std::ffi::OsStr;
use std::time::Duration;

use clap::Parser as _;
use clap_complete::CompletionCandidate;

use crate::cli::args::Cli;
use crate::cli::commands::database::Database;
use crate::cli::commands::with_address_files;
use tarsy_core::readable::text::{Charset, one_line};

/// A person waits at the keyboard.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Something that a word may name.
pub(super) struct Proposal {
    /// Its ids, the one that is proposed first before the others.
    pub(super) ids: Vec<String>,
    /// The state or the tool, which stands before the title.
    pub(super) about: String,
    pub(super) title: Option<String>,
}

/// Those with an id that begins as the word, in their order.
pub(super) fn candidates(word: &OsStr, proposals: Vec<Proposal>) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else {
        return Vec::new();
    };
    let numbered = proposals.into_iter().enumerate();
    numbered
        .filter_map(|(order, proposal)| candidate(word, &proposal, order))
        .collect()
}

fn candidate(word: &str, proposal: &Proposal, order: usize) -> Option<CompletionCandidate> {
    let id = proposal.ids.iter().find(|id| id.starts_with(word))?;
    let title = proposal.title.as_deref().unwrap_or("(no title)");
    let title = one_line(title, Charset::Unicode);
    let help = format!("{}: {title}", proposal.about);
    Some(
        CompletionCandidate::new(id)
            .help(Some(help.into()))
            .display_order(Some(order)),
    )
}

/// The rows that `read` finds; none if the database does not answer in time.
pub(super) fn stored<T, F>(read: impl FnOnce(Database) -> F) -> Vec<T>
where
    F: Future<Output = anyhow::Result<Vec<T>>>,
{
    answered(read).unwrap_or_default()
}

fn answered<T, F>(read: impl FnOnce(Database) -> F) -> anyhow::Result<Vec<T>>
where
    F: Future<Output = anyhow::Result<Vec<T>>>,
{
    // The addresses are those of the environment: a shell does not tell the options before the word.
    let global = with_address_files(Cli::try_parse_from(["tarsy", "queue"])?.global)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let found = runtime.block_on(async {
        let database = Database::new(&global, "completion")?;
        tokio::time::timeout(TIMEOUT, read(database)).await?
    });
    // A call that hangs must not keep the shell waiting.
    runtime.shutdown_background();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_that_begins_as_the_word_is_proposed_and_titles_are_one_line() {
        let proposals = || {
            vec![
                Proposal {
                    ids: vec!["77d0b3aa".to_owned(), "0198b2c4-5d6e".to_owned()],
                    about: "running".to_owned(),
                    title: Some("disk\nfull".to_owned()),
                },
                Proposal {
                    ids: vec!["77d0b3aa:42".to_owned()],
                    about: "k8s.restart".to_owned(),
                    title: None,
                },
            ]
        };
        for (word, expected) in [
            ("", vec!["77d0b3aa", "77d0b3aa:42"]),
            ("77d0b3aa:", vec!["77d0b3aa:42"]),
            ("0198", vec!["0198b2c4-5d6e"]),
            ("9", vec![]),
        ] {
            let found = candidates(OsStr::new(word), proposals());
            let values: Vec<String> = found
                .iter()
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
                .collect();
            assert_eq!(values, expected, "{word}");
        }
        let helps: Vec<String> = candidates(OsStr::new(""), proposals())
            .iter()
            .map(|candidate| candidate.get_help().unwrap().to_string())
            .collect();
        assert_eq!(helps, ["running: disk full", "k8s.restart: (no title)"]);
    }
}
