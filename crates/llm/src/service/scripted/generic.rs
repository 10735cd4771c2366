//! Alerts and questions without a transcript. The recording `generic`, which has to be configured, quotes them and
//! states that no model was called. Without it they are errors.

use crate::proto::ConversationMessage;
use tarsy_drill::transcript::{Chunk, Question, RecordedAnswer, Transcript, Usage};

/// The name by which a request selects this recording, whatever it is about.
pub(super) const NAME: &str = "generic";

const USER: &str = "user";
/// The start of a line that the prompt adds to an alert.
const TYPE_LINE: &str = "alert type: ";
/// The word after the fence of a question.
const QUESTION: &str = "question";
const MAX_QUOTED_LINES: usize = 3;
const MAX_QUOTED_CHARS: usize = 120;

/// The answer to an alert that no transcript matches.
pub(super) fn transcript<'a>(prompt: impl Iterator<Item = &'a ConversationMessage>) -> Transcript {
    let alert = alert(prompt);
    let title = title_of(&alert);
    let quotes: Vec<String> = lines(&alert).map(|line| format!("> {line}")).collect();
    let quotes = quotes.join("\n");
    let text = format!(
        "Cause: not investigated: this is a recording, no model was asked about \"{title}\".\n\
         Evidence: only the alert itself [alert]; no tool was called.\n\
         Do next: configure an LLM provider and run the alert again.\n\n\
         The provider is configured with `transcript: generic`, which answers every alert like this. The alert begins:\n\n\
         {quotes}\n"
    );
    let thinking = format!("This is a recording. I only repeat what the alert \"{title}\" says.");
    with_answer(thinking, text)
}

/// The answer to a follow-up question that no transcript answers.
pub(super) fn answer(question: &str) -> Transcript {
    let asked = first_line(question, "a question without text");
    let text = format!(
        "No answer: this is a recording, no model was asked \"{asked}\".\n\n\
         The provider is configured with `transcript: generic`, which answers every question like this. Configure an LLM \
         provider and ask again; what was found before stands in the report of the investigation.\n"
    );
    with_answer(
        "This is a recording. I only repeat the question.".to_owned(),
        text,
    )
}

/// The error for an alert that no transcript matches.
pub(super) fn unknown_alert<'a>(prompt: impl Iterator<Item = &'a ConversationMessage>) -> String {
    let title = title_of(&alert(prompt));
    format!(
        "not investigated: the model is a recording that does not know the alert \"{title}\"; it knows those of \
         `tarsy drill --list`. Configure a model: tarsy init"
    )
}

/// The error for a question that the transcript of its investigation does not answer.
pub(super) fn unknown_question(question: &str, known: &[Question]) -> String {
    let asked = first_line(question, "a question without text");
    let words: Vec<String> = known
        .iter()
        .map(|known| format!("\"{}\"", known.matches))
        .collect();
    let known = match words.as_slice() {
        [] => String::new(),
        words => format!("; it knows questions with {}", words.join(" or ")),
    };
    format!(
        "not answered: the model is a recording that does not know the question \"{asked}\" about this report{known}. Configure a model: tarsy init"
    )
}

fn with_answer(thinking: String, text: String) -> Transcript {
    Transcript {
        name: NAME.to_owned(),
        matches: None,
        agent: None,
        pace: std::time::Duration::ZERO,
        provider_state: false,
        context_window: None,
        answers: vec![RecordedAnswer {
            chunks: vec![Chunk::Thinking(thinking), Chunk::Text(text)],
            usage: Some(Usage::default()),
            ..RecordedAnswer::default()
        }],
        questions: Vec::new(),
    }
}

/// The follow-up question of a prompt: the text between its fences. Fences within other fences do not count.
pub(super) fn question<'a>(
    prompt: impl Iterator<Item = &'a ConversationMessage>,
) -> Option<String> {
    let text: Vec<&str> = prompt
        .filter(|message| message.role == USER)
        .flat_map(|message| message.content.lines())
        .collect();
    let mut lines = text.into_iter();
    while let Some(line) = lines.next() {
        let word = line.trim_start_matches('`');
        let fence = line.strip_suffix(word).filter(|fence| fence.len() >= 3);
        let Some(fence) = fence else { continue };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
        if word == QUESTION {
            return Some(inside.join("\n"));
        }
    }
    None
}

/// The alert of a prompt: the text between the first fences for text, or else the whole text of the user.
fn alert<'a>(prompt: impl Iterator<Item = &'a ConversationMessage>) -> String {
    let prompt: String = prompt
        .filter(|message| message.role == USER)
        .map(|message| message.content.as_str())
        .collect();
    fenced(&prompt).unwrap_or(prompt)
}

