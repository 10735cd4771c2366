//! The labels of an analysis: how models write them, and where a label ends and its text begins.

/// A line of the form that an analysis has (`prompts/answer_form.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
pub(super) enum Label {
    Cause,
    Sure,
    Now,
    Evidence,
    #[strum(serialize = "Do next")]
    Next,
    #[strum(serialize = "Not seen")]
    NotSeen,
}

crate::words!(pub(super) Label, ALL);

/// The words for the cause, in small letters, as models write them.
const CAUSES: [&str; 22] = [
    "cause",
    "causes",
    "root cause",
    "root causes",
    "root-cause",
    "likely cause",
    "likely root cause",
    "probable cause",
    "most likely cause",
    "verdict",
    "diagnosis",
    "root cause analysis",
    "conclusion",
    "ursache",
    "grundursache",
    "cause racine",
    "causa",
    "causa raíz",
    "causa raiz",
    "причина",
    "原因",
    "根本原因",
];
const SURE: [&str; 8] = [
    "sure",
    "sureness",
    "how sure",
    "confidence",
    "confidence level",
    "confidence score",
    "certainty",
    "likelihood",
];
const NOW: [&str; 6] = [
    "now",
    "state now",
    "status now",
    "current state",
    "current status",
    "is it still there",
];
const EVIDENCE: [&str; 7] = [
    "evidence",
    "key evidence",
    "supporting evidence",
    "proof",
    "facts",
    "key facts",
    "key findings",
];
const NEXT: [&str; 18] = [
    "do next",
    "next",
    "next step",
    "next steps",
    "what to do",
    "what to do next",
    "action",
    "actions",
    "immediate action",
    "immediate actions",
    "recommended action",
    "recommended actions",
    "recommendation",
    "recommendations",
    "remediation",
    "suggested fix",
    "fix",
    "mitigation",
];
const NOT_SEEN: [&str; 11] = [
    "not seen",
    "not checked",
    "not verified",
    "not certain",
    "what is not certain",
    "unknown",
    "unknowns",
    "open questions",
    "gaps",
    "limitations",
    "what i could not see",
];

impl Label {
    /// The spellings of models, in small letters.
    fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Cause => &CAUSES,
            Self::Sure => &SURE,
            Self::Now => &NOW,
            Self::Evidence => &EVIDENCE,
            Self::Next => &NEXT,
            Self::NotSeen => &NOT_SEEN,
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        let word = word.to_lowercase();
        let word = word.replace('_', " ");
        Self::ALL
            .into_iter()
            .find(|label| label.spellings().contains(&word.as_str()))
    }
}

/// A label with the text after it in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Labelled<'a> {
    pub(super) label: Label,
    /// The text after the label; empty if it begins in the next line.
    pub(super) text: &'a str,
    /// Whether the line is written as the form asks: the word, a colon, the text.
    pub(super) is_strict: bool,
}

impl<'a> Labelled<'a> {
    fn loose(label: Label, text: &'a str) -> Option<Self> {
        let is_strict = false;
        Some(Self {
            label,
            text,
            is_strict,
        })
    }
}

/// Marks of lists, headings, quotes and emphasis around a label.
const MARKS: [char; 9] = ['*', '_', '#', '>', '-', '•', '`', '|', ' '];

/// The label of a line: before a colon, as a heading, in bold, or as a row of a table.
pub(super) fn labelled(line: &str) -> Option<Labelled<'_>> {
    let line = line.trim();
    let bare = without_number(line);
    let bare = without_header(bare);
    if let Some((word, text)) = bare.split_once([':', '：'])
        && let Some(label) = Label::parse(word.trim_matches(MARKS))
    {
        let is_strict = word
            .trim_matches(MARKS)
            .eq_ignore_ascii_case(label.as_str());
        return Some(Labelled {
            label,
            text: without_emphasis(text),
            is_strict,
        });
    }
    if let Some(cells) = bare.strip_prefix('|') {
        let (word, text) = cells.split_once('|')?;
        let text = text.trim().trim_end_matches('|').trim();
        return Labelled::loose(Label::parse(word.trim_matches(MARKS))?, text);
    }
    let is_heading = line.starts_with('#') || is_bold(bare);
    if is_heading {
        let word = without_number(bare.trim_matches(MARKS));
        return Labelled::loose(Label::parse(word.trim_matches(MARKS))?, "");
    }
    said(bare)
}

