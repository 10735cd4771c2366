//! The pages of approvals: the list, one request with its form, the section of a session's page, and the freeze of all
//! changes.

mod arguments;
mod form;
mod freeze;
mod outcome;
mod request;
mod words;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::shell::words::{NO_TITLE, brief, moment, severity, title};
use tarsy_core::approvals::RequestId;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::format;
use tarsy_reports::{ApprovalRow, FreezeReport, RequestState};

pub(crate) use self::form::{Form, Offer};
pub(crate) use self::outcome::{Outcome, unrecorded};
pub(crate) use self::request::{Request, request};

/// The content of the list.
#[derive(Clone, Debug)]
pub(crate) struct Approvals<'a> {
    /// The oldest first.
    pub open: &'a [ApprovalRow],
    /// Those that are open no more, the newest first.
    pub decided: &'a [ApprovalRow],
    pub freeze: Option<&'a FreezeReport>,
    /// The nonce of the form that begins or ends a freeze, for those who may.
    pub freeze_form: Option<SessionId>,
    /// The note about what was sent just now.
    pub outcome: Outcome<'a>,
    pub now: DateTime<Utc>,
}

/// The address of the page of a request.
pub(crate) fn path(id: RequestId) -> String {
    format!("/approvals/{id}")
}

/// The page below its bar.
pub(crate) fn approvals(page: &Approvals<'_>) -> Markup {
    html! {
        div.head { h1 { "Approvals" } p.meta { span { "Calls that wait for a person, and what people decided" } } }
        (outcome::note(&page.outcome))
        section aria-labelledby="h-o" {
            h2 #h-o { "Open " span.cnt { (page.open.len()) } }
            @if page.open.is_empty() { p.muted { "No call waits for a person." } }
            (list(page.open, page.now))
        }
        section aria-labelledby="h-f" {
            h2 #h-f { "Freeze of all changes" }
            (freeze::section(page.freeze, page.freeze_form))
        }
        section aria-labelledby="h-d" {
            h2 #h-d { "Recently decided " span.cnt { (page.decided.len()) } }
            @if page.decided.is_empty() { p.muted { "No decision yet." } }
            (list(page.decided, page.now))
        }
    }
}

/// The section of a session's page: its requests, the oldest first.
pub(crate) fn of_session(rows: &[ApprovalRow], now: DateTime<Utc>) -> Markup {
    let mut rows: Vec<&ApprovalRow> = rows.iter().collect();
    rows.sort_by_key(|row| row.event);
    html! {
        @if !rows.is_empty() {
            section.asked #approvals aria-labelledby="h-ap" {
                h2 #h-ap { "Approvals " span.cnt { (rows.len()) } }
                ol.asks { @for row in rows { li { p.ti { a href=(path(row.id())) { (call(row)) } } (measures(row, now)) } } }
            }
        }
    }
}

fn list(rows: &[ApprovalRow], now: DateTime<Utc>) -> Markup {
    html! {
        @if !rows.is_empty() {
            ol.asks { @for row in rows { li {
                p.ti {
                    a href=(path(row.id())) { (call(row)) } " "
                    span.muted { "for " (title(row.title.as_deref().unwrap_or(NO_TITLE))) } " " (severity(row.severity))
                }
                (measures(row, now))
            } } }
        }
    }
}

fn call(row: &ApprovalRow) -> String {
    brief(&row.tool, 120)
}

fn measures(row: &ApprovalRow, now: DateTime<Utc>) -> Markup {
    html! {
        p.meta {
            (state(row))
            span { "asked " (moment(row.asked_at)) }
            @if row.state == RequestState::Open { span { (time_left(row, now)) } }
            @if row.state == RequestState::Open && row.quorum > 1 { span { (row.votes) " of " (row.quorum) " approvals" } }
            span { "policy " (brief(&row.policy, 80)) }
            a.n href={ "/sessions/" (row.session_id) "#" (row.event) } { (row.session_id.short()) " " (row.event) }
        }
    }
}

/// The state of a request with the people who decided.
fn state(row: &ApprovalRow) -> Markup {
    let shown = words::state(row);
    html! {
        span class={ "st " (shown.class) } { i aria-hidden="true" { (shown.sign) } (shown.words) }
        @if !row.decided_by.is_empty() { span { "by " (brief(&row.decided_by.join(", "), 200))
            @if let Some(at) = row.outcome_at { " at " (moment(at)) } } }
    }
}

/// `expires in 12 min`
fn time_left(row: &ApprovalRow, now: DateTime<Utc>) -> String {
    let left = format::millis(now, row.expires_at);
    let left = format::span(std::time::Duration::from_millis(left));
    format!("expires in {left}")
}
