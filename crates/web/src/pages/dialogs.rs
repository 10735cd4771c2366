//! Small pages: cancel confirmation, keyboard shortcuts, ambiguous ids.

use maud::{Markup, html};

use crate::shell::viewer::{Keys, Viewer};
use crate::shell::words::{NO_TITLE, brief, title};
use tarsy_core::ids::SessionId;
use tarsy_reports::AlertReport;

/// Asks once more before a session is cancelled.
pub(crate) fn cancel(report: &AlertReport) -> Markup {
    let id = report.alert_id;
    html! {
        div.head {
            p.crumb { a href="/" { "Sessions" } span aria-hidden="true" { "/" } a href={ "/sessions/" (id) } { (id.short()) } }
            h1 { "Cancel this investigation?" }
        }
        p { (title(report.title.as_deref().unwrap_or(NO_TITLE))) }
        p { "The worker ends it before its next step. There will be no analysis, and it can be investigated again." }
        form.ask-form method="post" action={ "/sessions/" (id) "/cancel" } {
            button.danger { "Cancel the investigation" } " " a href={ "/sessions/" (id) } { "Keep it running" }
        }
    }
}

/// The keys of the pages. Each of them is a visible link or button as well.
const KEYS: [(&str, &str); 11] = [
    ("j", "next row"),
    ("k", "previous row"),
    ("o", "open or close the row"),
    ("c", "copy the link of the row"),
    (".", "newest row"),
    ("[", "previous cited row"),
    ("]", "next cited row"),
    ("/", "search"),
    ("f", "search in the session"),
    ("g s", "sessions"),
    ("g q", "queue"),
];

/// The list of keys, and a link that switches them off.
pub(crate) fn keys(viewer: &Viewer) -> Markup {
    let (state, other) = match viewer.keys {
        Keys::On => ("on", "off"),
        Keys::Off => ("off", "on"),
    };
    html! {
        div.head { h1 { "Keys" } }
        p { "Single keys are " b { (state) } ". " a href={ "/keys/" (other) "?back=/keys" } rel="nofollow" { "Switch them " (other) } }
        dl.keys { @for (key, does) in KEYS { div { dt { kbd { (key) } } dd { (does) } } } div { dt { kbd { "?" } } dd { "this page" } } }
    }
}

/// The sessions whose ids have a part in common.
pub(crate) fn several(part: &str, ids: &[SessionId]) -> Markup {
    html! {
        div.head { h1 { "Several sessions" } }
        p { "More than one id begins or ends with " code { (brief(part, 40)) } ":" }
        ul { @for id in ids { li { a href={ "/sessions/" (id) } { (id) } } } }
    }
}
