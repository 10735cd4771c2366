//! `watch --all`: one line for each event of every session.

use super::prose;
use super::row::code_line;
use crate::cli::messages;
use crate::cli::render::style::{Paint, Style};
use crate::cli::render::text;
use tarsy_core::timeline::rows::meta::Meta;
use tarsy_core::timeline::rows::{self, Body};
use tarsy_core::timeline::{EventType, TimelineEvent};

/// Columns of the symbol and name of an event.
const NAME_COLUMNS: usize = 24;

/// `21:04:11  a41c9e02  → k8s.describe_pod  namespace=checkout`
pub fn event_line(event: &TimelineEvent, style: &Style) -> String {
    let meta = Meta::new(&event.metadata, style.charset);
    let row = rows::single(event, style.charset);
    let detail = match (&event.event_type, &row.body) {
        (EventType::SessionStarted, _) => opening(&meta),
        (EventType::Joined, _) => {
            messages::short(&meta.text("joined_session_id").unwrap_or_default())
        }
        (_, Body::Line(line)) if line.is_empty() => row.totals.clone(),
        (_, Body::Line(line)) => line.clone(),
        (_, Body::Folded(text) | Body::Prose { text, .. }) => prose::sentence(text, style),
        (_, Body::Whole { text, .. }) => text::first_sentence(text),
        (_, Body::Result { whole, .. }) if style.full => text::first_sentence(whole),
        (_, Body::Result { line, .. }) => line.clone(),
        (_, Body::Code(code)) if style.thinking => text::first_sentence(&code.content),
        (_, Body::Code(code)) => code_line(code, style),
    };
    let what = format!("{} {}", row.kind.glyph(style.charset), row.name);
    let what = text::cut(&what, NAME_COLUMNS, style.charset);
    let front = format!(
        "{}  {}",
        event.created_at.format("%H:%M:%S"),
        event.session_id.short()
    );
    let room = style
        .width
        .saturating_sub(text::width(&front) + 4 + NAME_COLUMNS);
    let detail = text::cut(&text::one_line(&detail, style.charset), room, style.charset);
    let fill = " ".repeat(NAME_COLUMNS.saturating_sub(text::width(&what)));
    let painted = Paint::from(row.name_tone).over(&what, style);
    format!(
        "{front}  {painted}{fill}  {}",
        Paint::from(row.body_tone).over(&detail, style)
    )
    .trim_end()
    .to_owned()
}

/// The first line of a session has its title; the timeline has its strategy and provider.
fn opening(meta: &Meta<'_>) -> String {
    let mut title = meta.text("title").or_else(|| meta.text("alert_type"));
    if let Some(parent) = meta.text("parent_id") {
        // The same words as in the list of sessions.
        let about = messages::short(&parent);
        title = Some(format!(
            "question about {about}: {}",
            title.unwrap_or_default()
        ));
    }
    let worker = meta.text("worker").map(|worker| format!("worker {worker}"));
    text::join([title, meta.text("severity"), worker], "  ")
}
