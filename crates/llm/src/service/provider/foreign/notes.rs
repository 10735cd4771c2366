//! Writes the work of a provider as short text.
//!
//! The text is bounded as a whole and in each of its parts. Titles, queries and addresses have one line each;
//! programs and outputs are in fences that they cannot close.

use super::work::{FoundPage, ReadPage, Work};
use tarsy_core::native::{CodePart, runs};

const BEGIN: &str = "[Notes on this answer: work of the model's provider]";
const END: &str = "[End of the notes]";
const MORE: &str = "(more was left out)";

const MAX_BYTES: usize = 8 * 1024;
const MAX_QUERIES: usize = 10;
const MAX_PAGES: usize = 20;
const MAX_RUNS: usize = 6;
/// The limit of a query or a title, in bytes.
const MAX_WORDS_BYTES: usize = 200;
/// A longer address is left out: a part of it would lead nowhere.
const MAX_URL_BYTES: usize = 1_000;
const MAX_CODE_BYTES: usize = 1_500;
const MAX_OUTPUT_BYTES: usize = 1_500;
const MAX_THOUGHTS_BYTES: usize = 2_000;
const STATUS_PREFIX: &str = "URL_RETRIEVAL_STATUS_";

/// The notes; `None` without any work.
pub(super) fn write(work: &Work) -> Option<String> {
    let mut notes = Notes::default();
    let queries: Vec<String> = work
        .sources
        .queries
        .iter()
        .take(MAX_QUERIES)
        .map(|query| one_line(query))
        .collect();
    if !queries.is_empty() {
        notes.add(&format!("Searched the web for: {}", queries.join("; ")));
    }
    notes.list("Found:", work.sources.found.iter().filter_map(found_page));
    notes.list("Read:", work.sources.read.iter().filter_map(read_page));
    let code: Vec<CodePart> = work.code.iter().map(shortened_code).collect();
    let runs = runs(&code);
    for run in runs.iter().take(MAX_RUNS) {
        let outcome = if run.has_failed() {
            "Ran code, which failed:"
        } else {
            "Ran code:"
        };
        notes.add(&format!("{outcome}\n{}", run.content().trim()));
    }
    notes.is_cut |= runs.len() > MAX_RUNS || work.sources.queries.len() > MAX_QUERIES;
    let thoughts = work.thoughts.join("\n");
    if !thoughts.trim().is_empty() {
        let quoted: Vec<String> = shortened(thoughts.trim(), MAX_THOUGHTS_BYTES)
            .lines()
            .map(|line| format!("> {line}"))
            .collect();
        notes.add(&format!("Thought:\n{}", quoted.join("\n")));
    }
    notes.finish()
}

/// Blocks of text up to the limit.
#[derive(Debug, Default)]
struct Notes {
    text: String,
    is_cut: bool,
}

impl Notes {
    fn add(&mut self, block: &str) {
        if self.text.len() + block.len() > MAX_BYTES - BEGIN.len() - MORE.len() - END.len() - 3 {
            self.is_cut = true;
        } else {
            self.text.push_str(block);
            self.text.push('\n');
        }
    }

    fn list(&mut self, heading: &str, items: impl Iterator<Item = String>) {
        let mut items = items.peekable();
        if items.peek().is_some() {
            self.add(heading);
        }
        items
            .by_ref()
            .take(MAX_PAGES)
            .for_each(|item| self.add(&format!("- {item}")));
        self.is_cut |= items.next().is_some();
    }

    fn finish(mut self) -> Option<String> {
        if self.text.is_empty() {
            return None;
        }
        if self.is_cut {
            self.text.push_str(MORE);
            self.text.push('\n');
        }
        Some(format!("{BEGIN}\n{}{END}", self.text))
    }
}

fn found_page(page: &FoundPage) -> Option<String> {
    let url = plain_url(&page.url)?;
    let title = one_line(&page.title);
    Some(if title.is_empty() || title == url {
        url
    } else {
        format!("{title}: {url}")
    })
}

fn read_page(page: &ReadPage) -> Option<String> {
    let url = plain_url(&page.url)?;
    let status = page.status.strip_prefix(STATUS_PREFIX);
    let status = one_line(status.unwrap_or(&page.status)).to_lowercase();
    Some(if status.is_empty() {
        url
    } else {
        format!("{url} ({status})")
    })
}

/// The address as it is, unless it is too long or has a character that an address cannot have.
fn plain_url(url: &str) -> Option<String> {
    let is_whole =
        url.len() <= MAX_URL_BYTES && !url.chars().any(|c| c.is_whitespace() || c.is_control());
    is_whole.then(|| url.to_owned())
}

/// Words in one line, without the brackets that begin and end the notes.
fn one_line(words: &str) -> String {
    let words: String = words
        .chars()
        .map(|c| match c {
            '[' => '(',
            ']' => ')',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.len() <= MAX_WORDS_BYTES {
        return words;
    }
    let end = words.floor_char_boundary(MAX_WORDS_BYTES);
    format!("{}…", words.get(..end).unwrap_or_default())
}

fn shortened_code(part: &CodePart) -> CodePart {
    CodePart {
        code: shortened(&part.code, MAX_CODE_BYTES),
        result: shortened(&part.result, MAX_OUTPUT_BYTES),
        ..part.clone()
    }
}

/// The beginning and the end of a long text.
fn shortened(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let head = text
        .get(..text.floor_char_boundary(max_bytes / 2))
        .unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - max_bytes / 2)..)
        .unwrap_or_default();
    format!(
        "{head}\n… {} bytes left out …\n{tail}",
        text.len() - head.len() - tail.len()
    )
}
