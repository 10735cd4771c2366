//! Reports on a provider's own tools, over a real stream.

use tarsy_core::execution::entry::{Answer, Finish};
use tarsy_core::native::{CodePart, Grounding, Source, Support, citations};

use super::harness::{Server, request, script, watch};

const ANSWER: &str = r#"
  - chunks:
      - code: {code: print(6 * 7), language: PYTHON, id: c1}
      - text: "It is 42 → known. "
      - code_result: {result: "42", outcome: OUTCOME_OK, id: c1}
      - text: It is known.
      - grounding:
          queries: [what is it]
          sources: [{uri: "https://a.example", title: a}, {uri: "https://b.example"}]
          supports:
            - {text: known., sources: [0]}
            - {text: It is known., sources: [1, 9]}
            - {text: "42", sources: [0], bytes: [-3, 0]}
          search_widget: <b>suggestions</b>
"#;

#[tokio::test]
async fn code_and_sources_arrive_with_the_text_around_them() {
    let server = Server::start(script(ANSWER));
    let (answer, deltas) = watch(&server.client(), &request("test", "x")).await;
    let support = |start_index, end_index, text: &str, indices: &[u32]| Support {
        start_index,
        end_index,
        text: text.into(),
        grounding_chunk_indices: indices.to_vec(),
        ..Support::default()
    };
    let source = |uri: &str, title: &str| Source {
        uri: uri.into(),
        title: title.into(),
    };
    let expected = Answer {
        text: "It is 42 → known. It is known.".into(),
        finish: Finish::Stop,
        code_executions: vec![
            CodePart {
                code: "print(6 * 7)".into(),
                language: "PYTHON".into(),
                id: "c1".into(),
                ..CodePart::default()
            },
            CodePart {
                result: "42".into(),
                outcome: "OUTCOME_OK".into(),
                id: "c1".into(),
                ..CodePart::default()
            },
        ],
        groundings: vec![Grounding {
            queries: vec!["what is it".into()],
            sources: vec![
                source("https://a.example", "a"),
                source("https://b.example", ""),
            ],
            supports: vec![
                support(13, 19, "known.", &[0]),
                support(20, 32, "It is known.", &[1, 9]),
                support(0, 0, "42", &[0]),
            ],
            search_widget: "<b>suggestions</b>".into(),
            ..Grounding::default()
        }],
        ..Answer::default()
    };
    let answer = answer.unwrap();
    assert_eq!(answer, expected);
    let streamed: String = deltas.into_iter().map(|(_, piece)| piece).collect();
    assert_eq!(streamed, answer.text, "only text is sent as deltas");
    let cited: Vec<_> = citations(&answer.text, &answer.groundings)
        .into_iter()
        .map(|each| (each.start, each.text))
        .collect();
    assert_eq!(
        cited,
        [
            (6, "42".to_owned()),
            (13, "known.".to_owned()),
            (20, "It is known.".to_owned())
        ]
    );
}
