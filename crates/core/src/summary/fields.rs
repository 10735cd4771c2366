//! Reads the fields of an analysis.

use serde::Serialize;
use serde_json::{Map, Value};

use super::MAX_LINES;
use super::labels::{Label, Labelled, labelled};
use super::second_look::above;
use super::sure::Sure;
use crate::code::{FenceMark, ends, fence};

/// Facts that are kept; the analysis has all of them.
const MAX_EVIDENCE: usize = 12;

/// The fields of an analysis, by the labels of its form. A field that it lacks is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fields {
    pub cause: Option<String>,
    /// The word of the model; nothing checks it.
    pub sure: Option<Sure>,
    /// The reason for the word, or the whole text of the line if its word is unknown.
    pub sure_why: String,
    /// Whether the problem is still there.
    pub now: Option<String>,
    /// The facts of the evidence, at most twelve, each with its source in brackets.
    pub evidence: Vec<String>,
    pub next: Option<String>,
    /// The evidence that was not available, and the question that it would settle.
    pub not_seen: Option<String>,
    #[serde(skip)]
    pub form: Form,
}

/// The degree to which an analysis keeps to its form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// The analysis begins with the line `Cause: …`.
    Kept,
    /// The analysis names its cause in another way or in another place.
    Loose,
    /// The analysis names no cause.
    #[default]
    Missing,
}

impl Fields {
    /// The fields as lines, in the order of the form.
    pub fn lines(&self) -> Vec<String> {
        let of = |label: Label, text: &str| format!("{}: {text}", label.as_str());
        let one = |label: Label, text: Option<&String>| text.map(|text| of(label, text));
        let mut lines: Vec<String> = Vec::new();
        lines.extend(one(Label::Cause, self.cause.as_ref()));
        lines.extend(self.sureness().map(|text| of(Label::Sure, &text)));
        lines.extend(one(Label::Now, self.now.as_ref()));
        lines.extend(self.evidence.iter().map(|fact| of(Label::Evidence, fact)));
        lines.extend(one(Label::Next, self.next.as_ref()));
        lines.extend(one(Label::NotSeen, self.not_seen.as_ref()));
        lines
    }

    /// The line `Sure`: the word, then what it rests on.
    pub fn sureness(&self) -> Option<String> {
        match (self.sure, self.sure_why.as_str()) {
            (None, "") => None,
            (None, why) => Some(why.to_owned()),
            (Some(sure), "") => Some(sure.as_str().to_owned()),
            (Some(sure), why) => Some(format!("{}, {why}", sure.as_str())),
        }
    }

