//! Events of the provider's native tools, which come before the text of the answer.

use serde::Serialize;
use serde_json::{Value, json};

use crate::execution::entry::Answer;
use crate::native::{self, OtherSource, Reference, Run, references, runs};
use crate::plan::Strategy;
use crate::timeline::{EventDraft, EventType};

/// The `source` of every such event.
const SOURCE: &str = "gemini";

/// The events of an answer's code and sources, in this order. A `ReAct` model has no native tools: their output is only
/// in the record of the call.
pub(super) fn events(strategy: Strategy, answer: &Answer) -> Vec<EventDraft> {
    if strategy.writes_calls() {
        return Vec::new();
    }
    let runs = runs(&answer.code_executions);
    runs.iter()
        .map(run)
        .chain(references(&answer.groundings).iter().map(reference))
        .collect()
}

/// The pages that support words of `text`, if there are any.
pub(super) fn citations(strategy: Strategy, answer: &Answer, text: &str) -> Option<Value> {
    if strategy.writes_calls() {
        return None;
    }
    filled(&native::citations(text, &answer.groundings))
}

fn run(run: &Run<'_>) -> EventDraft {
    let event = EventDraft::new(
        EventType::CodeExecution,
        run.content(),
        json!({"source": SOURCE}),
    )
    .with("outcome", (!run.outcome.is_empty()).then_some(run.outcome));
    if run.has_failed() {
        event.failed()
    } else {
        event
    }
}

fn reference(reference: &Reference<'_>) -> EventDraft {
    let Reference {
        queries,
        sources,
        supports,
        retrievals,
        other_sources,
    } = *reference;
    let (event_type, metadata) = if queries.is_empty() {
        let metadata = json!({"source": SOURCE, "sources": sources});
        (EventType::UrlContextResult, metadata)
    } else {
        let metadata = json!({"source": SOURCE, "queries": queries, "sources": sources});
        (EventType::GoogleSearchResult, metadata)
    };
    EventDraft::new(event_type, reference.content(), metadata)
        .with("retrievals", filled(retrievals))
        .with("supports", filled(supports))
        .with(
            "other_sources",
            (!other_sources.is_empty()).then(|| other_sources.iter().map(other).collect::<Value>()),
        )
}

fn filled<T: Serialize>(items: &[T]) -> Option<Value> {
    (!items.is_empty()).then(|| json!(items))
}