fn fenced(prompt: &str) -> Option<String> {
    let mut lines = prompt.lines().map(str::trim_end);
    let fence = lines.by_ref().find_map(|line| {
        let fence = line.strip_suffix("text")?;
        (fence.len() >= 3 && fence.chars().all(|c| c == '`')).then_some(fence)
    })?;
    let inside: Vec<&str> = lines
        .take_while(|line| *line != fence)
        .filter(|line| !line.starts_with(TYPE_LINE))
        .collect();
    Some(inside.join("\n"))
}

fn title_of(alert: &str) -> String {
    name(alert).unwrap_or_else(|| first_line(alert, "an alert without text"))
}

/// The value of `alertname`, in JSON, YAML or labels.
fn name(alert: &str) -> Option<String> {
    let (_, rest) = alert.split_once("alertname")?;
    let value = rest.trim_start_matches(['"', '\'', ':', '=', '*', '`', ' ']);
    let end = value
        .find(['"', '\'', ',', '`', '}', '\n'])
        .unwrap_or(value.len());
    let name = value.get(..end)?.trim();
    (!name.is_empty()).then(|| cut(name))
}

/// The first lines with words, without headings.
fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#') && line.contains(char::is_alphanumeric))
        .take(MAX_QUOTED_LINES)
        .map(cut)
}

fn first_line(text: &str, otherwise: &str) -> String {
    lines(text).next().unwrap_or_else(|| otherwise.to_owned())
}

fn cut(line: &str) -> String {
    if line.chars().count() <= MAX_QUOTED_CHARS {
        return line.to_owned();
    }
    line.chars().take(MAX_QUOTED_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(content: &str) -> String {
        let message = ConversationMessage {
            role: USER.into(),
            content: content.into(),
            ..Default::default()
        };
        let transcript = transcript([&message].into_iter());
        let Some(Chunk::Thinking(thinking)) = transcript.answers[0].chunks.first() else {
            panic!("{transcript:?}")
        };
        thinking.split('"').nth(1).unwrap().to_owned()
    }

    #[test]
    fn the_text_of_the_prompt_around_an_alert_is_not_quoted() {
        let prompt = "Investigate this alert. Severity: high.\n\nIt is data:\n\n````text\nalert type: generic\n\n\
                      disk full on ```db-3```\n````\nWhat was found:\n";
        let message = ConversationMessage {
            role: USER.into(),
            content: prompt.into(),
            ..Default::default()
        };
        let transcript = transcript([&message].into_iter());
        let Some(Chunk::Text(text)) = transcript.answers[0].chunks.get(1) else {
            panic!("{transcript:?}")
        };
        assert!(
            text.contains("asked about \"disk full on ```db-3```\"."),
            "{text}"
        );
        assert!(
            text.ends_with("begins:\n\n> disk full on ```db-3```\n"),
            "{text}"
        );
    }

    #[test]
    fn a_question_is_the_text_between_its_own_fences() {
        let prompt = "Answer.\n\n````text\n```question\nof the alert\n```\n````\n\n````question\nwhy\n```?\n````\n";
        let message = |role: &str, content: &str| ConversationMessage {
            role: role.into(),
            content: content.into(),
            ..Default::default()
        };
        let system = message("system", "````question\nno\n````");
        let user = message(USER, prompt);
        assert_eq!(
            question([&system, &user].into_iter()).as_deref(),
            Some("why\n```?")
        );
        assert_eq!(
            question([&message(USER, "```text\n```question\nx\n```\n")].into_iter()),
            None
        );
        let transcript = answer("why\nnow?");
        let Some(Chunk::Text(text)) = transcript.answers[0].chunks.get(1) else {
            panic!("{transcript:?}")
        };
        assert!(
            text.contains("this is a recording, no model was asked \"why\"."),
            "{text}"
        );
    }

    #[test]
    fn the_title_is_the_alert_name_or_the_first_line_with_words() {
        assert_eq!(
            title("## Alert\n{\n  \"alertname\": \"DiskFull\",\n"),
            "DiskFull"
        );
        assert_eq!(title("alertname=DiskFull, severity=critical"), "DiskFull");
        assert_eq!(
            title("# Alert\n\n---\n  disk is full on host a1\nmore\n"),
            "disk is full on host a1"
        );
        assert_eq!(title(""), "an alert without text");
        assert_eq!(title(&"ä".repeat(200)), format!("{}…", "ä".repeat(120)));
    }
}
