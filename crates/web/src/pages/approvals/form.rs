//! The form by which a person decides. It names the call and the update of the alert that the page shows, so a page
//! that is out of date approves nothing.

use maud::{Markup, html};

use super::path;
use crate::ports::MAX_COMMENT;
use tarsy_core::ids::SessionId;
use tarsy_core::visible::visible;
use tarsy_reports::ApprovalDetail;

/// The form of a person who may decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    pub nonce: SessionId,
    /// Shown as it was typed.
    pub comment: &'a str,
    pub approval: Offer,
}

/// Whether the form offers an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Approval,
    /// Another person has to approve.
    OnlyDenial,
}

pub(super) fn form(form: &Form<'_>, detail: &ApprovalDetail) -> Markup {
    let row = &detail.row;
    let is_frozen = detail.freeze.is_some();
    html! {
        form.order.decide method="post" action=(path(row.id())) {
            input type="hidden" name="nonce" value=(form.nonce);
            input type="hidden" name="call" value=(row.call_sha256);
            input type="hidden" name="seen_updates" value=(row.updates);
            div {
                label for="comment" { "Comment for the agent" }
                p.muted #comment-help { "Optional. It may restrict what the agent does next; it permits no other call." }
                textarea #comment name="comment" rows="3" maxlength=(MAX_COMMENT) autocomplete="off" aria-describedby="comment-help" {
                    "\n" (visible(form.comment))
                }
            }
            @if is_frozen { p.warn { "All changes are frozen: no approval counts now." } }
            @else if form.approval == Offer::OnlyDenial {
                p.warn { "You asked the question whose call this is: another person has to approve it." }
            }
            p.acts {
                @if !is_frozen && form.approval == Offer::Approval {
                    button.yes name="decision" value="approve" { "Approve this call" }
                }
                button.danger name="decision" value="deny" { "Deny this call" }
                button.danger name="decision" value="deny_session" { "Deny every call of this tool in this investigation" }
            }
        }
    }
}
