//! The page of one request, in the order in which a person judges a call: the alert and its changes, the call with all
//! of its arguments, the origins of their values, the evidence, the words of the model, earlier requests, the form.

use std::time::Duration;

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde_json::Value;

use super::form::{self, Form};
use super::outcome::{self, Outcome};
use super::{arguments, path, state, time_left, words};
use crate::decisions::refusal;
use crate::shell::visibly::visibly;
use crate::shell::words::{NO_TITLE, brief, moment, plain, severity, title, whole};
use tarsy_core::approvals::RequestId;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::format;
use tarsy_reports::{
    AlertUpdateReport, ApprovalDetail, CitedResult, OtherRequest, RequestState, VoteReport,
};

/// The content of the page.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    pub detail: &'a ApprovalDetail,
    /// The form, for those who may decide while the request is open.
    pub form: Option<Form<'a>>,
    /// The note about what was sent just now.
    pub outcome: Outcome<'a>,
    pub now: DateTime<Utc>,
}

/// The page below its bar.
pub(crate) fn request(page: &Request<'_>) -> Markup {
    let detail = page.detail;
    let row = &detail.row;
    let id = row.session_id;
    html! {
        div.head {
            p.crumb {
                a href="/approvals" { "Approvals" } span aria-hidden="true" { "/" }
                a href={ "/sessions/" (id) "#" (row.event) } { (id.short()) } span aria-hidden="true" { "/" }
                span.id { (row.event) }
            }
            h1 { "Call of " b { (brief(&row.tool, 200)) } }
            p.meta {
                (state(row))
                span { "asked " (moment(row.asked_at)) }
                @if row.state == RequestState::Open { span { (time_left(row, page.now)) } }
            }
        }
        (outcome::note(&page.outcome))
        (lost(&detail.others, id))
        section.part-of aria-labelledby="h-al" { h2 #h-al { "Alert" } (alert(detail)) }
        section.part-of aria-labelledby="h-ca" { h2 #h-ca { "Call" } (call(detail)) }
        section.part-of aria-labelledby="h-ar" { h2 #h-ar { "All arguments" } (arguments::all(&detail.call.arguments)) }
        section.part-of aria-labelledby="h-or" {
            h2 #h-or { "Where its values occur" }
            (arguments::origins(&detail.call.arguments, &detail.call.origins, id))
        }
        section.part-of aria-labelledby="h-ev" { h2 #h-ev { "Results that the agent cites" } (evidence(&detail.evidence, row.id())) }
        section.part-of aria-labelledby="h-wh" { h2 #h-wh { "Words of the model" } (why(&detail.call.why)) }
        @if !detail.others.is_empty() {
            section.part-of aria-labelledby="h-ot" { h2 #h-ot { "Other requests of this investigation" } (others(&detail.others, row.id())) }
        }
        @if !detail.votes_cast.is_empty() {
            section.part-of aria-labelledby="h-vo" { h2 #h-vo { "Decisions" } (votes(&detail.votes_cast)) }
        }
        section.part-of #decide aria-labelledby="h-de" { h2 #h-de { "Decide" } (decide(page)) }
    }
}

/// A warning that the same call may have been sent before.
fn lost(others: &[OtherRequest], session: SessionId) -> Markup {
    let lost = others
        .iter()
        .filter(|other| other.is_same_call && other.call_state.as_deref() == Some("lost"));
    html! {
        @for other in lost {
            p.banner.err role="note" {
                "The same call was sent before and has no result, so it may have changed something: "
                a href=(path(RequestId { session, event: number(other.event) })) { "request " (other.event) }
            }
        }
    }
}

fn number(event: i32) -> u32 {
    u32::try_from(event).unwrap_or_default()
}

fn alert(detail: &ApprovalDetail) -> Markup {
    let alert = &detail.alert;
    html! {
        p { (title(alert.title.as_deref().unwrap_or(NO_TITLE))) " " (severity(alert.severity))
            @if let Some(source) = &alert.source { " " span.muted { "from " (brief(source, 80)) } } }
        @if alert.is_resolved { p.banner role="note" { "The alert is resolved." } }
        @if let Some(by) = &alert.asked_by { p { "A question of " (brief(by, 120)) "." } }
        @if let Some(body) = &alert.body {
            details.raw { summary { "The alert" } pre tabindex="0" { (visibly(body)) } }
        }
        @if detail.alert_updates.is_empty() { p.muted { "It has not changed since." } } @else {
            p { (format::count(i64::try_from(detail.alert_updates.len()).unwrap_or_default(), "change")) " since:" }
            ol.asks { @for update in &detail.alert_updates { li { (self::update(update)) } } }
        }
    }
}

fn update(update: &AlertUpdateReport) -> Markup {
    html! {
        p { b { (update.number) } " " (moment(update.at))
            @for name in ["status", "severity"] { @if let Some(word) = update.report.get(name).and_then(Value::as_str) { " " (name) " " (brief(word, 80)) } } }
        @for name in ["firing", "resolved"] {
            @let lines = lines(&update.report, name);
            @if !lines.is_empty() { p.muted { (name) ": " (brief(&lines.join("; "), 600)) } }
        }
    }
}

/// The alerts of a change, as lines.
fn lines<'r>(report: &'r Value, name: &str) -> Vec<&'r str> {
    let lines = report.get(name).and_then(|part| part.get("lines"));
    let lines = lines.and_then(Value::as_array).into_iter().flatten();
    lines.filter_map(Value::as_str).collect()
}

fn call(detail: &ApprovalDetail) -> Markup {
    let row = &detail.row;
    let call = &detail.call;
    let names = row.tool.split_once('.');
    html! {
        dl.facts {
            @if let Some((server, tool)) = names {
                div { dt { "Server" } dd { (brief(server, 120)) } }
                div { dt { "Tool" } dd { (brief(tool, 200)) } }
            } @else { div { dt { "Tool" } dd { (brief(&row.tool, 200)) } } }
            div { dt { "Policy" } dd { (brief(&row.policy, 80)) } }
            div { dt { "Approvals" } dd { (row.votes) " of " (row.quorum) } }
            div { dt { "Expires" } dd { (moment(row.expires_at)) } }
            div { dt { "Valid for" } dd { (format::span(Duration::from_secs_f64(call.valid_for_secs.clamp(0.0, 1e6)))) " after the decision" } }
            @if let Some(agent) = &call.agent { div { dt { "Agent" } dd { (brief(agent, 80)) } } }
            div { dt { "If resolved" } dd { @if call.on_resolved == "withdraw" { "the request is withdrawn" } @else { "the request stays" } } }
            div { dt { "Call" } dd { code { (row.call_sha256) } } }
        }
    }
}

fn evidence(evidence: &[CitedResult], request: RequestId) -> Markup {
    html! {
        @if evidence.is_empty() { p.muted { "None." } }
        @for result in evidence {
            details.raw {
                summary { (result.event) " " @if let Some(tool) = &result.tool { (brief(tool, 120)) } }
                pre tabindex="0" { (visibly(&result.content)) }
                p { a href={ "/sessions/" (request.session) "#" (result.event) } { "Event " (result.event) " in its session" } }
            }
        }
    }
}

fn why(why: &str) -> Markup {
    html! {
        p.muted { "A model wrote this. It may be wrong, and a text that it read may have led it." }
        @if why.trim().is_empty() { p.muted { "It wrote nothing." } } @else { pre.said tabindex="0" { (visibly(why.trim())) } }
    }
}

fn others(others: &[OtherRequest], request: RequestId) -> Markup {
    html! {
        ul.asks { @for other in others {
            @let outcome = other.closed_as.as_deref().or(other.outcome.as_deref());
            li {
                a href=(path(RequestId { event: number(other.event), ..request })) { (other.event) " " (brief(&other.tool, 120)) } " "
                @if other.is_same_call { b { "the same call " } }
                (plain(outcome.unwrap_or(other.state.as_str())))
                @match other.call_state.as_deref() {
                    Some("lost") => span.warn { ", sent, no result: it may have changed something" },
                    Some(word) => { ", " (plain(&brief(word, 40))) }
                    None => {}
                }
            }
        } }
    }
}

fn votes(votes: &[VoteReport]) -> Markup {
    html! {
        ol.asks { @for vote in votes { li {
            p { b { (brief(&vote.person, 120)) } " " (words::decision(&vote.verdict)) " " (moment(vote.at)) ", " (brief(&vote.channel, 40))
                @if let Some(word) = &vote.refused { span.warn { ", not counted: " (refusal(word)) } } }
            @if let Some(comment) = &vote.comment { pre.said tabindex="0" { (visibly(comment.trim())) } }
        } } }
    }
}

fn decide(page: &Request<'_>) -> Markup {
    let row = &page.detail.row;
    match (&page.form, row.state) {
        (Some(form), RequestState::Open) => form::form(form, page.detail),
        (None, RequestState::Open) => html! {
            p.muted { "You may not decide about this call here: its policy " (brief(&row.policy, 80)) " lists who may." }
            p.cli { code { "tarsy approvals show " (row.id()) } }
        },
        (_, RequestState::Decided) => html! {
            p { "It is decided: " (whole(&words::state(row).words)) ". The session has not acted on it yet." }
        },
        (_, RequestState::Expired) => html! { p { "Its time has passed: the call is not sent." } },
        (_, RequestState::Ended) => {
            html! { p { "The investigation has ended: there is nothing to decide." } }
        }
        (_, RequestState::Closed) => {
            html! { p { "There is nothing to decide any more: " (whole(&words::state(row).words)) "." } }
        }
    }
}
