//! The verdicts of people about an analysis, and the form by which a person judges one that has ended.

use maud::{Markup, html};

use super::Session;
use crate::pages::approvals::unrecorded;
use crate::ports::{JUDGEMENTS, MAX_JUDGED, NoRecord};
use crate::shell::visibly::visibly;
use crate::shell::words::{brief, moment};
use tarsy_core::chain::RunStatus;
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::PersonVerdict;

/// The section below the answer: the verdicts, and the form for those who may judge.
pub(super) fn section(page: &Session<'_>) -> Markup {
    let session = page.report.session.as_ref();
    let is_judged = session.is_some_and(|session| {
        session.status != RunStatus::Running && session.final_analysis.is_some()
    });
    let verdicts = session
        .map(|session| session.verdicts.as_slice())
        .unwrap_or_default();
    html! {
        @if !verdicts.is_empty() { (given(verdicts)) }
        @if is_judged && page.viewer.access.may_judge { (form(page)) }
    }
}

/// The verdicts, the newest first: it counts.
fn given(verdicts: &[PersonVerdict]) -> Markup {
    html! {
        section aria-labelledby="h-verdicts" {
            h2 #h-verdicts { "Verdicts" }
            ol.asks { @for verdict in verdicts { li {
                p { b { (brief(&verdict.person, 120)) } " judged it " (words(verdict.rating.as_str())) " " (moment(verdict.at)) }
                @if let Some(cause) = &verdict.cause { p { "The cause:" } pre.said tabindex="0" { (visibly(cause.trim())) } }
                @if let Some(action) = &verdict.action { p { "What they did:" } pre.said tabindex="0" { (visibly(action.trim())) } }
            } } }
        }
    }
}

/// The page after a verdict whose record is not shown yet.
pub(crate) fn verdict_sent(session: SessionId, missing: NoRecord) -> Markup {
    html! {
        h1 { "Verdict" }
        p.banner #outcome role="status" {
            (unrecorded(missing)) " " a href={ "/sessions/" (session) } { "Look again" }
        }
        p.muted { "A verdict that a worker refuses leaves no record: the log of the workers has the reason." }
    }
}

fn form(page: &Session<'_>) -> Markup {
    let id = page.report.alert_id;
    let session = page.report.session.as_ref();
    // The words of a second click are the same verdict; a page that shows a newer verdict makes another one.
    let seen = session.map_or(0, |session| session.verdicts.len());
    html! {
        details.more.judge #judge {
            summary { "Was this analysis right?" }
            form.order method="post" action={ "/sessions/" (id) "/verdict" } {
                input type="hidden" name="seen" value=(seen);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data::at;
    use crate::testing::markup::texts;
    use tarsy_core::verdicts::Rating;

    #[test]
    fn a_verdict_is_shown_with_its_person_and_texts_as_texts() {
        let verdict = PersonVerdict {
            at: at(0),
            person: "ana".to_owned(),
            channel: "web".to_owned(),
            rating: Rating::Partly,
            cause: Some("<b>the leak".to_owned()),
            action: None,
        };
        let page = given(&[verdict]).into_string();
        let shown = texts(&page);
        assert!(shown.contains("ana judged it partly right"), "{shown}");
        assert!(!page.contains("<b>the leak"), "{page}");
    }
}
