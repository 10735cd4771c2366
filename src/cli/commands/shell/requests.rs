//! Completes the ids of calls that wait for a person in a shell.

use std::ffi::OsStr;

use clap_complete::CompletionCandidate;

use super::proposals::{Proposal, candidates, stored};
use crate::cli::render::tables::approvals;
use tarsy_reports::{ApprovalFilter, ApprovalRow};

/// The number of proposed requests, the oldest first.
const MAX_REQUESTS: u32 = 50;

/// The open requests whose id begins as the word.
pub(super) fn named(word: &OsStr) -> Vec<CompletionCandidate> {
    let open = stored(|database| async move {
        let filter = ApprovalFilter {
            limit: MAX_REQUESTS,
            ..ApprovalFilter::default()
        };
        Ok(database.store.approvals(filter).await?)
    });
    candidates(word, open.into_iter().map(proposal).collect())
}

fn proposal(row: ApprovalRow) -> Proposal {
    Proposal {
        ids: vec![approvals::id(&row)],
        about: row.tool,
        title: row.title,
    }
}
