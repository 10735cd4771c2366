//! The backend `scripted`: replays a transcript instead of calling a model, for drills, tests and benchmarks.
//!
//! The position in the transcript is the number of assistant messages in the request, so every replica gives the same
//! answer. Every answer is a recording, and states this where a person could take it for the finding of a model
//! (`generic.rs`).

mod calls;
mod generic;
mod window;
mod state;
mod citations;
mod play;
mod native;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use self::calls::{CallLog, Position};
use self::play::Player;
use super::provider::{ErrorCode, ProviderError, ProviderStatus};
use super::writer::ResponseWriter;
use crate::proto::{
    ASSISTANT, ConversationMessage, ErrorInfo, GenerateRequest, LlmConfig, TRANSCRIPT_OPTION,
};
use tarsy_core::execution::approvals::DENIED;
use tarsy_drill::BUILTIN;
use tarsy_drill::gate::Gates;
use tarsy_drill::transcript::{Fail, RecordedAnswer, Transcript, TranscriptError};

/// The answer to the alert of `helm test` (`test.alert` in the chart's values).
const INSTALLATION_TEST: &str = "
name: installation-test
match: This alert was sent by helm test.
answers:
  - chunks:
      - text: |-
          Cause: nothing is wrong: this alert tests an installation.
          Evidence: only the alert itself [alert]; a recording answers it, no model was asked.
          Do next: nothing for this alert; configure a model.
";

/// The settings of the backend. The default replays the built-in transcripts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Searched before the built-in transcripts. A transcript of the request's agent is preferred, then the first
    /// match.
    pub transcripts: Vec<Transcript>,
    pub gates: Gates,
    /// Every answer waits at the gates `answer-<index>-start`, `-middle` (half of the text is sent) and `-end`.
    pub gate_every_answer: bool,
    /// Each call appends one JSON line `{"execution_id","index","request_id"}` to this file.
    pub calls_file: Option<PathBuf>,
    /// The pause between two pieces of text; `None` takes the pace of the transcript.
    pub pace: Option<Duration>,
    /// The answer to an alert or a question without a transcript.
    pub unknown: Unknown,
}

/// The answer to an alert or a question without a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// An error: the investigation fails and says that no model was asked.
    #[default]
    Refused,
    /// The recording `generic`, for tests of everything but its content.
    Generic,
}

/// The backend `scripted`.
#[derive(Debug)]
pub struct Scripted {
    /// The built-in transcripts included.
    options: Options,
    calls: CallLog,
}

impl Scripted {
    /// # Errors
    /// When a built-in transcript cannot be parsed.
    pub fn new(mut options: Options) -> Result<Self, TranscriptError> {
        let drills = BUILTIN.iter().flat_map(|drill| drill.transcripts).copied();
        for text in drills.chain([INSTALLATION_TEST]) {
            options.transcripts.push(Transcript::parse(text)?);
        }
        Ok(Self {
            calls: CallLog::new(options.calls_file.clone()),
            options,
        })
    }

    pub(super) async fn generate(&self, request: &GenerateRequest, writer: &ResponseWriter) {
        if let Err(Failure { code, message }) = self.replay(request, writer).await {
            let error = ErrorInfo {
                code: code.to_owned(),
                message,
                ..ErrorInfo::default()
            };
            writer.error(error).await;
        }
    }

    /// Whether the recording that the configuration names exists.
    pub(super) fn check(&self, config: &LlmConfig) -> ProviderStatus {
        let name = config.options.get(TRANSCRIPT_OPTION);
        let name = name.map(String::as_str).unwrap_or_default();
        let mut transcripts = self.options.transcripts.iter();
        let is_known = ["", generic::NAME].contains(&name)
            || transcripts.any(|transcript| transcript.name == name);
        let error = (!is_known).then(|| ProviderError::invalid_request(self.no_transcript(name)));
        ProviderStatus::without_call(error)
    }

