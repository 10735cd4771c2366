//! Citations of an analysis as footnotes: marks behind the words, and the sources in a list.
//!
//! Citations are metadata of an event, so anything may stand in them: a place that is none in this text is passed over.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cli::render::text;

/// More sources than these are a list that nobody reads.
const MAX_SOURCES: usize = 99;

/// A text with marks, and what they stand for.
#[derive(Debug)]
pub(crate) struct Footnotes {
    /// With `[^1]` behind the words that rest on the first source; not cleaned.
    pub(crate) text: String,
    sources: Vec<Source>,
}

/// A page that a mark stands for, cleaned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) title: String,
    pub(crate) uri: String,
}

/// The footnotes of `content`. `citations` is what stands under that name in the metadata of its event.
pub(crate) fn footnotes(content: &str, citations: Option<&Value>) -> Footnotes {
    let citations = citations.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut cited: BTreeMap<usize, Vec<Source>> = BTreeMap::new();
    for citation in citations {
        if let Some(place) = place(content, citation) {
            cited.entry(place).or_default().extend(sources(citation));
        }
    }
    let mut notes = Footnotes { text: String::with_capacity(content.len()), sources: Vec::new() };
    let mut done = 0;
    for (place, sources) in cited {
        let before = content.get(done..place).unwrap_or_default();
        notes.text.push_str(before);
        done = place;
        let numbers = notes.numbers(sources);
        // A mark behind the fence of a code block would make it no fence.
        let line = notes.text.rsplit('\n').next().unwrap_or_default().trim_start();
        if !numbers.is_empty() && (line.starts_with("```") || line.starts_with("~~~")) {
            notes.text.push('\n');
        }
        numbers.iter().for_each(|number| notes.text.push_str(&mark(*number)));
    }
    notes.text.push_str(content.get(done..).unwrap_or_default());
    notes
}

/// `[^1]`: in brackets as the numbers of events are, and not to be taken for one.
fn mark(number: usize) -> String {
    format!("[^{number}]")
}

/// Where the mark of a citation belongs: behind the last word of what it cites.
fn place(content: &str, citation: &Value) -> Option<usize> {
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
    let sources = citation.get("sources").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let text = |source: &Value, key| {
        source.get(key).and_then(Value::as_str).map(|text| text::one_line(text, false)).unwrap_or_default()
    };
    let sources = sources.iter().map(move |source| Source { title: text(source, "title"), uri: text(source, "uri") });
    sources.filter(|source| !(source.title.is_empty() && source.uri.is_empty()))
}

impl Footnotes {
    /// Numbers from 1, one for each page however often it is cited.
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

    /// The list of sources, each with its mark.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (String, &Source)> {
        (1..).zip(&self.sources).map(|(number, source)| (mark(number), source))
    }

    /// The text and, below it, its sources; cleaned.
    pub(super) fn whole(&self, ascii: bool) -> String {
        let mut whole = text::clean(&self.text, ascii);
        if !self.sources.is_empty() {
            whole.truncate(whole.trim_end().len());
            whole.push_str("\n\nSources:");
        }
        for (mark, Source { title, uri }) in self.sources() {
            let title = if title == uri { "" } else { title };
            let line = [mark.as_str(), title, uri].join(" ");
            whole.push('\n');
            whole.push_str(&text::one_line(&line, ascii));
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(content: &str, citations: &Value) -> String {
        footnotes(content, Some(citations)).whole(false)
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
    fn what_is_no_citation_of_this_text_is_passed_over() {
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
            assert_eq!(shown("abc é\n", &citations), "abc é\n", "{citations}");
        }
        assert_eq!(footnotes("abc", None).whole(false), "abc");
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
        fn no_place_panics_and_nothing_of_the_text_is_lost(
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