/// The passages stay in the journal, because they may be long.
fn other(source: &OtherSource) -> Value {
    json!(OtherSource {
        text: String::new(),
        ..source.clone()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::execution::absorb::absorb;
    use crate::execution::decide::{Decision, decide};
    use crate::execution::entry::{Entry, StopReason, ToolCall};
    use crate::execution::state::State;
    use crate::native::{CodePart, Confidence, Grounding, Source, Support};
    use crate::projection::{Measured, project};
    use crate::testing::{agent_plan, read_only_tool};

    fn state(strategy: Strategy) -> State {
        let plan = agent_plan(strategy, vec![read_only_tool("k8s.get")]);
        let mut state = State::replay(Arc::new(plan), None, Vec::<Entry>::new());
        let Decision::Append(opening) = decide(&state) else {
            panic!("no opening")
        };
        opening.into_iter().for_each(|entry| state.apply(entry));
        state
    }

    fn answer(text: &str, tools: &[&str]) -> Answer {
        let source = |name: &str| Source {
            uri: format!("https://{name}"),
            title: name.to_owned(),
        };
        let support = |text: &str, indices: &[u32]| Support {
            start_index: 0,
            end_index: 0,
            text: text.to_owned(),
            grounding_chunk_indices: indices.to_vec(),
            confidence_scores: vec![Confidence::from_score(0.97)],
            part_index: 1,
        };
        let other = OtherSource {
            kind: "retrievedContext".to_owned(),
            uri: "gs://b/runbook".to_owned(),
            title: "Runbook".to_owned(),
            text: "a passage".to_owned(),
            supports: vec![support("é holds", &[])],
        };
        let code = CodePart {
            code: "print(1)".to_owned(),
            ..CodePart::default()
        };
        let result = CodePart {
            result: "1".to_owned(),
            outcome: "OUTCOME_OK".to_owned(),
            ..CodePart::default()
        };
        let search = Grounding {
            queries: vec!["q".to_owned()],
            sources: vec![source("a")],
            supports: vec![support("é holds", &[0, 7])],
            retrievals: vec![],
            other_sources: vec![other],
            search_widget: "<b>widget</b>".to_owned(),
        };
        let page = Grounding {
            sources: vec![source("b")],
            ..Grounding::default()
        };
        Answer {
            text: text.to_owned(),
            thinking: "hm".to_owned(),
            calls: tools
                .iter()
                .map(|tool: &&str| ToolCall {
                    id: String::new(),
                    tool: (*tool).to_owned(),
                    arguments: "{}".to_owned(),
                    read_only: false,
                })
                .collect(),
            code_executions: vec![code, result],
            groundings: vec![search.clone(), search, page],
            ..Answer::default()
        }
    }

    fn projected(state: &State, answer: Answer) -> Vec<EventDraft> {
        project(state, &absorb(state, answer), &Measured::default())
    }

    fn types(events: &[EventDraft]) -> Vec<&str> {
        events
            .iter()
            .map(|event| event.event_type.as_str())
            .collect()
    }

    const NATIVE: [&str; 3] = [
        "code_execution",
        "google_search_result",
        "url_context_result",
    ];

    #[test]
    fn events_of_native_tools_come_between_thinking_and_text() {
        for strategy in [
            Strategy::NativeThinking,
            Strategy::Synthesis,
            Strategy::SynthesisNativeThinking,
            Strategy::SingleCall,
        ] {
            let events = projected(&state(strategy), answer("It é holds.", &[]));
            assert_eq!(
                types(&events),
                [&["llm_thinking"], &NATIVE[..], &["final_analysis"]].concat(),
                "{strategy:?}"
            );
        }
        let events = projected(
            &state(Strategy::NativeThinking),
            answer("Next.", &["k8s.get"]),
        );
        assert_eq!(
            types(&events),
            [
                &["llm_thinking"],
                &NATIVE[..],
                &["llm_response", "llm_tool_call"]
            ]
            .concat()
        );
        let mut concluding = state(Strategy::NativeThinking);
        concluding.apply(Entry::Concluding {
            reason: StopReason::MaxIterations,
        });
        let events = projected(&concluding, answer("It é holds.", &["k8s.get"]));
        assert_eq!(
            types(&events),
            [&["llm_thinking"], &NATIVE[..], &["final_analysis"]].concat()
        );
    }

    #[test]
    fn a_react_answer_has_no_events_of_native_tools_and_no_citations() {
        let events = projected(
            &state(Strategy::React),
            answer("Thought: so\nFinal Answer: It é holds.", &[]),
        );
        assert!(
            types(&events).iter().all(|word| !NATIVE.contains(word)),
            "{events:#?}"
        );
        let last = events.last().unwrap();
        assert_eq!(
            (last.event_type.as_str(), last.metadata.get("citations")),
            ("final_analysis", None)
        );
    }

    #[test]
    fn metadata_has_outcomes_sources_and_citations_but_no_widget() {
        let events = projected(&state(Strategy::NativeThinking), answer("It é holds.", &[]));
        let a = json!({"uri": "https://a", "title": "a"});
        let b = json!({"uri": "https://b", "title": "b"});

        let support = |indices: &[u32]| {
            json!([{"start_index": 0, "end_index": 0, "text": "é holds", "grounding_chunk_indices": indices,
                "confidence_scores": [0.97], "part_index": 1}])
        };
        let others = json!([{"kind": "retrievedContext", "uri": "gs://b/runbook", "title": "Runbook",
            "supports": support(&[])}]);
        assert_eq!(
            events[1].metadata,
            json!({"source": "gemini", "outcome": "OUTCOME_OK"})
        );
        let search = json!({"source": "gemini", "queries": ["q"], "sources": [a], "supports": support(&[0, 7]),
            "other_sources": others});
        let content = "Google Search: 'q' → Sources: a (https://a); Other sources: Runbook (retrievedContext)";
        assert_eq!(events[2].content, content);
        assert_eq!(events[2].metadata, search);
        assert_eq!(
            events[3].metadata,
            json!({"source": "gemini", "sources": [b]})
        );
        let cited = json!([{"start": 3, "end": 11, "text": "é holds", "sources": [a]}]);
        assert_eq!(events[4].metadata["citations"], cited);
        assert!(!format!("{events:?}").contains("widget"));
    }

    #[test]
    fn every_text_of_an_answer_cites_all_sources_of_its_words() {
        let mut answer = answer("It é holds. Next.", &["k8s.get"]);
        let a = answer.groundings[0].sources[0].clone();
        let c = "https://c".to_owned();

        let c = Source {
            title: "c".to_owned(),
            uri: c,
        };
        let both = Support {
            grounding_chunk_indices: vec![0, 1],
            ..answer.groundings[0].supports[0].clone()
        };
        let elsewhere = Support {
            text: "not in this text".to_owned(),
            ..both.clone()
        };
        answer.groundings = vec![Grounding {
            sources: vec![a.clone(), c.clone()],
            supports: vec![both, elsewhere],
            ..Grounding::default()
        }];
        let sources = json!([{"uri": a.uri, "title": a.title}, {"uri": c.uri, "title": c.title}]);
        let cited = json!([{"start": 3, "end": 11, "text": "é holds", "sources": sources}]);
        for (tools, last) in [(&["k8s.get"][..], "llm_response"), (&[], "final_analysis")] {
            let calls = answer.calls.iter().take(tools.len()).cloned().collect();
            let events = projected(
                &state(Strategy::NativeThinking),
                Answer {
                    calls,
                    ..answer.clone()
                },
            );
            let text = events
                .iter()
                .find(|event| event.event_type.as_str() == last)
                .unwrap();
            assert_eq!(text.metadata.get("citations"), Some(&cited), "{last}");
        }
        answer.groundings[0].supports.remove(0);
        let events = projected(&state(Strategy::NativeThinking), answer);
        let text = events
            .iter()
            .find(|event| event.event_type == EventType::LlmResponse)
            .unwrap();
        assert_eq!(
            text.metadata.get("citations"),
            None,
            "words of no other text"
        );
    }

    #[test]
    fn a_run_that_failed_is_a_failed_event() {
        let mut answer = answer("x", &[]);
        answer.code_executions[1].outcome = "OUTCOME_DEADLINE_EXCEEDED".to_owned();
        let shown = events(Strategy::NativeThinking, &answer);
        let expected = EventDraft::new(
            EventType::CodeExecution,
            "```python\nprint(1)\n```\n\nOutput:\n```\n1\n```",
            json!({"source": "gemini", "outcome": "OUTCOME_DEADLINE_EXCEEDED"}),
        );
        assert_eq!(shown[0], expected.failed());
    }

    #[test]
    fn an_empty_answer_still_has_the_events_of_its_native_tools() {
        let state = state(Strategy::NativeThinking);
        let silent = Answer {
            thinking: String::new(),
            ..answer("", &[])
        };
        let entries = absorb(&state, silent);
        assert_eq!(
            types(&project(&state, &entries, &Measured::default())),
            NATIVE
        );
    }
}
