//! `watch --all`: every event of every session in one line.

use super::event;
use super::meta::Meta;
use super::row::Body;
use crate::cli::messages;
use crate::cli::render::style::Style;
use crate::cli::render::text;
use crate::investigation::timeline::{EventType, TimelineEvent};

/// Columns of what an event is about.
const WHAT: usize = 24;

/// `21:04:11  a41c9e02  → k8s.describe_pod  namespace=checkout`
pub fn news(event: &TimelineEvent, style: &Style) -> String {
    let meta = Meta::new(&event.metadata, style.ascii);
    let row = event::row(event, meta.text("tool_name"), style);
    let said = match &row.body {
        Body::Line(line) if line.is_empty() => row.totals.clone(),
        Body::Line(line) => line.clone(),
        Body::Folded(whole) | Body::Whole(whole, _) => text::first_sentence(whole),
    };
    // The first line of a session says what it is about; who investigates it is on its timeline.
    let said = if event.event_type == EventType::SessionStarted {
        let title = meta.text("title").or_else(|| meta.text("alert_type"));
        // As the list of sessions has it.
        let title = match meta.text("parent_id") {
            Some(parent) => Some(format!("question about {}: {}", messages::short(&parent), title.unwrap_or_default())),
            None => title,
        };
        let facts = [title, meta.text("severity"), meta.text("worker").map(|worker| format!("worker {worker}"))];
        facts.into_iter().flatten().collect::<Vec<_>>().join("  ")
    } else if event.event_type == EventType::Joined {
        messages::short(&meta.text("joined_session_id").unwrap_or_default())
    } else {
        said
    };
    let what = text::cut(&format!("{} {}", row.symbol.glyph(style.ascii), row.name), WHAT, style.ascii);
    let front = format!("{}  {}", event.created_at.format("%H:%M:%S"), event.session_id.short());
    let room = style.width.saturating_sub(text::width(&front) + 4 + WHAT);
    let said = text::cut(&text::one_line(&said, style.ascii), room, style.ascii);
    let fill = " ".repeat(WHAT.saturating_sub(text::width(&what)));
    let painted = row.name_paint.over(&what, style.color);
    format!("{front}  {painted}{fill}  {}", row.body_paint.over(&said, style.color)).trim_end().to_owned()
}
