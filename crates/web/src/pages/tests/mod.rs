//! Tests of the pages without a browser: what they show, that no text becomes markup, and how large they are.

mod approvals;
mod branches;
mod calls;
mod rows;
mod screens;
mod search;
mod submit;
mod system;
mod hostile;
mod sizes;

use std::collections::BTreeSet;

use super::session::{Events, Session, session, timeline};
use super::steps::View;
use crate::shell::viewer::Viewer;
use crate::shell::{Frame, NavEntry, page, split};
use crate::testing::data::at;
use tarsy_core::timeline::TimelineEvent;
use tarsy_reports::AlertReport;

/// The whole page of a session, in its two parts.
struct Shown {
    first: String,
    second: String,
}

impl Shown {
    fn whole(&self) -> String {
        format!("{}{}", self.first, self.second)
    }
}

fn shown(report: &AlertReport, events: &[TimelineEvent]) -> Shown {
    shown_to(report, events, &Viewer::default())
}

fn shown_to(report: &AlertReport, events: &[TimelineEvent], viewer: &Viewer) -> Shown {
    let of = Session {
        report,
        viewer,
        approvals: &[],
        now: at(7),
    };
    let whole = page(
        &Frame::plain(of.title(), NavEntry::Session),
        viewer,
        &session(&of),
    )
    .into_string();
    let halves = split(&whole).unwrap();
    let events = Events {
        events,
        cut: &BTreeSet::new(),
        view: View::Steps,
        span: None,
    };
    let rows = timeline(&of, &events).into_string();
    Shown {
        first: halves.first.to_owned(),
        second: rows + halves.rest,
    }
}
