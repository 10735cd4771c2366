//! The parts of a report: what tarsy says about an investigation, and the analysis. Its last word is the marker by
//! which the note is found again.

use super::parsed;
use super::{Block, Kind, Span};
use tarsy_config::sections::destinations::Part;
use tarsy_core::notification::template::Values;
use tarsy_core::notification::{MAY_REPEAT, Moment, Notification, with_citations_in_words};
use tarsy_core::readable::text::{Charset, clean};

/// A longer analysis is cut before it is parsed, in bytes.
const MAX_ANALYSIS: usize = 64 * 1024;

/// A report before it has a form.
#[derive(Debug)]
pub(crate) struct Report {
    values: Values,
    moment: Moment,
    /// The analysis, or the reason why there is none.
    analysis: String,
    marker: String,
    may_repeat: bool,
}

/// The part of a report that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) part: Part,
    /// The longest analysis, in bytes of its Markdown.
    pub(super) limit: usize,
}

impl Report {
    pub(crate) fn new(message: &Notification) -> Self {
        let summary = &message.summary;
        let analysis = summary.analysis.as_ref().or(summary.error.as_ref());
        Self {
            values: Values::of_notification(message),
            moment: message.key.moment,
            analysis: analysis
                .map(|text| clean(text, Charset::Unicode))
                .unwrap_or_default(),
            marker: message.key.marker(),
            may_repeat: message.may_repeat,
        }
    }

    /// The same report: no earlier attempt has added it.
    pub(in crate::destination) fn without_remark(self) -> Self {
        Self {
            may_repeat: false,
            ..self
        }
    }

    /// The same report where nothing searches for it.
    pub(crate) fn without_marker(self) -> Self {
        Self {
            marker: String::new(),
            ..self
        }
    }

    pub(super) fn blocks(&self, source: Source) -> Vec<Block> {
        let mut blocks = Vec::new();
        if source.part != Part::Analysis {
            blocks.extend(self.head());
        }
        blocks.extend(match (source.part, self.moment) {
            (_, Moment::Started) => Vec::new(),
            (_, Moment::Approval | Moment::Decided)
            | (Part::Cause, _)
            | (Part::Report, Moment::Covered) => parsed::blocks(&self.value("cause")),
            (Part::Report | Part::Analysis, Moment::Ended | Moment::Covered) => {
                self.analysis(source.limit)
            }
        });
        if source.part != Part::Analysis {
            blocks.extend(self.page());
        }
        if self.may_repeat {
            blocks.extend(paragraph(MAY_REPEAT));
        }
        blocks.extend(paragraph(&self.marker));
        blocks
    }

    /// Title, facts, and what is known to be wrong with the analysis.
    fn head(&self) -> Vec<Block> {
        let title = Span::Strong(self.value("title"));
        let facts = Span::Text(format!("tarsy: {}", self.values.facts()));
        let mut blocks = vec![Block {
            kind: Kind::Paragraph,
            spans: vec![title, Span::Break, facts],
        }];
        if self.moment != Moment::Started {
            blocks.extend(paragraph(&self.value("mark")));
            blocks.extend(paragraph(&self.value("review")));
        }
        blocks
    }

    fn analysis(&self, limit: usize) -> Vec<Block> {
        let end = self.analysis.floor_char_boundary(limit.min(MAX_ANALYSIS));
        let (shown, rest) = self.analysis.split_at(end);
        let mut blocks = parsed::blocks(&with_citations_in_words(shown));
        if !rest.is_empty() {
            blocks.extend(paragraph(
                "… (the rest is on the page of the investigation)",
            ));
        }
        blocks
    }

    fn page(&self) -> Vec<Block> {
        let link = self.value("link");
        if link.is_empty() {
            return Vec::new();
        }
        vec![Block {
            kind: Kind::Paragraph,
            spans: vec![Span::Text("All steps: ".to_owned()), Span::Page(link)],
        }]
    }

    fn value(&self, name: &str) -> String {
        self.values.text(name)
    }
}

/// A paragraph of one text; none for an empty one.
fn paragraph(text: &str) -> Vec<Block> {
    if text.is_empty() {
        return Vec::new();
    }
    vec![Block {
        kind: Kind::Paragraph,
        spans: vec![Span::Text(text.to_owned())],
    }]
}
