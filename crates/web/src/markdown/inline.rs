//! Renders inline text: citations become links to their events.

use super::writer::{Element, Writer};
use tarsy_core::execution::event_refs::{CitedSource, citations};
use tarsy_core::ids::SessionId;

/// The targets of the citations in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cites {
    last_event: u32,
    /// The page of the cited investigation; `None` on that page itself.
    page: Option<SessionId>,
    /// Whether the text `[report]` is a citation, as in an answer to a question.
    report: Report,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    IsText,
    IsCited,
}

const REPORT: &str = "[report]";

impl Cites {
    /// A text that cites events of its own page.
    pub(crate) fn of_page(last_event: u32) -> Self {
        Self {
            last_event,
            page: None,
            report: Report::IsText,
        }
    }

    /// An answer to a question, on the page of its investigation.
    pub(crate) fn of_answer(last_event: u32) -> Self {
        Self {
            last_event,
            page: None,
            report: Report::IsCited,
        }
    }

    /// An answer to a question, on its own page: it cites events of the investigation. Numbers that the investigation
    /// does not have are marked in the text already.
    pub(crate) fn of_investigation(investigation: SessionId) -> Self {
        Self {
            last_event: u32::MAX,
            page: Some(investigation),
            report: Report::IsCited,
        }
    }

    /// Writes a text. A number that the session does not have stays text.
    pub(super) fn write(self, writer: &mut Writer, text: &str) {
        let mut done = 0;
        for citation in citations(text) {
            let has_event = citation.sources.iter().any(
                |source| matches!(source, CitedSource::Event(number) if self.is_event(*number)),
            );
            if !has_event {
                continue;
            }
            self.plain(
                writer,
                text.get(done..citation.range.start).unwrap_or_default(),
            );
            done = citation.range.end;
            writer.open(Element::Citations);
            for source in &citation.sources {
                match source {
                    CitedSource::Event(number) if self.is_event(*number) => {
                        writer.citation(self.page, *number)
                    }
                    CitedSource::Event(number) => writer.text(&format!("[{number}]")),
                    CitedSource::Other(range) => {
                        let name = format!("[{}]", text.get(range.clone()).unwrap_or_default());
                        self.plain(writer, &name);
                    }
                }
            }
            writer.close(Element::Citations);
        }
        self.plain(writer, text.get(done..).unwrap_or_default());
    }

    /// A text without numbers of events.
    fn plain(self, writer: &mut Writer, text: &str) {
        let mut rest = text;
        if self.report == Report::IsCited {
            while let Some((before, after)) = rest.split_once(REPORT) {
                writer.text(before);
                writer.open(Element::Citations);
                writer.report(self.page);
                writer.close(Element::Citations);
                rest = after;
            }
        }
        writer.text(rest);
    }

    fn is_event(self, number: u32) -> bool {
        (1..=self.last_event).contains(&number)
    }
}
