//! Selects the events that a page reads, and bounds their contents, so that the size of a page is independent of the
//! length of its session.

use std::collections::BTreeSet;

use crate::pages::session::Span;
use crate::pages::steps::cited_events;
use crate::ports::{Backend, Unavailable};
use crate::state::Shared;
use tarsy_core::timeline::TimelineEvent;
use tarsy_reports::{AlertReport, Excerpt, ExcerptPage};

/// Events of one page. A page says so when its session has more.
const MAX_EVENTS: usize = 50_000;
/// Characters of a content. Of a longer one the page has the beginning, and a link to all of it.
pub(super) const MANY: u32 = 16 * 1024;
/// Bytes of all contents that are read so.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Characters of each content after that: enough for a row.
const FEW: u32 = 1024;
/// Bytes of longer contents that are read whole because the analysis cites them: they are on paper.
const MAX_CITED_BYTES: usize = 4 * 1024 * 1024;
/// Rows depend on events near them: a result on its call, and its name on the other calls of the same answer.
const AROUND: u32 = 256;
/// Events that are read at once.
pub(super) const EVENTS_PAGE: u32 = 250;

/// The events of a page.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) events: Vec<TimelineEvent>,
    /// The numbers of the events whose contents are cut.
    pub(super) cut: BTreeSet<u32>,
}

/// The events that a page needs which shows those of `span`, or all.
pub(super) async fn load<B: Backend>(
    web: &Shared<B>,
    report: &AlertReport,
    span: Option<Span>,
) -> Result<Loaded, Unavailable> {
    let mut reader = Reader {
        web,
        report,
        loaded: Loaded::default(),
        bytes: 0,
        after: 0,
    };
    let mut last = u32::MAX;
    if let Some(Span { from, to }) = span {
        // All times are counted from the first event.
        reader.page(1).await?;
        reader.after = from.saturating_sub(AROUND + 1).max(reader.after);
        last = to.saturating_add(AROUND);
    }
    while reader.after < last
        && reader.loaded.events.len() < MAX_EVENTS
        && reader.page(EVENTS_PAGE).await?
    {}
    reader.restore_cited().await?;
    Ok(reader.loaded)
}

struct Reader<'r, B: Backend> {
    web: &'r Shared<B>,
    report: &'r AlertReport,
    loaded: Loaded,
    bytes: usize,
    after: u32,
}

impl<B: Backend> Reader<'_, B> {
    /// Reads the next events; returns whether further ones may follow.
    async fn page(&mut self, limit: u32) -> Result<bool, Unavailable> {
        let characters = if self.bytes < MAX_BYTES { MANY } else { FEW };
        let page = ExcerptPage {
            session: self.report.alert_id,
            after: self.after,
            limit,
            characters,
        };
        let excerpts = self.web.backend.excerpts(page).await?;
        let Some(last) = excerpts.last() else {
            return Ok(false);
        };
        self.after = last.event.session_seq;
        let may_continue = !last.event.event_type.is_end();
        for Excerpt { event, is_cut } in excerpts {
            self.bytes += event.content.len();
            if is_cut {
                self.loaded.cut.insert(event.session_seq);
            }
            self.loaded.events.push(event);
        }
        Ok(may_continue)
    }

    /// Reads the cited contents again that are cut. Those for which there is no room are marked as cut.
    async fn restore_cited(&mut self) -> Result<(), Unavailable> {
        let cited = cited_events(self.report);
        let Loaded { events, cut } = &mut self.loaded;
        let mut room = MAX_CITED_BYTES;
        for event in events {
            let number = event.session_seq;
            if !cited.contains(&number) || !cut.contains(&number) {
                continue;
            }
            event.truncated = true;
            if room == 0 {
                continue;
            }
            let session = self.report.alert_id;
            let read = self.web.backend.events(session, number - 1, 1).await?.pop();
            let Some(whole) = read.filter(|read| read.session_seq == number) else {
                continue;
            };
            room = room.saturating_sub(whole.content.len());
            if room > 0 {
                *event = whole;
                cut.remove(&number);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt as _;

    use crate::testing::backend::FakeBackend;
    use crate::testing::data::{long, report};

    async fn shown(backend: &Arc<FakeBackend>, path: &str) -> String {
        let response = backend
            .answer(&format!("/sessions/{}{path}", report().alert_id), &[])
            .await;
        String::from_utf8(
            response
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .to_vec(),
        )
        .unwrap()
    }

    #[tokio::test]
    async fn no_view_of_a_session_with_large_results_makes_a_large_page() {
        // 36 MB of results, of which the analysis cites two.
        let backend = FakeBackend::with(long(600, &"a line of a large result\n".repeat(2_400)));
        for path in [
            "",
            "?view=all",
            "?view=errors",
            "?from=1",
            "?view=all&from=301&to=500",
            "/rows?from=1&to=900",
        ] {
            let page = shown(&backend, path).await;
            assert!(page.len() < 1_500_000, "{path}: {} bytes", page.len());
            let reads = backend.excerpts_read();
            assert!(reads.bytes < 12_000_000, "{path}: {reads:?}");
            let is_range = path.contains("from=301");
            assert!(!is_range || reads.events < 1_000, "{path}: {reads:?}");
        }
        // The two cited results are whole, because they are on paper.
        let lines = shown(&backend, "")
            .await
            .matches("a line of a large result\n")
            .count();
        assert_eq!(lines, 2 * 2_399, "the last line has no end");
        let page = shown(&backend, "?view=all").await;
        let folded = page.matches("class=\"r run\"").count();
        assert!(
            folded >= 4 && page.contains("?view=all&amp;from="),
            "{folded} folded ranges"
        );
    }

    #[tokio::test]
    async fn a_range_has_the_rows_that_the_whole_page_would_have() {
        let backend = FakeBackend::with(long(600, "short"));
        let rows = shown(&backend, "/rows?from=1001&to=1020").await;
        let whole = shown(&backend, "/rows?from=1&to=4000").await;
        let numbers: Vec<&str> = rows
            .split(" data-n=\"")
            .skip(1)
            .filter_map(|row| row.split('"').next())
            .collect();
        assert_eq!(
            numbers,
            [
                "1001", "1003", "1005", "1007", "1009", "1011", "1013", "1015", "1017", "1019",
                "1021"
            ]
        );
        assert!(
            whole.contains(
                rows.split("<li ")
                    .nth(1)
                    .unwrap()
                    .split("<div class=\"b\">")
                    .next()
                    .unwrap()
            ),
            "{rows}"
        );
    }
}
