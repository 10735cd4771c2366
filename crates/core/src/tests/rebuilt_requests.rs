//! Tests of requests that are made again from the journal, over random investigations.

use proptest::prelude::*;

use super::survival::{simulation, stored};
use crate::execution::conversation::Message;
use crate::execution::decide::Purpose;
use crate::execution::entry::{Entry, Role, ToolResult};
use crate::execution::event_refs::RecordedEntry;
use crate::execution::request::rebuilt::{CallSite, NotRebuilt, StoredCall};
use crate::execution::state::{MessageForm, MessageSource};
use crate::plan::Strategy;
use crate::testing::{Simulation, Turn, Written};

/// Every call of an investigation, made again from the whole stored journal.
fn sites(simulation: &Simulation, written: &[Written]) -> Vec<CallSite> {
    let calls = written
        .iter()
        .flat_map(|written| &written.sent)
        .map(|sent| sent.call);
    calls
        .map(|call| CallSite::find(simulation.plan(), stored(written), call).unwrap())
        .collect()
}

/// Whether the source says of a message what the message shows.
fn agrees(source: &MessageSource, message: &Message, journal: &[RecordedEntry]) -> bool {
    let RecordedEntry { entry, event, .. } = &journal[usize::try_from(source.entry).unwrap() - 1];
    let is_blanked = message
        .content
        .contains("[this result was removed to save space");
    let is_summarised = message
        .content
        .contains("[a summary of the result by a model;");
    let form = match source.form {
        MessageForm::Whole => !is_blanked && !is_summarised,
        MessageForm::Blanked => is_blanked,
        MessageForm::Summarised => is_summarised,
    };
    form && *event == source.event && entry.role() == Some(message.role)
}

/// The answer of a call, or its summary.
fn text_of_site(site: &CallSite) -> Option<&str> {
    let summary = site.summary().map(|summary| summary.content.as_str());
    summary.or_else(|| site.answer().map(|answer| answer.text.as_str()))
}

/// The text that an entry has from a model.
fn text_of_entry(entry: &Entry) -> Option<&str> {
    if let Entry::Summarised(summary) = entry {
        return summary.was_asked_for().then_some(summary.content.as_str());
    }
    entry.answer().map(|answer| answer.text.as_str())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_rebuilt_request_is_the_sent_one(simulation in simulation()) {
        let written = simulation.run(Vec::new());
        let sent: Vec<_> = written.iter().flat_map(|written| &written.sent).map(|sent| &sent.body).collect();
        let rebuilt: Vec<_> = sites(&simulation, &written).iter().map(|site| site.request(Some(&simulation.said())).unwrap()).collect();
        prop_assert_eq!(rebuilt.iter().collect::<Vec<_>>(), sent);
    }

    #[test]
    fn each_message_of_a_rebuilt_request_names_its_entry_and_what_was_blanked(simulation in simulation()) {
        let written = simulation.run(Vec::new());
        let journal = stored(&written);
        for site in sites(&simulation, &written).iter().filter(|site| site.result_event().is_none()) {
            let messages = site.request(None).unwrap().messages;
let sources = site.sources();

            prop_assert_eq!(messages.len(), sources.len());
            for (source, message) in sources.iter().zip(&messages) {
                prop_assert!(agrees(source, message, &journal), "{:?} {:?}", source, message);
            }
        }
    }

    #[test]
    fn each_call_has_the_answer_that_was_committed_with_it(simulation in simulation()) {
        let written = simulation.run(Vec::new());
        let mut sites = sites(&simulation, &written).into_iter();
        for checkpoint in written.iter().filter(|written| !written.sent.is_empty()) {
            let outcomes: Vec<CallSite> = sites.by_ref().take(checkpoint.sent.len()).collect();
            let made: Vec<&str> = outcomes.iter().filter_map(text_of_site).collect();
            prop_assert_eq!(made, checkpoint.entries.iter().filter_map(text_of_entry).collect::<Vec<_>>());
        }
    }
}

fn look() -> Simulation {
    let simulation = Simulation::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::says("", "", &["k8s.get"])],
    );
    Simulation {
        summarises: true,
        ..simulation
    }
}

#[test]
fn a_request_that_cannot_be_made_again_names_what_is_missing() {
    let simulation = look();
    let journal = stored(&simulation.run(Vec::new()));
    let find = |call| CallSite::find(simulation.plan(), journal.clone(), call).map(drop);
    let at = |purpose, entries_upto| StoredCall {
        purpose,
        entries_upto,
        call_no: 1,
    };
    let has = journal.len();
    let of = journal.len() + 1;

    assert_eq!(
        find(at(Purpose::Iteration, u32::try_from(of).unwrap())),
        Err(NotRebuilt::Journal { has, of })
    );
    assert_eq!(find(at(Purpose::Summary, 2)), Err(NotRebuilt::Summary));
    let summary =
        CallSite::find(simulation.plan(), journal.clone(), at(Purpose::Summary, 4)).unwrap();
    let event = summary.result_event().unwrap();
    assert_eq!(summary.request(None), Err(NotRebuilt::Result { event }));
    let mut plan = (*simulation.plan()).clone();
    plan.providers.clear();
    let site = CallSite::find(plan.into(), journal, at(Purpose::Iteration, 2)).unwrap();
    assert_eq!(site.request(None), Err(NotRebuilt::Provider));
}

#[test]
fn the_number_in_front_of_a_result_is_that_of_its_event_in_the_rebuilt_request() {
    let simulation = look();
    let written = simulation.run(Vec::new());
    let last = sites(&simulation, &written).pop().unwrap();
    let messages = last.request(None).unwrap().messages;
    let sources = last.sources();

    let result = messages
        .iter()
        .zip(&sources)
        .find(|(message, _)| message.role == Role::Tool)
        .unwrap();
    let head = format!("[event {}]", result.1.event.unwrap());
    assert!(result.0.content.starts_with(&head), "{result:?}");
    assert_eq!(result.1.form, MessageForm::Summarised);
    let entry = &stored(&written)[usize::try_from(result.1.entry).unwrap() - 1].entry;
    assert!(matches!(entry, Entry::ToolResult(ToolResult { .. })));
}
