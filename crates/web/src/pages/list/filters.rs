//! The filter of the list: a form with the words that exist, each value that is set with a link that removes it, and
//! what the values of an empty list hide.

use maud::{Markup, html};

use super::{List, PERIODS, Query};
use crate::api::{ListQuery, Part};
use crate::shell::words::{brief, plain};
use tarsy_core::alert::Severity;

/// Characters of a value.
const VALUE: usize = 120;

/// A value of the filter of an empty list, and how many sessions the list has without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub part: Part,
    pub count: i64,
}

/// The form, and the values that are set.
pub(super) fn bar(list: &List<'_>) -> Markup {
    let query = list.query;
    let set: Vec<Part> = query
        .filter
        .parts()
        .into_iter()
        .filter(|part| is_shown_only_here(query, part))
        .collect();
    html! {
        div.fs {
            @if !set.is_empty() {
                ul.chips aria-label="Filters" {
                    @for part in &set {
                        li { a href=(query.with(&part.without)) {
                            span.vh { "Remove the filter " } (name(part)) " " b { (value(part)) }
                            span aria-hidden="true" { " ✕" }
                        } }
                    }
                }
            }
            details.fd { summary { "Filters" } (form(list)) }
        }
    }
}

/// Whether no other part of the page shows a value: a single status is a tab, a period is in its field, and words are
/// in the search.
fn is_shown_only_here(query: &Query, part: &Part) -> bool {
    match part.name {
        "status" => query.filter.status.len() > 1,
        "since" => PERIODS.iter().all(|(value, _)| *value != part.value),
        name => name != "words",
    }
}

fn name(part: &Part) -> &'static str {
    match part.name {
        "since" => "from",
        "until" => "to",
        name => name,
    }
}

fn value(part: &Part) -> String {
    let value = brief(&part.value, VALUE);
    if part.name == "status" {
        plain(&value)
    } else {
        value
    }
}

fn form(list: &List<'_>) -> Markup {
    let query = list.query;
    let filter = &query.filter;
    // A moment in a field replaces the period.
    let is_offered = PERIODS.iter().any(|(value, _)| *value == query.since());
    let from = (!is_offered).then(|| brief(query.since(), 40));
    let mut own = vec!["severity", "chain", "source", "questions", "until"];
    if from.is_some() {
        own.push("since");
    }
    html! {
        form.ff action="/" {
            (kept(query, &own))
            @for (name, chosen) in [("chain", &filter.chain), ("source", &filter.source)] {
                @for other in chosen.iter().skip(1) { input type="hidden" name=(name) value=(brief(other, 200)); }
            }
            fieldset {
                legend { "Severity" }
                @for severity in Severity::ALL.map(Severity::as_str) {
                    label { input type="checkbox" name="severity" value=(severity)
                        checked[filter.severity.iter().any(|word| word == severity)]; " " (severity) }
                }
            }
            (choice("chain", "Chain", &list.facets.chains, &filter.chain))
            (choice("source", "Source", &list.facets.sources, &filter.source))
            label { "Label" input name="label" maxlength="400" placeholder="namespace=checkout" autocomplete="off"; }
            label { "From (UTC)" input name="from" value=[from] maxlength="40" placeholder="2026-11-27 10:00" autocomplete="off"; }
            label { "To (UTC)" input name="until" value=(brief(&filter.until, 40)) maxlength="40" placeholder="yesterday"
                autocomplete="off"; }
            label.ck { input type="checkbox" name="questions" value="shown" checked[filter.questions == "shown"];
                " Questions as rows" }
            button { "Filter" }
        }
    }
}

/// A field for one of the known words. An unknown word is offered while it is set.
fn choice(parameter: &str, name: &str, words: &[String], chosen: &[String]) -> Markup {
    let chosen = chosen.first();
    let unknown = chosen.filter(|word| !words.contains(word));
    html! {
        label { (name) select name=(parameter) {
            option value="" { "any" }
            @for word in words.iter().chain(unknown) {
                option value=(brief(word, 200)) selected[Some(word) == chosen] { (brief(word, 60)) }
            }
        } }
    }
}

/// The parameters that a form keeps, without its own ones.
pub(super) fn kept(query: &Query, own: &[&str]) -> Markup {
    html! {
        @for pair in query.filter.pairs() {
            @if !own.contains(&pair.name) { input type="hidden" name=(pair.name) value=(brief(pair.value, 400)); }
        }
    }
}

/// The values of the filter that hide sessions, each with their number.
pub(super) fn hidden(list: &List<'_>) -> Markup {
    let query = list.query;
    let found: Vec<&Hidden> = list
        .hidden
        .iter()
        .filter(|hidden| hidden.count > 0)
        .collect();
    let all = Query {
        filter: ListQuery {
            since: Some(String::new()),
            ..ListQuery::default()
        },
        ..Query::default()
    };
    html! {
        @if !found.is_empty() {
            ul.hid { @for hidden in found {
                li { a href=(query.with(&hidden.part.without)) {
                    "Without " (name(&hidden.part)) " " b { (value(&hidden.part)) } }
                    ": " (tarsy_core::readable::format::count(hidden.count, "session")) }
            } }
        } @else if list.hidden.len() > 1 {
            p { "No single one of them hides sessions: " a href=(all.link(&[])) { "show every session" } }
        }
    }
}
