//! Presents the result of a tool to a model: facts of it, repetitions folded, JSON as tables, the middle left out.
//!
//! Pure. A result is presented once, before its entry is made. The whole result is stored beside the entry.

mod facts;
mod times;
mod records;
mod tokens;
mod runs;
mod mark;
mod layout;
mod fold;
mod json;
mod tables;

use serde::{Deserialize, Serialize};

pub use facts::{Facts, Shown};

use self::layout::{CutText, Formed, Layout};
use self::records::{Range, Scan, scan};
use super::cut::{ReadBack, cut};

/// The parts of the presentation that a plan asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presentation {
    /// Headings have the length and the times of results, and an empty result is stated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub facts: bool,
    /// Repeated records of a log are folded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fold: bool,
    /// JSON is compact, and parts of it are tables.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tables: bool,
}

impl Presentation {
    pub const ALL: Self = Self {
        facts: true,
        fold: true,
        tables: true,
    };

    /// That of an error: its words count, so they stay.
    #[must_use]
    pub fn of_error(self) -> Self {
        Self {
            fold: false,
            tables: false,
            ..self
        }
    }

    fn is_off(self) -> bool {
        self == Self::default()
    }
}

/// The line in place of an empty result.
pub const NOTHING: &str = "(the tool returned nothing)";

/// A result as a model gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    pub text: String,
    /// `None` when the plan asks for no presentation.
    pub facts: Option<Facts>,
    /// A part of the result is left out.
    pub is_part: bool,
    /// The middle of the text is left out.
    pub is_cut: bool,
    layout: Option<Layout>,
}

/// The result with its facts. Nothing is left out of it beside what marks name.
pub fn present(whole: &str, presentation: Presentation, read_back: ReadBack) -> Presented {
    if presentation.is_off() {
        return Presented {
            text: whole.to_owned(),
            facts: None,
            is_part: false,
            is_cut: false,
            layout: None,
        };
    }
    if presentation.facts && is_nothing(whole) {
        return Presented {
            text: NOTHING.to_owned(),
            facts: Some(Facts {
                shown: vec![Shown::Nothing],
                own_lines: vec![1],
                ..Facts::default()
            }),
            is_part: false,
            is_cut: false,
            layout: None,
        };
    }
    let scan = scan(whole);
    let tables = if presentation.tables {
        tables::of_json(whole)
    } else {
        None
    };
    let range = scan.range.or_else(|| tables.as_ref()?.range);
    let formed = match tables {
        Some(tables) => tables.formed,
        None => folded(whole, &scan, presentation, read_back),
    };
    let facts = facts(&scan, range, presentation, &formed);
    Presented {
        text: formed.layout.text.clone(),
        is_part: facts.has(Shown::Folded),
        is_cut: false,
        facts: Some(facts),
        layout: Some(formed.layout),
    }
}

fn is_nothing(whole: &str) -> bool {
    matches!(whole.trim(), "" | "[]" | "{}" | "\"\"" | "null")
}

fn folded(whole: &str, scan: &Scan, presentation: Presentation, read_back: ReadBack) -> Formed {
    let note = match read_back {
        ReadBack::With(tool) => format!("; {tool} shows them"),
        ReadBack::No => "; the whole result is stored".to_owned(),
    };
    let pieces = if presentation.fold {
        fold::fold(whole, scan, &note)
    } else {
        None
    };
    match pieces {
        Some(pieces) => Formed {
            layout: Layout::of_pieces(&pieces),
            shown: vec![Shown::Folded],
        },
        None => Formed {
            layout: Layout::unchanged(whole),
            shown: Vec::new(),
        },
    }
}

fn facts(scan: &Scan, range: Option<Range>, presentation: Presentation, formed: &Formed) -> Facts {
    let stated = if presentation.facts { range } else { None };
    Facts {
        lines: if presentation.facts { scan.lines } else { 0 },
        from: stated.map(|range| range.from),
        to: stated.map(|range| range.to),
        shown: formed.shown.clone(),
        own_lines: formed.layout.own_lines(),
    }
}

impl Presented {
    /// The same with its middle left out, if it is longer than `max_tokens`.
    #[must_use]
    pub fn cut(self, max_tokens: u32, read_back: ReadBack) -> Self {
        let cut = match &self.layout {
            Some(layout) => layout.cut(max_tokens, read_back),
            None => cut(&self.text, max_tokens, read_back).map(|text| CutText {
                text,
                own_lines: Vec::new(),
            }),
        };
        let Some(CutText { text, own_lines }) = cut else {
            return self;
        };
        let facts = self.facts.map(|facts| facts.cut(own_lines));
        Self {
            text,
            facts,
            is_part: true,
            is_cut: true,
            layout: None,
        }
    }
}

#[cfg(test)]
mod tests;
