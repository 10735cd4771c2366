//! Citations of an analysis as footnotes: marks behind the cited words, and a list of the sources.
//!
//! Citations are metadata of an event and may be malformed: a citation whose offsets do not fit the text is ignored.

use std::collections::BTreeMap;

use serde_json::Value;

use super::meta::Meta;
use crate::cli::render::style::Charset;

/// A longer list of sources is not readable.
const MAX_SOURCES: usize = 99;

/// A text with marks, and the sources of the marks.
#[derive(Debug)]
pub(crate) struct Footnotes {
    /// Has `[^1]` behind the words that cite the first source; not cleaned.
    pub(crate) text: String,
    sources: Vec<Source>,
}

/// A cited page, cleaned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) title: String,
    pub(crate) uri: String,
}

/// The footnotes of `content`; `citations` is the value of that key in the event's metadata.
pub(crate) fn footnotes(content: &str, citations: Option<&Value>) -> Footnotes {
    let mut cited: BTreeMap<usize, Vec<Source>> = BTreeMap::new();
    for citation in citations.and_then(Value::as_array).into_iter().flatten() {
        if let Some(offset) = mark_offset(content, citation) {
            cited.entry(offset).or_default().extend(sources(citation));
        }
    }
    let mut notes = Footnotes { text: String::with_capacity(content.len()), sources: Vec::new() };
    let mut done = 0;
    for (offset, sources) in cited {
        let before = content.get(done..offset).unwrap_or_default();
        notes.text.push_str(before);
        done = offset;
        let numbers = notes.numbers(sources);
        // A mark on the line of a fence would break the code block.
        let line = notes.text.rsplit('\n').next().unwrap_or_default().trim_start();
        if !numbers.is_empty() && (line.starts_with("```") || line.starts_with("~~~")) {
            notes.text.push('\n');
        }
        numbers.iter().for_each(|number| notes.text.push_str(&mark(*number)));
    }
    notes.text.push_str(content.get(done..).unwrap_or_default());
    notes
}

/// `[^1]`, which differs from `[1]`, the number of an event.
fn mark(number: usize) -> String {
    format!("[^{number}]")
}

/// The byte offset of a citation's mark, behind the last cited word; `None` if the citation does not fit the text.
fn mark_offset(content: &str, citation: &Value) -> Option<usize> {
    let byte = |key| usize::try_from(citation.get(key)?.as_u64()?).ok();
    let start = byte("start")?;
    let words = content.get(start..byte("end")?)?;
    if citation.get("text").and_then(Value::as_str).is_some_and(|text| text != words) {
        return None;
    }
    let length = words.trim_end().len();
    (length > 0).then_some(start + length)
}

fn sources(citation: &Value) -> impl Iterator<Item = Source> {
    let text = |source: &Value, key| Meta::new(source, Charset::Unicode).text(key).unwrap_or_default();
    let sources = Meta::new(citation, Charset::Unicode).list("sources").iter();
    let sources = sources.map(move |source| Source { title: text(source, "title"), uri: text(source, "uri") });
    sources.filter(|source| !(source.title.is_empty() && source.uri.is_empty()))
}

impl Footnotes {
    /// The numbers of the sources, from 1; each page has one number however often it is cited.
    fn numbers(&mut self, sources: Vec<Source>) -> Vec<usize> {
        let mut numbers = Vec::new();
        for source in sources {
            let is_same = |known: &Source| known.uri == source.uri && (!source.uri.is_empty() || *known == source);
            let index = match self.sources.iter().position(is_same) {
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

    /// Each source with its mark.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (String, &Source)> {
        (1..).zip(&self.sources).map(|(number, source)| (mark(number), source))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::cli::render::style::Style;
    use crate::cli::render::timeline::prose::Prose;

    fn shown(content: &str, citations: &Value) -> String {
        lines(&footnotes(content, Some(citations)))
    }

    fn lines(notes: &Footnotes) -> String {
        let style = Style::default();
        Prose::cited(notes, &style).lines(style.width, &style).join("\n")
    }

    #[test]
    fn a_mark_stands_behind_the_last_word_and_each_page_has_one_number() {
        let (a, b) = (json!({"uri": "https://a", "title": "A"}), json!({"uri": "https://b", "title": "https://b"}));
        let citations = json!([
            {"start": 14, "end": 24, "text": "Raise it.\n", "sources": [b, a]},
            {"start": 0, "end": 8, "text": "Exit 137", "sources": [a]},
            {"start": 5, "end": 8, "text": "137", "sources": [a, {"uri": "https://a", "title": "other"}]},
        ]);
        assert_eq!(
            shown("Exit 137 → é. Raise it.\nNow.", &json!([citations[1], citations[2]])),
            "Exit 137[^1] → é. Raise it.\nNow.\n\nSources:\n[^1] A https://a"
        );
        assert_eq!(
            shown("Exit 137 [5]. Raise it.\nNow.\n", &citations),
            "Exit 137[^1] [5]. Raise it.[^1][^2]\nNow.\n\nSources:\n[^1] A https://a\n[^2] https://b"
        );
    }

    #[test]
    fn a_citation_that_does_not_fit_the_text_is_ignored() {
        let sources = json!([{"uri": "https://a"}]);
        for citations in [
            json!(null),
            json!("text"),
            json!([null, 4, []]),
            json!([{"start": 0, "end": 4}]),
            json!([{"start": 0, "end": 400, "sources": sources}]),
            json!([{"start": 4, "end": 2, "sources": sources}]),
            json!([{"start": 0, "end": 5, "sources": sources}]),
            json!([{"start": -1, "end": "4", "sources": sources}]),
            json!([{"start": 0, "end": 4, "text": "else", "sources": sources}]),
            json!([{"start": 3, "end": 4, "sources": sources}]),
            json!([{"start": 0, "end": 4, "sources": [{"uri": ""}, 4, {"title": null}]}]),
        ] {
            assert_eq!(shown("abc é\n", &citations), "abc é", "{citations}");
        }
        assert_eq!(lines(&footnotes("abc", None)), "abc");
    }

    #[test]
    fn a_code_block_keeps_its_fence_and_a_title_its_line() {
        let source = json!([{"uri": "https://a\n\u{1b}[2J", "title": "t\n[^9] fake \u{202e}https://evil"}]);
        let citations = json!([{"start": 0, "end": 11, "sources": source}]);
        assert_eq!(
            shown("```\nls\n```\n\nNow \u{1b}[31m", &citations),
            "```\nls\n```\n[^1]\n\nNow\n\nSources:\n[^1] t [^9] fake https://evil https://a"
        );
    }

    proptest! {
        #[test]
        fn no_offset_panics_and_no_text_is_lost(
            content in "[ab é\n`]{0,20}",
            places in prop::collection::vec((0_u64..30, 0_u64..30), 0..6),
        ) {
            let citation = |(start, end): &(u64, u64)| json!({"start": start, "end": end, "sources": [{"uri": "u"}]});
            let citations = Value::Array(places.iter().map(citation).collect());
            let marked = footnotes(&content, Some(&citations)).text;
            prop_assert_eq!(marked.replace("\n[^1]", "[^1]").replace("[^1]", "").replace('\n', ""), content.replace('\n', ""));
        }
    }
}