    /// Cause and evidence, which have to cite the results that they rest on. An analysis without a field for its
    /// evidence may have it anywhere, so it is taken whole.
    pub(crate) fn claims(&self, analysis: &str) -> String {
        if self.evidence.is_empty() {
            return analysis.to_owned();
        }
        let cause = self.cause.iter().map(String::as_str);
        cause
            .chain(self.evidence.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn has(&self, label: Label) -> bool {
        match label {
            Label::Cause => self.cause.is_some(),
            Label::Sure => self.sureness().is_some(),
            Label::Now => self.now.is_some(),
            Label::Evidence => !self.evidence.is_empty(),
            Label::Next => self.next.is_some(),
            Label::NotSeen => self.not_seen.is_some(),
        }
    }

    /// Adds a text to a field. Further items of a list belong to the field that they follow.
    fn add(&mut self, label: Label, text: &str) {
        let text = text.trim().replace(['\n', '\r'], " ");
        let text = text.as_str();
        if text.is_empty() {
            return;
        }
        match label {
            Label::Cause => append(&mut self.cause, text),
            Label::Sure if !self.has(Label::Sure) => {
                let (sure, why) = Sure::parse(text);
                (self.sure, self.sure_why) = (sure, why.to_owned());
            }
            Label::Sure if self.sure_why.is_empty() => text.clone_into(&mut self.sure_why),
            Label::Sure => {}
            Label::Now => append(&mut self.now, text),
            Label::Evidence if self.evidence.len() < MAX_EVIDENCE => {
                self.evidence.push(text.to_owned())
            }
            Label::Evidence => {}
            Label::Next => append(&mut self.next, text),
            Label::NotSeen => append(&mut self.not_seen, text),
        }
    }
}

fn append(field: &mut Option<String>, text: &str) {
    *field = Some(match field.take() {
        Some(before) => format!("{}; {text}", before.trim_end_matches([';', ','])),
        None => text.to_owned(),
    });
}

/// The fields of an analysis: those that its first sixty lines name.
pub fn fields(analysis: &str) -> Fields {
    if let Some(found) = of_object(analysis) {
        return found;
    }
    let mut found = Fields::default();
    let mut reader = FieldReader::default();
    let mut is_first = true;
    let lines = above(analysis)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(MAX_LINES);
    for line in lines {
        let label = reader.read(line, &mut found);
        if is_first && !line.starts_with('#') {
            let is_kept = label.is_some_and(|label| label.is_strict && label.label == Label::Cause);
            found.form = if is_kept { Form::Kept } else { Form::Loose };
            is_first = false;
        }
    }
    if found.cause.is_none() {
        found.form = Form::Missing;
    }
    found
}

/// The analysis without the lines at its beginning that are its fields; whole if it begins with none.
pub fn below(analysis: &str) -> &str {
    let mut found = Fields::default();
    let mut reader = FieldReader::default();

    let mut at = 0;
    let mut end = 0;

    for line in analysis.split_inclusive('\n').take(MAX_LINES) {
        at += line.len();
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') && labelled(line).is_none() && end == 0 {
            continue;
        }
        let before = found.clone();
        let label = reader.read(line, &mut found);
        let opens = label.is_some_and(|label| reader.open == Some(label.label));
        if found == before && !opens && reader.code.is_none() {
            break;
        }
        end = at;
    }
    analysis.get(end..).unwrap_or_default().trim()
}

/// The fields of an analysis that is one JSON object, with or without a fence around it.
fn of_object(analysis: &str) -> Option<Fields> {
    let bare = analysis
        .trim()
        .trim_start_matches("```json")
        .trim_matches('`')
        .trim();
    let members: Map<String, Value> =
        serde_json::from_str(bare.strip_prefix('{').map(|_| bare)?).ok()?;
    let mut found = Fields::default();
    for (key, value) in &members {
        let Some(label) = Label::parse(key).filter(|label| !found.has(*label)) else {
            continue;
        };
        match value {
            Value::String(text) => found.add(label, text),
            Value::Array(items) => items
                .iter()
                .filter_map(Value::as_str)
                .for_each(|item| found.add(label, item)),
            Value::Number(number) => found.add(label, &number.to_string()),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
    }
    if found.cause.is_some() {
        found.form = Form::Loose;
    }
    Some(found)
}

/// The field that the next line may belong to.
#[derive(Default)]
struct FieldReader {
    open: Option<Label>,
    /// The fence of the block of code around the line.
    code: Option<FenceMark>,
}

impl FieldReader {
    /// Reads a line, and returns its label.
    fn read<'l>(&mut self, line: &'l str, found: &mut Fields) -> Option<Labelled<'l>> {
        match (self.code, fence(line)) {
            (Some(mark), _) if ends(line, mark) => self.code = None,
            (Some(_), _) => self.command(line, found),
            (None, Some(mark)) => self.code = Some(mark),
            (None, None) => return self.outside_of_code(line, found),
        }
        None
    }

    fn outside_of_code<'l>(&mut self, line: &'l str, found: &mut Fields) -> Option<Labelled<'l>> {
        let label = labelled(line);
        match label {
            Some(Labelled { label, text, .. }) if !found.has(label) || self.open == Some(label) => {
                found.add(label, text);
                // A label with a text is whole; facts may follow in a list.
                let goes_on = text.is_empty() || label == Label::Evidence;
                self.open = goes_on.then_some(label);
            }
            Some(_) => self.open = None,
            None => self.text(line, found),
        }
        label
    }

    /// A command below the label `Do next`.
    fn command(&self, line: &str, found: &mut Fields) {
        if self.open == Some(Label::Next) && !line.contains('`') {
            found.add(Label::Next, &format!("`{line}`"));
        }
    }

    /// A line without a label.
    fn text(&mut self, line: &str, found: &mut Fields) {
        let Some(label) = self.open else { return };
        // A model may quote its whole report.
        let line = line.trim_start_matches(['>', ' ']);
        match item(line) {
            Some(text) => found.add(label, text),
            // This line is the text of a label that stands alone. A paragraph after a list is no item of it.
            None if !found.has(label) && !line.starts_with('#') => {
                found.add(label, line);
                self.open =
                    Some(label).filter(|label| matches!(label, Label::Evidence | Label::Next));
            }
            None => self.open = None,
        }
    }
}

/// The text of an item of a list.
fn item(line: &str) -> Option<&str> {
    let marked = ["- ", "* ", "• ", "+ "]
        .into_iter()
        .find_map(|mark| line.strip_prefix(mark));
    marked.or_else(|| {
        let behind = line.trim_start_matches(|c: char| c.is_ascii_digit());
        (behind.len() < line.len())
            .then_some(behind)?
            .strip_prefix(['.', ')'])?
            .strip_prefix(' ')
    })
}
