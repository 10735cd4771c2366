//! Tests of transcripts: every key of the format, its faults, and the built-in drills.

use serde_json::{Map, json};

use crate::transcript::*;
use crate::{BUILTIN, Drill};
use tarsy_core::intake::{Hints, normalise};
use tarsy_core::plan::Strategy;
use tarsy_core::prompt::{Briefing, PromptOptions, prompts};
use tarsy_core::react;

#[test]
fn every_key_of_a_transcript_is_read() {
    let text = "
name: short
match: DiskFull
agent: dba
pace: 20ms
answers:
  - chunks:
      - thinking: Look first.
      - wait: 2s
      - gate: before-call
      - call: {tool: k8s.pods, arguments: {namespace: shop}}
    fail: {code: max_retries, message: busy, times: 1}
    usage: {input: 10, output: 2}
    conclusion:
      chunks: [{text: No tools left.}]
    denied:
      chunks: [{text: A person said no.}]
  - chunks:
      - text: Half
      - cut: true
";
    let first = RecordedAnswer {
        chunks: vec![
            Chunk::Thinking("Look first.".into()),
            Chunk::Wait(Duration::from_secs(2)),
            Chunk::Gate("before-call".into()),
            Chunk::Call(Call {
                tool: "k8s.pods".into(),
                arguments: json!({"namespace": "shop"}),
            }),
        ],
        fail: Some(Fail {
            code: "max_retries".into(),
            message: "busy".into(),
            times: Some(1),
            ..Fail::default()
        }),
        usage: Some(Usage {
            input: 10,
            output: 2,
            ..Usage::default()
        }),
        conclusion: Some(Box::new(RecordedAnswer {
            chunks: vec![Chunk::Text("No tools left.".into())],
            ..RecordedAnswer::default()
        })),
        denied: Some(Box::new(RecordedAnswer {
            chunks: vec![Chunk::Text("A person said no.".into())],
            ..RecordedAnswer::default()
        })),
    };
    let second = RecordedAnswer {
        chunks: vec![Chunk::Text("Half".into()), Chunk::Cut(())],
        ..RecordedAnswer::default()
    };
    assert_eq!(
        Transcript::parse(text).unwrap(),
        Transcript {
            name: "short".into(),
            matches: Some("DiskFull".into()),
            agent: Some("dba".into()),
            pace: Duration::from_millis(20),
            provider_state: false,
            context_window: None,
            answers: vec![first, second],
            questions: vec![],
        }
    );
}

