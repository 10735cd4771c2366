//! Tests with hostile texts: models, tools, alerts and producers that try to inject markup.

use maud::Markup;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::api::ListQuery;
use crate::pages::dialogs;
use crate::pages::list::{Hidden, List, Query, System};
use crate::pages::live::LivePage;
use crate::pages::search::{Search, search};
use crate::pages::submit::{Again, Submit, again, submit};
use crate::pages::{calls, event};
use crate::ports::Cooldown;
use crate::rights::Access;
use crate::shell::response::error;
use crate::shell::viewer::Viewer;
use crate::testing::data::{at, entry, report, story};
use crate::testing::markup::check;
use tarsy_core::execution::entry::Answer;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::{Charset, clean};
use tarsy_core::search::Piece;
use tarsy_core::timeline::TimelineEvent;
use tarsy_reports::calls::testing::failed;
use tarsy_reports::calls::{CallReport, RebuiltCall};
use tarsy_reports::{AlertReport, Facets, FoundEvent, FoundEvents, Match, Place};

use super::shown;

/// The report and events with `text` in the place of every text from outside.
fn everywhere(text: &str) -> (AlertReport, Vec<TimelineEvent>) {
    let owned = || Some(text.to_owned());
    let mut report = report();
    report.headers = json!({"Tarsy-Asked-By": text, "Tarsy-Chain": text, "Tarsy-Retry-Of": text});
    (
        report.title,
        report.body,
        report.fingerprint,
        report.alert_type,
    ) = (owned(), owned(), owned(), owned());
    report.subject = text.to_owned();
    report.questions[0].question = owned();
    report.questions[0].answer = owned();
    let session = report.session.as_mut().unwrap();
    session.executive_summary = Some(format!(
        "Cause: {text}\nEvidence: {text}\nDo next: `{text}` {text}\n{text}: {text}"
    ));
    session.final_analysis = owned();
    session.citations = json!([{"start": 0, "end": 1, "sources": [{"uri": text, "title": text}]}]);
    (session.worker, session.chain) = (text.to_owned(), text.to_owned());
    session.stages[0].executions[0].agent = text.to_owned();
    session.models[0].model = text.to_owned();
    session.tool_calls[0].tool = text.to_owned();
    let mut events = story();
    for event in &mut events {
        event.content = text.to_owned();
        event.agent = event.agent.as_ref().map(|_| text.to_owned());
        if let Value::Object(metadata) = &mut event.metadata {
            for (key, value) in metadata.iter_mut().filter(|(key, _)| *key != "call_id") {
                if value.is_string() || key == "tool_name" {
                    *value = text.into();
                }
            }
            metadata.insert("sources".to_owned(), json!([{"uri": text, "title": text}]));
        }
    }
    (report, events)
}

/// A model call with `text` in the place of every text from outside.
fn hostile_call(text: &str) -> RebuiltCall {
    let owned = || text.to_owned();
    let mut call = failed();
    let stored = &mut call.call.call;
    (stored.agent, stored.provider, stored.model, stored.error) =
        (owned(), owned(), owned(), Some(owned()));
    stored.response = Some(json!({"code": text}));
    if let Ok(rebuilt) = &mut call.rebuilt {
        for message in &mut rebuilt.request.messages {
            message.content = owned();
            message.tool_name = message.tool_name.as_ref().map(|_| owned());
            for call in &mut message.tool_calls {
                (call.id, call.tool, call.arguments) = (owned(), owned(), owned());
            }
            if let Some(own) = &mut message.provider_data {
                own.provider = owned();
            }
        }
        let tool = &mut rebuilt.request.tools[0];
        (tool.name, tool.description, tool.parameters_schema) = (owned(), owned(), owned());
        rebuilt.answer = Some(Answer {
            text: owned(),
            thinking: owned(),
            ..Answer::default()
        });
    }
    call
}

fn hostile_form<'a>(chains: &'a [String], text: &'a str) -> Submit<'a> {
    Submit {
        request: report().alert_id,
        alert: text,
        priority: None,
        chain: Some(text),
        cooldown: Cooldown::Ignored,
        chains,
        problem: Some(text),
    }
}

fn hostile_rerun<'a>(report: &'a AlertReport, chains: &'a [String]) -> Again<'a> {
    let text = chains.first().map(String::as_str);
    Again {
        request: report.alert_id,
        report,
        chain: text,
        chains,
        problem: text,
    }
}

