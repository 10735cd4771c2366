//! The form by which a person judges the analysis of an investigation that has ended.

use maud::{Markup, html};

use super::Session;
use crate::ports::{JUDGEMENTS, MAX_JUDGED};
use tarsy_core::chain::RunStatus;

/// The section below the answer, for those who may judge.
pub(super) fn section(page: &Session<'_>) -> Markup {
    let session = page.report.session.as_ref();
    let is_judged = session.is_some_and(|session| {
        session.status != RunStatus::Running && session.final_analysis.is_some()
    });
    html! {
        @if is_judged && page.viewer.access.may_judge { (form(page)) }
    }
}

fn form(page: &Session<'_>) -> Markup {
    let id = page.report.alert_id;
    html! {
        details.more.judge #judge {
            summary { "Was this analysis right?" }
            form.order method="post" action={ "/sessions/" (id) "/verdict" } {
                fieldset.marks {
                    legend { "The analysis is" }
                    @for word in JUDGEMENTS {
                        label { input type="radio" name="verdict" value=(word) required; " " (words(word)) }
                    }
                }
                div { label for="cause" { "What the cause really was" }
                    textarea #cause name="cause" rows="2" maxlength=(MAX_JUDGED) autocomplete="off" {} }
                div { label for="action" { "What you did" }
                    textarea #action name="action" rows="2" maxlength=(MAX_JUDGED) autocomplete="off" {} }
                p { button { "Send the verdict" } }
            }
        }
    }
}

fn words(word: &str) -> &str {
    match word {
        "partly" => "partly right",
        word => word,
    }
}
