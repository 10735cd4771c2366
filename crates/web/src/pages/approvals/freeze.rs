//! The freeze of all changes: its state, and the form that begins or ends one.

use maud::{Markup, html};

use crate::ports::{HOURS, MAX_REASON};
use crate::shell::freeze::terms;
use tarsy_core::ids::SessionId;
use tarsy_reports::FreezeReport;

/// The state, with the form for those who may change it.
pub(super) fn section(freeze: Option<&FreezeReport>, nonce: Option<SessionId>) -> Markup {
    html! {
        @match freeze {
            Some(freeze) => p { "All changes are frozen " (terms(freeze)) },
            None => p { "No freeze. While all changes are frozen, no approval counts and no changing call is sent." },
        }
        @match (nonce, freeze) {
            (Some(nonce), Some(_)) => form.order method="post" action="/approvals/freeze" {
                (hidden(nonce, "end"))
                p { button { "End the freeze" } }
            },
            (Some(nonce), None) => details.more { summary { "Freeze all changes" } (begin(nonce)) },
            (None, _) => {}
        }
    }
}

fn begin(nonce: SessionId) -> Markup {
    html! {
        form.order method="post" action="/approvals/freeze" {
            (hidden(nonce, "begin"))
            div { label for="reason" { "Reason, on every page" }
                input #reason name="reason" maxlength=(MAX_REASON) autocomplete="off"; }
            div { label for="hours" { "For how long" }
                select #hours name="hours" {
                    option value="" selected { "Until a person ends it" }
                    @for hours in HOURS { option value=(hours) { (hours) (if hours == 1 { " hour" } else { " hours" }) } }
                } }
            p { button.danger { "Freeze all changes" } }
        }
    }
}

fn hidden(nonce: SessionId, word: &str) -> Markup {
    html! {
        input type="hidden" name="nonce" value=(nonce);
        input type="hidden" name="freeze" value=(word);
    }
}