    async fn replay(
        &self,
        request: &GenerateRequest,
        writer: &ResponseWriter,
    ) -> Result<(), Failure> {
        let index = request
            .messages
            .iter()
            .filter(|message| message.role == ASSISTANT)
            .count();
        let position = Position {
            execution_id: request.execution_id.clone(),
            index,
        };
        // The call is recorded first: a failure that ends after some calls counts this one, too.
        self.calls
            .record(&position, &request.request_id)
            .await
            .map_err(Failure::calls_file)?;
        let question = generic::question(prompt(request));
        let transcript = self.transcript(request, question.as_deref())?;
        if transcript.provider_state {
            state::check(request).map_err(|message| Failure {
                code: "provider_state",
                message,
            })?;
        }
        let tokens = window::tokens(request);
        if let Some(window) = transcript.context_window.filter(|window| tokens > *window) {
            return Err(Failure {
                code: ErrorCode::ContextWindowExceeded.as_str(),
                message: format!("prompt is too long: {tokens} tokens > {window} maximum"),
            });
        }
        let answers = conversation(&transcript, question.as_deref(), request);
        let answer = choose(answers, index, request).ok_or_else(|| {
            Failure::invalid_request(format!("transcript '{}' has no answer", transcript.name))
        })?;
        let fail = self
            .due_failure(answer, &position)
            .await
            .map_err(Failure::calls_file)?;
        let mut answer = citations::filled(answer, request);
        if transcript.context_window.is_some() {
            answer
                .usage
                .get_or_insert_with(|| window::usage(tokens, &answer.chunks));
        }
        let player = Player {
            gates: &self.options.gates,
            gate_every_answer: self.options.gate_every_answer,
            pace: self.options.pace.unwrap_or(transcript.pace),
            state: transcript
                .provider_state
                .then(|| state::provider_data(&request.execution_id, index)),
            position,
            fail,
        };
        player.play(&answer, writer).await;
        Ok(())
    }

    /// The transcript for this request: one that the request names, the generic one if it names that, or one that
    /// matches. Any other alert or question fails: an invented report would look like the result of an investigation.
    fn transcript(
        &self,
        request: &GenerateRequest,
        question: Option<&str>,
    ) -> Result<Cow<'_, Transcript>, Failure> {
        let generic = || {
            Cow::Owned(
                question.map_or_else(|| generic::transcript(prompt(request)), generic::answer),
            )
        };
        if requested_name(request) == generic::NAME {
            return Ok(generic());
        }
        let found = self.pick(request).map_err(Failure::invalid_request)?;
        if let Some(found) = found
            && question.is_none_or(|question| answers_to(found, question, request).is_some())
        {
            return Ok(Cow::Borrowed(found));
        }
        if self.options.unknown == Unknown::Generic {
            return Ok(generic());
        }
        let known = found
            .map(|found| found.questions.as_slice())
            .unwrap_or_default();
        Err(Failure::invalid_request(match question {
            Some(question) => generic::unknown_question(question, known),
            None => generic::unknown_alert(prompt(request)),
        }))
    }

    /// The recorded error, if this call is among the first calls that get it.
    async fn due_failure<'a>(
        &self,
        answer: &'a RecordedAnswer,
        position: &Position,
    ) -> io::Result<Option<&'a Fail>> {
        let Some(fail) = &answer.fail else {
            return Ok(None);
        };
        let due = match fail.times {
            Some(times) => self.calls.count(position).await? <= times,
            None => true,
        };
        Ok(due.then_some(fail))
    }

    /// The first matching transcript for the request's agent, otherwise the first matching one for all agents.
    fn first(
        &self,
        request: &GenerateRequest,
        matches: impl Fn(&Transcript) -> bool,
    ) -> Option<&Transcript> {
        let system = request
            .messages
            .first()
            .map(|message| message.content.as_str())
            .unwrap_or_default();
        let matching = || {
            self.options
                .transcripts
                .iter()
                .filter(|transcript| matches(transcript) && transcript.is_for(system))
        };
        matching()
            .find(|transcript| transcript.agent.is_some())
            .or_else(|| matching().next())
    }

    /// The transcript that the request names, or whose `match` is part of the prompt.
    fn pick(&self, request: &GenerateRequest) -> Result<Option<&Transcript>, String> {
        let name = requested_name(request);
        if name.is_empty() {
            return Ok(self.first(request, |transcript| has_match(transcript, prompt(request))));
        }
        let found = self.first(request, |transcript| transcript.name == name);
        found.map(Some).ok_or_else(|| self.no_transcript(name))
    }

    fn no_transcript(&self, name: &str) -> String {
        let mut known: Vec<_> = self
            .options
            .transcripts
            .iter()
            .map(|transcript| transcript.name.as_str())
            .collect();
        known.dedup();
        format!(
            "no transcript '{name}'. Available transcripts: {}, {}",
            known.join(", "),
            generic::NAME
        )
    }
}

