//! Text of a model: laid out as Markdown on a terminal, line by line as it was written elsewhere.

use super::footnotes::{Footnotes, Source};
use crate::cli::render::style::{Prose as Form, Style};
use crate::cli::render::{markdown, text};

/// A text of a model with the pages that it cites; not cleaned.
#[derive(Debug)]
pub(crate) struct Prose {
    text: String,
    /// One line for each page, cleaned.
    sources: Vec<String>,
}

impl Prose {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), sources: Vec::new() }
    }

    /// A text with the marks of its sources.
    pub(super) fn cited(notes: &Footnotes, style: &Style) -> Self {
        let line = |(mark, Source { title, uri }): (String, &Source)| {
            let title = if title == uri { "" } else { title };
            text::one_line(&[mark.as_str(), title, uri].join(" "), style.charset)
        };
        Self { text: notes.text.clone(), sources: notes.sources().map(line).collect() }
    }

    /// The printed lines. Only laid out text keeps to `width`: elsewhere a line of the model is a line.
    pub(crate) fn lines(&self, width: usize, style: &Style) -> Vec<String> {
        let mut lines = match style.prose {
            Form::Rendered => markdown::render(&self.text, width, style),
            Form::Raw => {
                let text = text::clean(&self.text, style.charset);
                text.trim_matches('\n').trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
            }
        };
        if !self.sources.is_empty() {
            lines.extend([String::new(), "Sources:".to_owned()]);
            for source in &self.sources {
                match style.prose {
                    Form::Rendered => lines.extend(text::wrap(source, width)),
                    Form::Raw => lines.push(source.clone()),
                }
            }
        }
        lines
    }

    /// The text, if all of it is one line of at most `room` columns.
    pub(super) fn short(&self, room: usize, style: &Style) -> Option<String> {
        let whole = text::clean(&self.text, style.charset);
        let whole = whole.trim();
        if whole.contains('\n') || !self.sources.is_empty() || text::width(whole) > room {
            return None;
        }
        Some(Self::plain(whole, style)).filter(|shown| text::width(shown) <= room)
    }

    /// The first sentence in one line.
    pub(crate) fn sentence(&self, style: &Style) -> String {
        Self::plain(&text::first_sentence(&text::clean(&self.text, style.charset)), style)
    }

    fn plain(sentence: &str, style: &Style) -> String {
        match style.prose {
            Form::Rendered => markdown::plain(sentence, style.charset),
            Form::Raw => sentence.to_owned(),
        }
    }
}