/// Whether a line has the label of the cause, before a colon, as a heading, in bold or as a row of a table. A sentence
/// about the cause has none.
pub(crate) fn opens_cause(line: &str) -> bool {
    let line = line.trim();
    let is_cause = labelled(line).is_some_and(|found| found.label == Label::Cause);
    let bare = without_header(without_number(line));
    let has_colon = bare
        .split_once([':', '：'])
        .is_some_and(|(word, _)| Label::parse(word.trim_matches(MARKS)).is_some());
    is_cause && (has_colon || line.starts_with(['#', '|']) || is_bold(bare))
}

/// `Cause - text`, or a sentence such as "The root cause is a full disk."
fn said(bare: &str) -> Option<Labelled<'_>> {
    for separator in [" - ", " – ", " — ", " = "] {
        if let Some((word, text)) = bare.split_once(separator)
            && let Some(label) = Label::parse(word.trim_matches(MARKS))
        {
            return Labelled::loose(label, text.trim());
        }
    }
    let sentence = bare.trim_start_matches(MARKS);
    let start = sentence
        .get(..4)
        .filter(|start| start.eq_ignore_ascii_case("the "));
    let rest = sentence.get(start.map_or(0, str::len)..)?;
    let words = [" is ", " was "]
        .into_iter()
        .filter_map(|verb| rest.split_once(verb));
    let named = words
        .into_iter()
        .find(|(word, _)| CAUSES.contains(&word.trim_matches(MARKS).to_lowercase().as_str()));
    named.and_then(|(_, text)| Labelled::loose(Label::Cause, text.trim()))
}

/// A line without the header of the `ReAct` format.
fn without_header(line: &str) -> &str {
    let header = line.trim_start_matches(MARKS).strip_prefix("Final Answer");
    header.map_or(line, |behind| {
        behind
            .trim_start_matches(MARKS)
            .trim_start_matches(':')
            .trim_start_matches(MARKS)
    })
}

/// A line without the number of a list: `1. `, `2) `.
fn without_number(line: &str) -> &str {
    let bare = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match bare.strip_prefix(['.', ')']) {
        Some(rest) if bare.len() < line.len() => rest.trim_start(),
        Some(_) | None => line,
    }
}

fn is_bold(line: &str) -> bool {
    line.len() > 4 && line.starts_with("**") && line.ends_with("**")
}

/// A text without the emphasis that began before its label.
fn without_emphasis(text: &str) -> &str {
    let text = text.trim_start_matches(['*', '_', ' ']).trim_end();
    let unpaired = text.matches("**").count() % 2 == 1;
    if unpaired {
        text.strip_suffix("**").unwrap_or(text)
    } else {
        text
    }
}

/// Whether an analysis names its cause in this line, in any form, with or without a text.
pub(super) fn is_cause_line(line: &str) -> bool {
    let is_mark = |c: char| !c.is_alphanumeric();
    let text = line
        .trim_start_matches(|c: char| is_mark(c) || c.is_ascii_digit())
        .to_lowercase();
    let text = text
        .strip_prefix("final answer")
        .map_or(text.as_str(), |behind| behind.trim_start_matches(is_mark));
    let text = text.strip_prefix("the ").unwrap_or(text);
    CAUSES.iter().any(|word| {
        let Some(behind) = text.strip_prefix(word) else {
            return false;
        };
        let behind = behind.trim_start_matches(['*', '_', '`', '"', '\'', ' ', ')']);
        let is_label =
            behind.is_empty() || behind.starts_with([':', '：', '|', '=', '-', '–', '—', '(']);
        is_label
            || behind.starts_with("is ")
            || behind.starts_with("was ")
            || behind.starts_with("of ")
    })
}
