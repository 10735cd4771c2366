//! A run of text: its citations become links to the events.

use super::writer::{Element, Writer};
use crate::investigation::execution::event_refs::{CitedSource, citations};

/// Which numbers are events of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cites {
    pub(super) last_event: u32,
}

impl Cites {
    /// Writes a text. A number that the session does not have stays text.
    pub(super) fn write(self, writer: &mut Writer, text: &str) {
        let mut done = 0;
        for citation in citations(text) {
            let known = |source: &CitedSource| matches!(source, CitedSource::Event(number) if self.is_event(*number));
            if !citation.sources.iter().any(known) {
                continue;
            }
            writer.text(text.get(done..citation.range.start).unwrap_or_default());
            done = citation.range.end;
            writer.open(Element::Citations);
            for source in &citation.sources {
                match source {
                    CitedSource::Event(number) if self.is_event(*number) => writer.citation(*number),
                    CitedSource::Event(number) => writer.text(&format!("[{number}]")),
                    CitedSource::Other(range) => {
                        writer.text(&format!("[{}]", text.get(range.clone()).unwrap_or_default()));
                    }
                }
            }
            writer.close(Element::Citations);
        }
        writer.text(text.get(done..).unwrap_or_default());
    }

    fn is_event(self, number: u32) -> bool {
        (1..=self.last_event).contains(&number)
    }
}
