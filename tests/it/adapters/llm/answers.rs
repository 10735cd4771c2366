//! The client receives the answers of the transcript.

use tarsy_core::execution::entry::{Answer, Finish, ToolCall, Usage};
use tarsy_core::timeline::DeltaKind;
use tarsy_drill::transcript::{Chunk, Transcript};
use tarsy_llm::service::scripted::Options;

use super::harness::{Server, ask, continued, failed, request, script, watch};

const OOM_PROMPT: &str = "## Alert\nKubePodOOMKilled in namespace checkout";

fn unpaced() -> Options {
    Options {
        pace: Some(std::time::Duration::ZERO),
        ..Options::default()
    }
}

#[tokio::test]
async fn the_streamed_answer_is_the_recorded_one() {
    let server = Server::start(unpaced());
    let (answer, deltas) = watch(&server.client(), &request("", OOM_PROMPT)).await;
    let transcript =
        Transcript::parse(tarsy_drill::builtin("oom-killed").unwrap().transcripts[0]).unwrap();
    let recorded = &transcript.answers[0];
    let Some(Chunk::Thinking(thinking)) = recorded.chunks.first() else {
        panic!("{recorded:?}")
    };
    let pod = r#"{"namespace":"checkout","pod":"checkout-7d9f8b6c5-x2x9p"}"#;
    let call = |n: usize, tool: &str| ToolCall {
        id: format!("call_0_{n}"),
        tool: tool.into(),
        arguments: pod.into(),
        read_only: false,
    };
    let answer = answer.unwrap();
    let state = answer.provider_data.clone().unwrap();
    assert_eq!(state.payload[..3], [0x00, 0xff, 0xfe]);
    assert_eq!(
        answer,
        Answer {
            text: String::new(),
            thinking: thinking.clone(),
            calls: vec![call(0, "drill.describe_pod"), call(1, "drill.pod_events")],
            usage: Usage {
                input_tokens: 2140,
                cached_tokens: 0,
                output_tokens: 96,
                thinking_tokens: 148
            },
            finish: Finish::ToolCalls,
            is_signed: false,
            code_executions: vec![],
            groundings: vec![],
            reading: None,
            provider_data: Some(state),
            masked_calls: vec![],
            refused_tools: vec![],
            unmasked: None,
        }
    );
    assert!(deltas.len() > 5, "streamed in pieces: {}", deltas.len());
    assert!(deltas.iter().all(|(kind, _)| *kind == DeltaKind::Thinking));
    assert_eq!(
        deltas
            .into_iter()
            .map(|(_, piece)| piece)
            .collect::<String>(),
        *thinking
    );
}

#[tokio::test]
async fn another_replica_continues_where_the_first_one_stopped() {
    let (first, second, alone) = (
        Server::start(unpaced()),
        Server::start(unpaced()),
        Server::start(unpaced()),
    );
    let mut shared = request("", OOM_PROMPT);
    let mut single = shared.clone();
    for iteration in 0..5 {
        let replica = if iteration < 2 { &first } else { &second };
        let answer = ask(&replica.client(), &shared).await.unwrap();
        assert_eq!(
            answer,
            ask(&alone.client(), &single).await.unwrap(),
            "answer {iteration}"
        );
        // After its end a transcript repeats its last answer.
        assert_eq!(
            answer.text.starts_with("Cause: "),
            iteration >= 3,
            "answer {iteration}: {}",
            answer.text
        );
        shared = continued(shared, &answer);
        single = continued(single, &answer);
    }
}

#[tokio::test]
async fn provider_state_that_comes_back_changed_or_not_at_all_is_detected() {
    let server = Server::start(unpaced());
    let client = server.client();
    let answered = continued(
        request("", OOM_PROMPT),
        &ask(&client, &request("", OOM_PROMPT)).await.unwrap(),
    );
    // The state belongs to another execution.
    let (code, message, _) = failed(ask(&client, &answered).await);
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "provider_state",
            "provider state of answer 0 came back changed"
        )
    );
    let mut dropped = answered;
    dropped
        .messages
        .iter_mut()
        .for_each(|message| message.provider_data = None);
    let (code, message, _) = failed(ask(&client, &dropped).await);
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "provider_state",
            "provider state of answer 0 did not come back"
        )
    );
}

#[tokio::test]
async fn without_tools_the_answer_is_the_recorded_conclusion_or_else_the_last_answer() {
    let server = Server::start(script(
        "  - {chunks: [{call: {tool: a.b}}], conclusion: {chunks: [{text: forced}]}}\n\
         \x20 - {chunks: [{call: {tool: a.b}}]}\n\
         \x20 - {chunks: [{text: at last}]}\n",
    ));
    let client = server.client();
    let with_tools = request("test", "x");
    let mut without = with_tools.clone();
    without.tools.clear();
    assert_eq!(ask(&client, &without).await.unwrap().text, "forced");
    let next = continued(without, &ask(&client, &with_tools).await.unwrap());
    assert_eq!(ask(&client, &next).await.unwrap().text, "at last");
}

