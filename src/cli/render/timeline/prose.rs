//! Text of a model: laid out as Markdown on a terminal, line by line as it was written elsewhere.

use crate::cli::render::style::{Prose as Form, Style};
use crate::cli::render::{markdown, text};
use tarsy_core::timeline::rows::Footnotes;

/// The printed lines, with one line for each page that the text cites. Only laid out text keeps to `width`: elsewhere a
/// line of the model is a line.
pub(crate) fn lines(prose: &Footnotes, width: usize, style: &Style) -> Vec<String> {
    let mut lines = match style.prose {
        Form::Rendered => markdown::render(&prose.text, width, style),
        Form::Raw => {
            let text = text::clean(&prose.text, style.charset);
            text.trim_matches('\n')
                .trim_end()
                .lines()
                .map(|line| line.trim_end().to_owned())
                .collect()
        }
    };
    let sources = prose.source_lines(style.charset);
    if !sources.is_empty() {
        lines.extend([String::new(), "Sources:".to_owned()]);
        match style.prose {
            Form::Rendered => {
                lines.extend(sources.iter().flat_map(|source| text::wrap(source, width)))
            }
            Form::Raw => lines.extend(sources),
        }
    }
    lines
}

/// The text, if all of it is one line of at most `room` columns.
pub(super) fn short(prose: &Footnotes, room: usize, style: &Style) -> Option<String> {
    let whole = text::clean(&prose.text, style.charset);
    let whole = whole.trim();
    if whole.contains('\n') || prose.sources().next().is_some() || text::width(whole) > room {
        return None;
    }
    Some(plain(whole, style)).filter(|shown| text::width(shown) <= room)
}

/// The first sentence in one line.
pub(crate) fn sentence(prose: &Footnotes, style: &Style) -> String {
    plain(
        &text::first_sentence(&text::clean(&prose.text, style.charset)),
        style,
    )
}

fn plain(sentence: &str, style: &Style) -> String {
    match style.prose {
        Form::Rendered => markdown::plain(sentence, style.charset),
        Form::Raw => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use tarsy_core::timeline::rows::footnotes;

    fn shown(content: &str, citations: &Value) -> String {
        joined(&footnotes(content, Some(citations)))
    }

    fn joined(notes: &Footnotes) -> String {
        let style = Style::default();
        lines(notes, style.width, &style).join("\n")
    }

    #[test]
    fn a_mark_stands_behind_the_last_word_and_each_page_has_one_number() {
        let a = json!({"uri": "https://a", "title": "A"});
        let b = json!({"uri": "https://b", "title": "https://b"});

        let citations = json!([
            {"start": 14, "end": 24, "text": "Raise it.\n", "sources": [b, a]},
            {"start": 0, "end": 8, "text": "Exit 137", "sources": [a]},
            {"start": 5, "end": 8, "text": "137", "sources": [a, {"uri": "https://a", "title": "other"}]},
        ]);
        assert_eq!(
            shown(
                "Exit 137 → é. Raise it.\nNow.",
                &json!([citations[1], citations[2]])
            ),
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
        assert_eq!(joined(&footnotes("abc", None)), "abc");
    }

    #[test]
    fn a_code_block_keeps_its_fence_and_a_title_its_line() {
        let source =
            json!([{"uri": "https://a\n\u{1b}[2J", "title": "t\n[^9] fake \u{202e}https://evil"}]);
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
            let citations = Value::Array(places.iter().map(|(start, end): &(u64, u64)| json!({"start": start, "end": end, "sources": [{"uri": "u"}]})).collect());
            let marked = footnotes(&content, Some(&citations)).text;
            prop_assert_eq!(marked.replace("\n[^1]", "[^1]").replace("[^1]", "").replace('\n', ""), content.replace('\n', ""));
        }
    }
}
