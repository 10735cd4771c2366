//! A transcript's answers to follow-up questions.

use serde::Deserialize;
use serde_json::Value;

use super::{RecordedAnswer, TranscriptError, answers, read};

/// A recorded conversation about a follow-up question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// A question that contains this text gets the answers; upper and lower case are equal.
    pub matches: String,
    /// The answers are only true for a report that contains this text.
    pub report: Option<String>,
    /// Indexed as the answers of the transcript.
    pub answers: Vec<RecordedAnswer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    #[serde(rename = "match")]
    matches: String,
    report: Option<String>,
    answers: Vec<Value>,
}

pub(super) fn read_one(path: &str, value: Value) -> Result<Question, TranscriptError> {
    let layer: Layer = read(path, value)?;
    let answers = answers(&format!("{path}.answers"), layer.answers)?;
    Ok(Question {
        matches: layer.matches,
        report: layer.report,
        answers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Chunk, Transcript};

    #[test]
    fn a_transcript_has_answers_to_questions() {
        let text = "name: x\nanswers: [{chunks: [{text: a}]}]\nquestions: [{match: why, report: full, answers: [{chunks: [{text: b}]}]}]";
        let answer = RecordedAnswer {
            chunks: vec![Chunk::Text("b".into())],
            ..RecordedAnswer::default()
        };
        let expected = Question {
            matches: "why".into(),
            report: Some("full".into()),
            answers: vec![answer],
        };
        assert_eq!(Transcript::parse(text).unwrap().questions, [expected]);
        let fault =
            Transcript::parse("name: x\nanswers: [{}]\nquestions: [{match: why, answers: []}]")
                .unwrap_err();
        assert_eq!(
            fault.to_string(),
            "transcript: questions[0].answers: needs at least one answer"
        );
    }
}