/// A search for a text, which is in every event.
fn hostile_search(id: SessionId, text: &str, events: &[TimelineEvent]) -> Markup {
    let events = events.iter().map(|event| FoundEvent {
        event: event.clone(),
        found: Match {
            event: event.session_seq,
            place: Place::Result,
            excerpt: [true, false]
                .map(|is_match| Piece {
                    text: text.to_owned(),
                    is_match,
                })
                .to_vec(),
            cut_before: true,
            cut_after: true,
        },
    });
    let found = FoundEvents {
        events: events.collect(),
        searched_to: 3,
        is_complete: false,
    };
    search(&Search {
        id,
        last: 9,
        text,
        after: 1,
        problem: Some(text),
        found: Some(&found),
    })
}

fn pages(text: &str) -> Vec<String> {
    let (report, events) = everywhere(text);
    let mut live = LivePage::new(report.alert_id);
    let mut line = entry("00000010", text, tarsy_core::chain::RunStatus::Failed);
    (line.cause, line.error, line.fingerprint) = (
        Some(text.to_owned()),
        Some(text.to_owned()),
        Some(text.to_owned()),
    );
    // The head of a request is bounded, so its texts are short.
    let asked: String = text.chars().take(200).collect();
    let words = vec![asked.clone()];
    let filter = ListQuery {
        status: words.clone(),
        severity: words.clone(),
        chain: words.clone(),
        source: words.clone(),
        label: words.clone(),
        since: Some(asked.clone()),
        until: asked.clone(),
        q: asked.clone(),
        ..ListQuery::default()
    };
    let facets = Facets {
        chains: words.clone(),
        sources: words,
    };
    let hidden: Vec<Hidden> = filter
        .parts()
        .into_iter()
        .map(|part| Hidden { part, count: 3 })
        .collect();
    let query = Query {
        filter,
        ..Query::default()
    };
    let entries = [line.clone(), line.clone(), line.clone(), line];
    let list = List {
        entries: &entries[..],
        asked: &entries[..],
        counts: None,
        query: &query,
        system: &System::default(),
        facets: &facets,
        faults: std::slice::from_ref(&asked),
        hidden: &[],
        next: Some(asked.clone()),
        now: at(0),
    };
    let empty = crate::pages::list::list(&List {
        entries: &[],
        hidden: &hidden,
        next: None,
        ..list.clone()
    });
    let list = crate::pages::list::list(&list);
    // A form shows what was typed as it is: the invisible as well, which only its own writer sees.
    let asked_text = clean(text, Charset::Unicode);
    let chains = [asked_text.clone()];
    let rows = events
        .iter()
        .map(|event| live.event(event).into_string())
        .collect::<String>();
    vec![
        shown(&report, &events).whole(),
        rows,
        list.into_string(),
        empty.into_string(),
        event::event(report.alert_id, &events[2]).into_string(),
        dialogs::several(text, &[]).into_string(),
        error(text, text).into_string(),
        dialogs::cancel(&report).into_string(),
        submit(&hostile_form(&chains, &asked_text)).into_string(),
        again(
            &hostile_rerun(&report, &chains),
            &Viewer {
                access: Access {
                    may_submit: true,
                    ..Access::default()
                },
                ..Viewer::default()
            },
        )
        .into_string(),
        calls::call(report.alert_id, &CallReport::new(hostile_call(text))).into_string(),
        calls::list(report.alert_id, &[hostile_call(text).call]).into_string(),
        hostile_search(report.alert_id, &asked, &events).into_string(),
    ]
}

#[test]
fn hostile_texts_stay_texts() {
    let nested = "- ".repeat(10_000);
    let long = "x".repeat(1_000_000);
    for text in [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "![x](https://evil.example/x.png) <https://evil.example> [a](javascript:x) [b](https://evil.example)",
        "javascript:alert(1)",
        "evil\u{202e}txt.exe \u{1b}[31mred \u{0}\u{7}",
        "[99999] [1](https://evil.example) [7, 8?]",
        "<tarsy-rest></tarsy-rest></main></body>",
        "{\"data\": {\"resultType\": \"matrix\", \"result\": [{\"metric\": {\"a\\\"><b>\": \"x\"}, \"values\": [[1, \"1\"], [2, \"NaN\"], [3, \"4\"]]}]}}",
        &nested,
        &long,
    ] {
        for page in pages(text) {
            assert_eq!(check(&page).err(), None, "{text:.80}");
            assert!(
                !page.contains("<img") && !page.contains("<script>"),
                "{text:.80}"
            );
            assert!(
                page.len() < 4_500_000,
                "{} bytes for {text:.40}",
                page.len()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_in_any_place_makes_no_element_of_its_own(text in prop_oneof![
        any::<String>(),
        "[<>\"'&/=a-z0-9 \\[\\]()!#*`:;\n-]{0,80}",
        prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]) {
        for page in pages(&text) {
            let checked = check(&page);
            prop_assert!(checked.is_ok(), "{checked:?}");
        }
    }
}
