//! The forms that queue an alert: one that a person writes, and one that is investigated again.
//!
//! Each form has an id that the server chose when it made the form. It makes a repetition harmless: a second click or
//! a page that is loaded again queues nothing.

use maud::{Markup, html};
use serde_json::Value;

use crate::ports::Cooldown;
use crate::shell::viewer::Viewer;
use crate::shell::words::{NO_TITLE, brief, sentence, severity, title, whole};
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::CHAIN;
use tarsy_reports::AlertReport;

/// The form of a new alert, with what it has already.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submit<'a> {
    pub request: SessionId,
    /// Shown as it is: nothing that was typed gets lost.
    pub alert: &'a str,
    pub priority: Option<Severity>,
    pub chain: Option<&'a str>,
    pub cooldown: Cooldown,
    /// Chains that can be named.
    pub chains: &'a [String],
    /// The reason why it was not sent.
    pub problem: Option<&'a str>,
}

/// The form that investigates an alert again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again<'a> {
    pub request: SessionId,
    pub report: &'a AlertReport,
    pub chain: Option<&'a str>,
    pub chains: &'a [String],
    pub problem: Option<&'a str>,
}

/// The page below its bar.
pub(crate) fn submit(form: &Submit<'_>) -> Markup {
    let described = form.problem.map(|_| "problem");
    html! {
        div.head { h1 { "Submit an alert" } }
        (problem(form.problem))
        form.order method="post" action="/submit" {
            (request(form.request))
            div {
                label for="alert" { "Alert" }
                p.muted #alert-help { "Any text, or JSON as a monitoring system sends it." }
                // A browser drops the first line break.
                textarea #alert name="alert" rows="14" required autocomplete="off" spellcheck="false"
                    aria-invalid=[described.map(|_| "true")] aria-describedby={ "alert-help" @if described.is_some() { " problem" } } {
                    "\n" (form.alert)
                }
            }
            div {
                label for="priority" { "Priority" }
                select #priority name="priority" {
                    option value="" selected[form.priority.is_none()] { "As the alert says, else normal" }
                    @for priority in Severity::ALL {
                        option value=(priority.as_str()) selected[form.priority == Some(priority)] { (priority.as_str()) }
                    }
                }
            }
            (chains(form.chains, form.chain, "Automatic"))
            p.check {
                input #cooldown type="checkbox" name="cooldown" value="ignored" checked[form.cooldown == Cooldown::Ignored];
                label for="cooldown" { "Investigate it although the same alert was investigated a short time ago" }
            }
            p { button { "Submit the alert" } }
        }
    }
}

/// The page below its bar.
pub(crate) fn again(form: &Again<'_>, viewer: &Viewer) -> Markup {
    let report = form.report;
    let id = report.alert_id;
    let (word, what) = if report.parent_id.is_some() {
        ("Question", "question")
    } else {
        ("Alert", "alert")
    };
    let named = report.headers.get(CHAIN).and_then(Value::as_str);
    let as_before = named.map_or_else(
        || "Automatic".to_owned(),
        |chain| format!("As before: {}", brief(chain, 80)),
    );
    html! {
        div.head {
            p.crumb { a href="/" { "Sessions" } span aria-hidden="true" { "/" } a href={ "/sessions/" (id) } { (id.short()) } }
            h1 { "Investigate this " (what) " again?" }
            p.meta { span { (title(report.title.as_deref().unwrap_or(NO_TITLE))) } (severity(report.severity))
                @if let Some(kind) = &report.alert_type { span { "type " (brief(kind, 80)) } } }
        }
        (problem(form.problem))
        p { "A new session investigates it, also if the same was investigated a short time ago. This one stays as it is." }
        form.order method="post" action={ "/sessions/" (id) "/rerun" } {
            (request(form.request))
            div {
                label for="alert" { (word) }
                p.muted #alert-help { "As it is stored: cleaned, and without secrets." }
                textarea #alert rows="14" readonly aria-describedby="alert-help" spellcheck="false" {
                    "\n" (whole(report.body.as_deref().unwrap_or_default()))
                }
            }
            (chains(form.chains, form.chain, &as_before))
            p.acts {
                button { "Investigate again" }
                a href={ "/sessions/" (id) } { "Back to the session" }
                @if viewer.access.may_submit && report.parent_id.is_none() {
                    a href={ "/submit?from=" (id) } { "Change it and submit it as a new alert" }
                }
            }
        }
    }
}

/// Links to the form, on the page of a session that is over.
pub(super) fn link(id: SessionId, words: &str) -> Markup {
    html! { a href={ "/sessions/" (id) "/rerun" } { (words) } }
}

fn request(id: SessionId) -> Markup {
    html! { input type="hidden" name="request_id" value=(id); }
}

fn problem(problem: Option<&str>) -> Markup {
    html! { @if let Some(problem) = problem { p.banner.err #problem role="alert" { (sentence(&brief(problem, 600))) } } }
}

fn chains(known: &[String], chosen: Option<&str>, automatic: &str) -> Markup {
    html! {
        @if !known.is_empty() {
            div {
                label for="chain" { "Chain" }
                select #chain name="chain" {
                    option value="" selected[chosen.is_none()] { (automatic) }
                    @for chain in known { option value=(chain) selected[chosen == Some(chain.as_str())] { (brief(chain, 80)) } }
                }
            }
        }
    }
}
