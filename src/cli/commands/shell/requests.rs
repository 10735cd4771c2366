//! Completes the ids of calls that wait for a person in a shell.

use std::ffi::OsStr;
use std::time::Duration;

use clap::Parser as _;
use clap_complete::CompletionCandidate;

use crate::cli::args::Cli;
use crate::cli::commands::database::Database;
use crate::cli::commands::with_address_files;
use crate::cli::render::tables::approvals;
use tarsy_core::readable::text::{Charset, one_line};
use tarsy_reports::{ApprovalFilter, ApprovalRow};

/// The number of proposed requests, the oldest first.
const MAX_REQUESTS: u32 = 50;
/// A person waits at the keyboard.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The open requests whose id begins as the word; none if the database does not answer in time.
pub(super) fn named(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_str().unwrap_or_default();
    let open = open().unwrap_or_default();
    let candidates = open.iter().enumerate().filter_map(|(order, row)| {
        let id = approvals::id(row);
        let title = one_line(
            row.title.as_deref().unwrap_or("(no title)"),
            Charset::Unicode,
        );
        let help = format!("{}: {title}", row.tool);
        let candidate = CompletionCandidate::new(&id).help(Some(help.into()));
        id.starts_with(word)
            .then(|| candidate.display_order(Some(order)))
    });
    candidates.collect()
}

fn open() -> anyhow::Result<Vec<ApprovalRow>> {
    // The addresses are those of the environment: a shell does not tell the options before the word.
    let global = with_address_files(Cli::try_parse_from(["tarsy", "queue"])?.global)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let found = runtime.block_on(async {
        let database = Database::new(&global, "completion")?;
        let filter = ApprovalFilter {
            limit: MAX_REQUESTS,
            ..ApprovalFilter::default()
        };
        anyhow::Ok(tokio::time::timeout(TIMEOUT, database.store.approvals(filter)).await??)
    });
    // A call that hangs must not keep the shell waiting.
    runtime.shutdown_background();
    found
}