#[tokio::test]
async fn after_a_denial_the_answer_is_the_one_that_is_recorded_for_it() {
    let server = Server::start(script(
        "  - {chunks: [{call: {tool: a.b}}]}\n\
         \x20 - {chunks: [{text: it has run}], denied: {chunks: [{text: it was denied}]}}\n",
    ));
    let client = server.client();
    let first = request(
        "test",
        "not sent: a person denied this call. In an alert it says nothing.",
    );
    let mut sent = continued(first.clone(), &ask(&client, &first).await.unwrap());
    assert_eq!(ask(&client, &sent).await.unwrap().text, "it has run");
    let result = sent.messages.last_mut().unwrap();
    result.content = "Error: not sent: a person denied this call. Go on without it.".to_owned();
    let denied = ask(&client, &sent).await.unwrap();
    assert_eq!(denied.text, "it was denied");
    let later = continued(sent, &denied);
    assert_eq!(ask(&client, &later).await.unwrap().text, "it has run");
}

#[tokio::test]
async fn an_alert_without_a_transcript_is_an_error_unless_the_generic_one_is_named() {
    let server = Server::start(unpaced());
    let body = include_str!("../../../fixtures/alerts/01_alertmanager_v4_firing_truncated.json");
    for (prompt, title) in [
        (body, "TargetDown"),
        ("disk is full on a1\n/var 100 %", "disk is full on a1"),
    ] {
        let (code, message, _) = failed(ask(&server.client(), &request("", prompt)).await);
        let expected = format!(
            "not investigated: the model is a recording that does not know the alert \"{title}\"; it knows those of \
             `tarsy drill --list`. Configure a model: tarsy init"
        );
        assert_eq!((code.as_str(), message), ("invalid_request", expected));

        let answer = ask(&server.client(), &request("generic", prompt))
            .await
            .unwrap();
        let mut lines = answer.text.lines();
        let cause = format!(
            "Cause: not investigated: this is a recording, no model was asked about \"{title}\"."
        );
        assert_eq!(lines.next(), Some(cause.as_str()));
        assert!(lines.next().unwrap().starts_with("Evidence: "));
        assert!(lines.next().unwrap().starts_with("Do next: "));
        assert_eq!((answer.calls, answer.finish), (Vec::new(), Finish::Stop));
    }
}

#[tokio::test]
async fn a_recorded_answer_is_given_for_the_report_that_it_is_about_only() {
    let text = "  - {chunks: [{text: full}]}\nquestions:\n  - {match: why, report: a leak, answers: [{chunks: [{text: it leaks}]}]}\n";
    let server = Server::start(script(text));
    let prompt =
        |report: &str, question: &str| format!("{report}\n\n```question\n{question}\n```\n");
    let answer = ask(
        &server.client(),
        &request("test", &prompt("Cause: a leak", "Why?")),
    )
    .await
    .unwrap();
    assert_eq!(answer.text, "it leaks");
    for (report, question) in [
        ("Cause: not established", "Why?"),
        ("Cause: a leak", "Who?"),
    ] {
        let (code, message, _) = failed(
            ask(
                &server.client(),
                &request("test", &prompt(report, question)),
            )
            .await,
        );
        let expected = format!(
            "not answered: the model is a recording that does not know the question \"{question}\" about this report; \
             it knows questions with \"why\". Configure a model: tarsy init"
        );
        assert_eq!((code.as_str(), message), ("invalid_request", expected));
    }
}

#[tokio::test]
async fn a_transcript_is_selected_by_name_first_and_then_by_text_of_the_prompt() {
    let server = Server::start(script("  - {chunks: [{text: from the test}]}\n"));
    let client = server.client();
    assert_eq!(
        ask(&client, &request("test", OOM_PROMPT))
            .await
            .unwrap()
            .text,
        "from the test"
    );
    let generic = ask(&client, &request("generic", OOM_PROMPT)).await.unwrap();
    assert!(
        generic.text.contains("this is a recording"),
        "{}",
        generic.text
    );
    // A later message that contains the text of a transcript does not change the transcript.
    let mut later = continued(request("", "another alert"), &generic);
    later.messages.push(super::harness::message(
        tarsy_core::execution::entry::Role::User,
        OOM_PROMPT,
    ));
    let (_, message, _) = failed(ask(&client, &later).await);
    assert!(
        message.contains("does not know the alert \"another alert\""),
        "{message}"
    );
    let (code, message, _) = failed(ask(&client, &request("nosuch", "x")).await);
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "invalid_request",
            "no transcript 'nosuch'. Available transcripts: test, approve-restart, bad-deploy, bad-deploy-team, disk-full, log-trail, oom-killed, sub-agents, xid-wraparound, \
             installation-test, generic"
        )
    );
}
