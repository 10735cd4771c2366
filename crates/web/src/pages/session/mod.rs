//! The page of one session: header, answer, questions, timeline, with the alert in a sidebar. The answer comes before
//! the steps that led to it.

mod head;
mod answer;
mod without_session;
mod thread;
mod sidebar;
mod lanes;
mod timeline;
mod waiting;
mod verdict;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::approvals;
use super::steps::View;
use crate::shell::rest_mark;
use crate::shell::viewer::Viewer;
use crate::shell::words::NO_TITLE;
use tarsy_core::chain::RunStatus;
use tarsy_core::timeline::TimelineEvent;
use tarsy_reports::{AlertReport, ApprovalRow, DispositionKind, SessionReport};

pub(crate) use timeline::{range, timeline};
pub(crate) use verdict::verdict_sent;
pub(crate) use waiting::{Waiting, waiting};

/// The content of a session's page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session<'a> {
    pub report: &'a AlertReport,
    pub(crate) viewer: &'a Viewer,
    /// The requests for approvals of its calls.
    pub approvals: &'a [ApprovalRow],
    pub now: DateTime<Utc>,
}

/// The events of the page, and which of them it shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Events<'a> {
    pub events: &'a [TimelineEvent],
    /// The numbers of those whose contents are cut.
    pub cut: &'a BTreeSet<u32>,
    pub view: View,
    /// `None`: all of them.
    pub(crate) span: Option<Span>,
}

/// A span of event numbers, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub from: u32,
    pub to: u32,
}

impl Events<'_> {
    /// Whether all events are there, in their steps.
    fn is_whole(&self) -> bool {
        self.view == View::Steps && self.span.is_none()
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(report: &'a AlertReport, viewer: &'a Viewer) -> Self {
        Self {
            report,
            viewer,
            approvals: &[],
            now: Utc::now(),
        }
    }
}

impl Session<'_> {
    /// Whether something may follow.
    pub(crate) fn is_open(&self) -> bool {
        match &self.report.session {
            Some(session) => session.status == RunStatus::Running,
            None => without_session::is_waiting(self.report),
        }
    }

    /// Whether the viewer may have it investigated again.
    pub(crate) fn offers_rerun(&self) -> bool {
        let is_over = match &self.report.session {
            Some(session) => session.status != RunStatus::Running,
            None => self.report.disposition == DispositionKind::Ended,
        };
        is_over && self.viewer.access.may_rerun
    }

    /// The name of the page.
    pub(crate) fn title(&self) -> &str {
        self.report.title.as_deref().unwrap_or(NO_TITLE)
    }
}

/// The page below its bar, without the timeline, whose place [`rest_mark`] keeps: head and answer are sent before the
/// events are read.
pub(crate) fn session(page: &Session<'_>) -> Markup {
    html! {
        (head::head(page))
        div.cols {
            div.main {
                div #banner role="status" {}
                (approvals::of_session(page.approvals, page.now))
                (answer::section(page))
                (verdict::section(page))
                (thread::section(page))
                (rest_mark())
            }
            (sidebar::sidebar(page))
        }
    }
}

/// The last number that a citation may have.
fn last_event(session: Option<&SessionReport>) -> u32 {
    session
        .and_then(|session| u32::try_from(session.last_seq).ok())
        .unwrap_or_default()
}
