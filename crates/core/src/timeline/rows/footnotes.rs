//! Converts citations of an analysis into footnotes: marks after the cited words, and a list of the sources.
//!
//! Citations are metadata of an event and may be malformed: a citation whose offsets do not fit the text is ignored.

use std::collections::BTreeMap;

use serde_json::Value;

use super::meta::Meta;
use crate::readable::text::{Charset, one_line};

/// A longer list of sources is not readable.
const MAX_SOURCES: usize = 99;

/// A text with marks, and the sources of the marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footnotes {
    /// The content with `[^1]` after the words that cite the first source; it is not cleaned.
    pub text: String,
    sources: Vec<CitedPage>,
}

/// A cited page, cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedPage {
    pub title: String,
    pub uri: String,
}

/// The footnotes of `content`; `citations` is the value of that key in the event's metadata.
pub fn footnotes(content: &str, citations: Option<&Value>) -> Footnotes {
    let mut cited: BTreeMap<usize, Vec<CitedPage>> = BTreeMap::new();
    for citation in citations.and_then(Value::as_array).into_iter().flatten() {
        if let Some(offset) = mark_offset(content, citation) {
            cited.entry(offset).or_default().extend(sources(citation));
        }
    }
    let mut notes = Footnotes {
        text: String::with_capacity(content.len()),
        sources: Vec::new(),
    };
    let mut done = 0;
    for (offset, sources) in cited {
        let before = content.get(done..offset).unwrap_or_default();
        notes.text.push_str(before);
        done = offset;
        let numbers = notes.numbers(sources);
        // A mark on the line of a fence would break the code block.
        let line = notes
            .text
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start();
        if !numbers.is_empty() && (line.starts_with("```") || line.starts_with("~~~")) {
            notes.text.push('\n');
        }
        numbers
            .iter()
            .for_each(|number| notes.text.push_str(&mark(*number)));
    }
    notes.text.push_str(content.get(done..).unwrap_or_default());
    notes
}

/// `[^1]`, which differs from `[1]`, the number of an event.
fn mark(number: usize) -> String {
    format!("[^{number}]")
}

/// The byte offset of a citation's mark, after the last cited word; `None` if the citation does not fit the text.
fn mark_offset(content: &str, citation: &Value) -> Option<usize> {
    let byte = |key| usize::try_from(citation.get(key)?.as_u64()?).ok();
    let start = byte("start")?;
    let words = content.get(start..byte("end")?)?;
    if citation
        .get("text")
        .and_then(Value::as_str)
        .is_some_and(|text| text != words)
    {
        return None;
    }
    let length = words.trim_end().len();
    (length > 0).then_some(start + length)
}

fn sources(citation: &Value) -> impl Iterator<Item = CitedPage> {
    let text = |source: &Value, key| {
        Meta::new(source, Charset::Unicode)
            .text(key)
            .unwrap_or_default()
    };
    let sources = Meta::new(citation, Charset::Unicode).list("sources").iter();
    let sources = sources.map(move |source| CitedPage {
        title: text(source, "title"),
        uri: text(source, "uri"),
    });
    sources.filter(|source| !(source.title.is_empty() && source.uri.is_empty()))
}

impl Footnotes {
    /// A text without sources.
    pub fn none(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            sources: Vec::new(),
        }
    }

    /// The numbers of the sources, from 1; each page has one number however often it is cited.
    fn numbers(&mut self, sources: Vec<CitedPage>) -> Vec<usize> {
        let mut numbers = Vec::new();
        for source in sources {
            let known = self.sources.iter().position(|known: &CitedPage| {
                known.uri == source.uri && (!source.uri.is_empty() || *known == source)
            });
            let index = match known {
                Some(index) => index,
                None if self.sources.len() >= MAX_SOURCES => continue,
                None => {
                    self.sources.push(source);
                    self.sources.len() - 1
                }
            };
            if !numbers.contains(&(index + 1)) {
                numbers.push(index + 1);
            }
        }
        numbers.sort_unstable();
        numbers
    }

    /// The sources, one line each: mark, title and address, cleaned.
    pub fn source_lines(&self, charset: Charset) -> Vec<String> {
        self.sources()
            .map(|(mark, CitedPage { title, uri }): (String, &CitedPage)| {
                let title = if title == uri { "" } else { title };
                one_line(&[mark.as_str(), title, uri].join(" "), charset)
            })
            .collect()
    }

    /// The sources with their marks.
    pub fn sources(&self) -> impl Iterator<Item = (String, &CitedPage)> {
        (1..)
            .zip(&self.sources)
            .map(|(number, source)| (mark(number), source))
    }
}