#[test]
fn arguments_are_sent_as_json_and_a_string_unchanged() {
    let text = |arguments| {
        Call {
            tool: "a.b".into(),
            arguments,
        }
        .arguments_text()
    };
    assert_eq!(text(json!({"n": 1})), r#"{"n":1}"#);
    assert_eq!(text(json!("{broken")), "{broken");
    assert_eq!(text(Value::Null), "{}");
}

#[test]
fn a_fault_has_its_path_and_what_is_accepted() {
    let fault = |text: &str| Transcript::parse(text).unwrap_err().to_string();
    assert_eq!(
        fault("name: x\nanswers: [\n"),
        "transcript: line 3: while parsing a node, did not find expected node content"
    );
    assert_eq!(
        fault("name: x\nanswers: []\n"),
        "transcript: answers: needs at least one answer"
    );
    assert_eq!(
        fault("name: x\nanswer: []\nanswers: []\n"),
        "transcript: top level: unknown field `answer`, expected one of `name`, `match`, `agent`, `pace`, `provider_state`, `context_window`, `answers`, `questions`"
    );
    assert_eq!(
        fault("name: x\nanswers:\n  - chunks: []\n  - chunks: [{text: a}, {txt: b}]\n"),
        "transcript: answers[1].chunks[1]: unknown variant `txt`, expected one of `thinking`, `text`, `call`, `code`, `code_result`, `grounding`, `wait`, `gate`, `cut`, `hang`"
    );
    assert_eq!(
        fault("name: x\nanswers:\n  - chunks: [{wait: 3 weeks}]\n"),
        "transcript: answers[0].chunks[0]: '3 weeks' is not a duration such as 300ms, 2s, 1m"
    );
    assert_eq!(
        fault("name: x\nanswers:\n  - conclusion: {chunks: [{cut: false}]}\n"),
        "transcript: answers[0].conclusion.chunks[0]: may only be true: leave it out"
    );
}

#[test]
fn every_built_in_transcript_is_found_by_its_name_and_ends_without_a_call() {
    for drill in BUILTIN {
        for transcript in transcripts(&drill) {
            assert_eq!(transcript.name, drill.name);
            assert!(
                drill.alert.contains(transcript.matches.as_deref().unwrap()),
                "{}",
                drill.name
            );
            let asked = transcript
                .questions
                .iter()
                .map(|question| &question.answers);
            for answers in std::iter::once(&transcript.answers).chain(asked) {
                assert_eq!(calls(answers.last().unwrap()), vec![], "{}", drill.name);
            }
        }
    }
}

#[test]
fn a_transcript_of_an_agent_matches_only_its_prompt_in_every_strategy() {
    let transcript =
        |agent: &str| Transcript::parse(&format!("name: x{agent}\nanswers: [{{}}]\n")).unwrap();
    for strategy in Strategy::ALL {
        let briefing = Briefing {
            agent: "sre-1",
            strategy,
            tools: &[],
            instructions: "",
            max_iterations: 1,
            runbooks: &[],
            fetched: None,
            options: PromptOptions::default(),
            skills: "",
        };
        let system = system_message(&briefing);
        assert!(
            transcript("").is_for(&system) && transcript("\nagent: sre-1").is_for(&system),
            "{system}"
        );
        assert!(
            !transcript("\nagent: sre").is_for(&system)
                && !transcript("\nagent: dba").is_for(&system)
        );
    }
}

fn system_message(briefing: &Briefing<'_>) -> String {
    prompts(
        briefing,
        &normalise(b"disk full", &Hints::default()).unwrap(),
    )
    .system
}

#[test]
fn every_call_of_a_built_in_transcript_is_answered_by_its_evidence() {
    for drill in BUILTIN {
        let evidence = drill.evidence().unwrap();
        let transcripts = transcripts(&drill);
        let decisions = drill.decisions("drill").unwrap();

        let asked = transcripts
            .iter()
            .flat_map(|each| &each.questions)
            .flat_map(|question| &question.answers);
        let answers = transcripts
            .iter()
            .flat_map(|each| &each.answers)
            .chain(asked);
        let mut calls: Vec<_> = answers.flat_map(calls).collect();
        // tarsy itself answers its own tools.
        calls.retain(|(tool, _)| !tool.starts_with("tarsy."));
        assert!(calls.len() >= 4, "{}", drill.name);
        for (tool, arguments) in calls {
            let found = evidence.tool(tool.strip_prefix("drill.").unwrap()).unwrap();
            // A person of the drill decides about every other call.
            let is_decided = decisions
                .iter()
                .any(|decision| decision.is_about(&tool, &arguments));
            assert!(
                found.read_only != is_decided && found.answer(&arguments).is_some(),
                "{tool} {arguments:?}"
            );
        }
    }
}

fn transcripts(drill: &Drill) -> Vec<Transcript> {
    drill
        .transcripts
        .iter()
        .map(|text| Transcript::parse(text).unwrap())
        .collect()
}

/// The calls of an answer, native or written as text.
fn calls(answer: &RecordedAnswer) -> Vec<(String, Map<String, Value>)> {
    answer
        .chunks
        .iter()
        .filter_map(|chunk: &Chunk| match chunk {
            Chunk::Call(call) => Some((
                call.tool.clone(),
                call.arguments.as_object().unwrap().clone(),
            )),
            Chunk::Text(text) => react::read(text, None)
                .action
                .zip(react::read(text, None).arguments),
            Chunk::Code(_) | Chunk::CodeResult(_) | Chunk::Grounding(_) => None,
            Chunk::Thinking(_)
            | Chunk::Wait(_)
            | Chunk::Gate(_)
            | Chunk::Cut(())
            | Chunk::Hang(()) => None,
        })
        .collect()
}