/// The reason why a request has no recorded answer.
struct Failure {
    code: &'static str,
    message: String,
}

impl Failure {
    fn invalid_request(message: String) -> Self {
        Self {
            code: ErrorCode::InvalidRequest.as_str(),
            message,
        }
    }

    fn calls_file(error: io::Error) -> Self {
        Self {
            code: ErrorCode::Internal.as_str(),
            message: format!("calls file: {error}"),
        }
    }
}

/// The messages before the first answer, so that tool results cannot change the transcript.
fn prompt(request: &GenerateRequest) -> impl Iterator<Item = &ConversationMessage> {
    request
        .messages
        .iter()
        .take_while(|message| message.role != ASSISTANT)
}

fn has_match<'a>(
    transcript: &Transcript,
    mut prompt: impl Iterator<Item = &'a ConversationMessage>,
) -> bool {
    transcript
        .matches
        .as_ref()
        .is_some_and(|text| prompt.any(|message| message.content.contains(text)))
}

/// The transcript that a request names; empty if it names none.
fn requested_name(request: &GenerateRequest) -> &str {
    request.option(TRANSCRIPT_OPTION).unwrap_or_default()
}

/// The recorded answers to a follow-up question about the report of the request.
fn answers_to<'a>(
    transcript: &'a Transcript,
    question: &str,
    request: &GenerateRequest,
) -> Option<&'a [RecordedAnswer]> {
    let question = question.to_lowercase();
    let found = transcript.questions.iter().find(|known| {
        question.contains(&known.matches.to_lowercase())
            && known
                .report
                .as_ref()
                .is_none_or(|part| prompt(request).any(|message| message.content.contains(part)))
    });
    found.map(|known| known.answers.as_slice())
}

/// The recorded answers of the conversation that a request belongs to.
fn conversation<'a>(
    transcript: &'a Transcript,
    question: Option<&str>,
    request: &GenerateRequest,
) -> &'a [RecordedAnswer] {
    question
        .and_then(|question| answers_to(transcript, question, request))
        .unwrap_or(&transcript.answers)
}

/// The answer at `index`, or the last one after the end; after a denial the one that is recorded for it. If the answer
/// calls tools and the request offers none, its recorded conclusion, or else the last answer.
fn choose<'a>(
    answers: &'a [RecordedAnswer],
    index: usize,
    request: &GenerateRequest,
) -> Option<&'a RecordedAnswer> {
    let last = answers.last();
    let mut answer = answers.get(index).or(last)?;
    if let Some(denied) = &answer.denied
        && is_denied(request)
    {
        answer = denied;
    }
    if !request.tools.is_empty() || !answer.calls_tools() {
        return Some(answer);
    }
    answer.conclusion.as_deref().or(last)
}

/// Whether a person has denied a call of the last answer.
fn is_denied(request: &GenerateRequest) -> bool {
    let behind = request.messages.iter().rev();
    behind
        .take_while(|message| message.role != ASSISTANT)
        .any(|message| message.content.contains(DENIED))
}
