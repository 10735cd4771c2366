//! The backend `scripted`: replays a transcript instead of asking a model.
//!
//! For drills, tests and benchmarks. The place in the transcript is the number of assistant messages in the request,
//! so every replica gives the same answer. What it sends always comes from a recording and says so where a person
//! could take it for a finding of a model (`generic.rs`).

mod calls;
mod citations;
mod generic;
mod native;
mod play;
mod state;
mod window;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use self::calls::{CallLog, Place};
use self::play::Player;
use super::reply::Reply;
use crate::drill::BUILTIN;
use crate::drill::gate::Gates;
use crate::drill::transcript::{Answer, Fail, Transcript, TranscriptError};
use crate::llm::proto::{ConversationMessage, GenerateRequest, TRANSCRIPT_OPTION};

/// What an operator or a test may want of it; the default replays the built-in transcripts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Transcripts beside the built-in ones; the first that fits is taken, these before those, one of the request's
    /// agent before all others.
    pub transcripts: Vec<Transcript>,
    /// Where the gates are.
    pub gates: Gates,
    /// Waits in every answer at `answer-<index>-start`, `-middle` (half of the text is sent) and `-end`.
    pub gate_every_answer: bool,
    /// A file that gets one JSON line `{"execution_id","index","request_id"}` a call.
    pub calls_file: Option<PathBuf>,
    /// The pause between two pieces of text; `None` for that of the transcript.
    pub pace: Option<Duration>,
}

/// The backend.
#[derive(Debug)]
pub struct Scripted {
    transcripts: Vec<Transcript>,
    gates: Gates,
    gate_every_answer: bool,
    calls: CallLog,
    pace: Option<Duration>,
}

impl Scripted {
    /// A backend with these options.
    ///
    /// # Errors
    /// When a built-in transcript is none.
    pub fn new(options: Options) -> Result<Self, TranscriptError> {
        let mut transcripts = options.transcripts;
        for drill in BUILTIN {
            for text in drill.transcripts {
                transcripts.push(Transcript::parse(text)?);
            }
        }
        Ok(Self {
            transcripts,
            gates: options.gates,
            gate_every_answer: options.gate_every_answer,
            calls: CallLog::new(options.calls_file),
            pace: options.pace,
        })
    }

    pub(super) async fn generate(&self, request: &GenerateRequest, reply: &Reply) {
        let index = request.messages.iter().filter(|message| message.role == ASSISTANT).count();
        let place = Place { execution_id: &request.execution_id, index };
        if let Err(error) = self.calls.record(place, &request.request_id).await {
            return reply.error("internal", &format!("calls file: {error}")).await;
        }
        let generic;
        let question = generic::question(prompt(request));
        let transcript = match self.pick(request) {
            Ok(Some(found)) if question.as_deref().is_none_or(|text| answer_to(found, text).is_some()) => found,
            Ok(_) => {
                generic = question.as_deref().map_or_else(|| generic::transcript(prompt(request)), generic::answer);
                &generic
            }
            Err(message) => return reply.error("invalid_request", &message).await,
        };
        if transcript.provider_state
            && let Err(message) = state::check(request)
        {
            return reply.error("provider_state", &message).await;
        }
        let tokens = window::tokens(request);
        if let Some(window) = transcript.context_window.filter(|window| tokens > *window) {
            let message = format!("prompt is too long: {tokens} tokens > {window} maximum");
            return reply.error("context_window_exceeded", &message).await;
        }
        let answers = asked(transcript, question.as_deref());
        let Some(answer) = choose(answers, index, !request.tools.is_empty()) else {
            return reply.error("invalid_request", &format!("transcript '{}' has no answer", transcript.name)).await;
        };
        let fail = match self.due_failure(answer, place).await {
            Ok(fail) => fail,
            Err(error) => return reply.error("internal", &format!("calls file: {error}")).await,
        };
        let mut answer = citations::filled(answer, request);
        if transcript.context_window.is_some() {
            answer.usage.get_or_insert_with(|| window::usage(tokens, &answer.chunks));
        }
        let player = Player {
            gates: &self.gates,
            gate_every_answer: self.gate_every_answer,
            pace: self.pace.unwrap_or(transcript.pace),
            state: transcript.provider_state.then(|| state::of(&request.execution_id, index)),
            place,
            fail,
        };
        player.play(&answer, reply).await;
    }

    /// The recorded error, as long as it is this call's turn to get it.
    async fn due_failure<'a>(&self, answer: &'a Answer, place: Place<'_>) -> io::Result<Option<&'a Fail>> {
        let Some(fail) = &answer.fail else {
            return Ok(None);
        };
        let due = match fail.times {
            Some(times) => self.calls.count(place).await? <= times,
            None => true,
        };
        Ok(due.then_some(fail))
    }

    /// The first that fits, one of the request's agent before one for all.
    fn first(&self, request: &GenerateRequest, fits: impl Fn(&Transcript) -> bool) -> Option<&Transcript> {
        let system = request.messages.first().map(|message| message.content.as_str()).unwrap_or_default();
        let fitting = || self.transcripts.iter().filter(|transcript| fits(transcript) && transcript.is_for(system));
        fitting().find(|transcript| transcript.agent.is_some()).or_else(|| fitting().next())
    }

    /// The transcript that the request names or whose text its prompt contains.
    fn pick(&self, request: &GenerateRequest) -> Result<Option<&Transcript>, String> {
        let option = request.llm_config.as_ref().and_then(|config| config.options.get(TRANSCRIPT_OPTION));
        let Some(name) = option.filter(|name| !name.is_empty()) else {
            return Ok(self.first(request, |transcript| fits(transcript, prompt(request))));
        };
        if name == generic::NAME {
            return Ok(None);
        }
        let found = self.first(request, |transcript| transcript.name == *name);
        found.map(Some).ok_or_else(|| {
            let mut known: Vec<_> = self.transcripts.iter().map(|transcript| transcript.name.as_str()).collect();
            known.dedup();
            format!("no transcript '{name}'. Available transcripts: {}, {}", known.join(", "), generic::NAME)
        })
    }
}

const ASSISTANT: &str = "assistant";

/// The messages before the first answer: what tools say later cannot change the transcript.
fn prompt(request: &GenerateRequest) -> impl Iterator<Item = &ConversationMessage> {
    request.messages.iter().take_while(|message| message.role != ASSISTANT)
}

fn fits<'a>(transcript: &Transcript, mut prompt: impl Iterator<Item = &'a ConversationMessage>) -> bool {
    transcript.matches.as_ref().is_some_and(|text| prompt.any(|message| message.content.contains(text)))
}

/// What a transcript says to a follow-up question.
fn answer_to<'a>(transcript: &'a Transcript, question: &str) -> Option<&'a [Answer]> {
    let question = question.to_lowercase();
    let found = transcript.questions.iter().find(|known| question.contains(&known.matches.to_lowercase()));
    found.map(|known| known.answers.as_slice())
}

/// The answers of the conversation that a request belongs to.
fn asked<'a>(transcript: &'a Transcript, question: Option<&str>) -> &'a [Answer] {
    question.and_then(|question| answer_to(transcript, question)).unwrap_or(&transcript.answers)
}

/// The answer at `index`, the last one behind the end. Where tools would be called and none are offered, what was
/// recorded for that case, else the last answer.
fn choose(answers: &[Answer], index: usize, tools_offered: bool) -> Option<&Answer> {
    let last = answers.last();
    let answer = answers.get(index).or(last)?;
    if tools_offered || !answer.calls_tools() {
        return Some(answer);
    }
    answer.conclusion.as_deref().or(last)
}
