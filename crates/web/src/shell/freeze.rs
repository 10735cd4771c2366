//! The freeze of all changes, as every page names it.

use maud::{Markup, html};

use super::visibly::visibly;
use super::words::{brief, moment};
use crate::ports::MAX_REASON;
use tarsy_reports::FreezeReport;

/// The banner of every page while changes are frozen.
pub(crate) fn banner(freeze: &FreezeReport) -> Markup {
    html! {
        p.banner.frozen { a href="/approvals" { "All changes are frozen" } " " (terms(freeze)) }
    }
}

/// By whom, since when, until when, and why.
pub(crate) fn terms(freeze: &FreezeReport) -> Markup {
    html! {
        "by " (brief(&freeze.person, 120)) " since " (moment(freeze.at)) ", "
        @match freeze.until { Some(until) => { "until " (moment(until)) } None => "until a person ends it" }
        @if let Some(reason) = &freeze.reason { ": " (visibly(&brief_visible(reason))) } @else { "." }
    }
}

/// The beginning of a reason, in one line.
fn brief_visible(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_REASON).collect()
}
