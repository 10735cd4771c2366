//! Lays out one event: columns, marks at the right edge, blocks of text below.

use super::prose;
use crate::cli::render::style::{Paint, Prose as Form, Style};
use crate::cli::render::text::{self, pad, pad_left};
use crate::cli::render::{format, results};
use tarsy_core::timeline::rows::{Body, Code, Footnotes, Mark, Row, Tone};

/// Columns of an event's number, unless it is longer.
const SEQ_COLUMNS: usize = 3;
/// Durations below a minute have so many columns; a longer one takes its room from the detail.
const TOOK_COLUMNS: usize = 6;
/// The same in a wide terminal, where every duration fits.
const WIDE_TOOK_COLUMNS: usize = 9;
const WIDE_TERMINAL: usize = 100;
/// A narrower terminal has no column of durations: they are marks at the right edge.
const NARROW_TERMINAL: usize = 60;
const GAP: &str = "  ";
/// A detail of so many columns has room for the long form of a mark.
const WIDE_COLUMNS: usize = 60;

/// The front of a row: time, number and agent of the event.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) time: String,
    pub(super) seq: u32,
    pub(super) agent: String,
}

/// The width of each column.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    style: &'a Style,
    time: usize,
    agent: Option<usize>,
    what: usize,
    /// `None`: durations are marks.
    took: Option<usize>,
    detail: usize,
}

impl<'a> Columns<'a> {
    pub(super) fn new(style: &'a Style, agent: Option<usize>) -> Self {
        let time = if style.utc { 10 } else { 6 };
        let what = (style.width * 11 / 40).clamp(12, 24);
        let took = match style.width {
            ..NARROW_TERMINAL => None,
            NARROW_TERMINAL..WIDE_TERMINAL => Some(TOOK_COLUMNS),
            WIDE_TERMINAL.. => Some(WIDE_TOOK_COLUMNS),
        };
        let agent_and_gap = agent.map_or(0, |columns| columns + GAP.len());
        let gap_and_took = took.map_or(0, |columns| 1 + columns);
        let front = time + 1 + SEQ_COLUMNS + GAP.len() + agent_and_gap;
        let others = front + what + gap_and_took + GAP.len();
        Self {
            style,
            time,
            agent,
            what,
            took,
            detail: style.width.saturating_sub(others),
        }
    }

    /// The columns of one row: a long number or duration takes its room from the detail.
    pub(super) fn of_row(mut self, seq: u32, took_ms: Option<u64>) -> Self {
        let took = self.took.map_or(0, |columns| {
            text::width(&shown(took_ms)).saturating_sub(columns)
        });
        let seq = seq.to_string().len().saturating_sub(SEQ_COLUMNS);
        self.detail = self.detail.saturating_sub(seq + took);
        self
    }

    /// The names of the columns.
    pub(super) fn head(&self) -> String {
        let time = if self.style.utc { "utc" } else { "time" };
        let mut line = self.front(time, "#", "agent", Paint::Dim);
        line.push(&pad("what", self.what), Paint::Dim);
        let took = self
            .took
            .map(|columns| format!(" {}", pad_left("took", columns)))
            .unwrap_or_default();
        line.push(&format!("{took}{GAP}detail"), Paint::Dim);
        line.finish(self.style)
    }

    /// The printed lines of a row.
    pub(super) fn lines(&self, front: &Front, row: Row) -> Vec<String> {
        let mut marks = self.marks(&row);
        let room = self.room(&marks);
        let laid = match row.body {
            Body::Line(line) if line.is_empty() && text::width(&row.totals) <= room => {
                Laid::Beside(row.totals.clone())
            }
            Body::Line(line) => Laid::Beside(line),
            Body::Folded(prose) if self.style.thinking => self.prose(&prose, None, room),
            Body::Folded(prose) => {
                let (line, mark) = self.fold(&prose);
                marks.extend(mark);
                Laid::Beside(line)
            }
            Body::Prose { text, limit } => self.prose(&text, limit, room),
            Body::Whole { text, limit } => self
                .whole(text.trim(), limit, room)
                .painted(row.body_tone.into(), self.style),
            Body::Result { whole, .. } if self.style.full => Laid::Below(self.result(&whole)),
            Body::Result { line, .. } => Laid::Beside(line),
            Body::Code(code) if self.style.thinking => self
                .whole(&code.content, None, room)
                .painted(row.body_tone.into(), self.style),
            Body::Code(code) => Laid::Beside(code_line(&code, self.style)),
        };
        let (detail, block) = match laid {
            Laid::Beside(line) => (line, Vec::new()),
            Laid::Below(lines) => (String::new(), lines),
        };
        let totals_below = !row.totals.is_empty() && detail != row.totals;

        let seq = front.seq.to_string();
        let mut line = self.front(&front.time, &seq, &front.agent, Paint::Plain);
        let charset = self.style.charset;
        // The steps of a sub-agent are indented below the event that began it.
        let indent = if row.branch.is_some() { GAP } else { "" };
        let what = format!("{indent}{} {}", row.kind.glyph(charset), row.name);
        let what = pad(&text::cut(&what, self.what, charset), self.what);
        line.push(&what, row.name_tone.into());
        if let Some(columns) = self.took {
            let took = pad_left(&shown(row.took_ms), columns);
            line.push(&format!(" {took}"), Paint::Dim);
        }
        line.push(GAP, Paint::Plain);
        self.push_detail(&mut line, &detail, row.body_tone.into(), &marks);

        let mut lines = vec![line.finish(self.style)];
        let indent = " ".repeat(self.block_indent());
        for text in block {
            lines.push(format!("{indent}{text}").trim_end().to_owned());
        }
        if self.style.sources {
            let sources = row.sources.iter().chain(&row.unread);
            lines.extend(sources.map(|text| self.indented(text)));
        }
        if totals_below {
            let totals = text::wrap(&row.totals, self.style.width.saturating_sub(GAP.len()));
            lines.extend(totals.iter().map(|line| pad_left(line, self.style.width)));
        }
        lines
    }

    /// The first columns; `paint` is the colour of all but the time.
    fn front(&self, time: &str, number: &str, agent: &str, paint: Paint) -> Line {
        let mut line = Line::default();
        line.push(&pad_left(time, self.time), Paint::Dim);
        line.push(&format!(" {}", pad_left(number, SEQ_COLUMNS)), paint);
        line.push(GAP, Paint::Plain);
        if let Some(columns) = self.agent {
            let agent = text::cut(agent, columns, self.style.charset);
            line.push(&pad(&agent, columns), paint);
            line.push(GAP, Paint::Plain);
        }
        line
    }

    fn push_detail(&self, line: &mut Line, detail: &str, paint: Paint, marks: &[Mark]) {
        let room = self.room(marks);
        let detail = text::cut(detail, room, self.style.charset);
        line.push(&pad(&detail, room), paint);
        for mark in marks {
            line.push(GAP, Paint::Plain);
            line.push(self.form(mark), mark.tone.into());
        }
    }

    /// The columns that these marks leave for the detail.
    fn room(&self, marks: &[Mark]) -> usize {
        let marks: usize = marks
            .iter()
            .map(|mark| GAP.len() + text::width(self.form(mark)))
            .sum();
        self.detail.saturating_sub(marks)
    }

    fn form<'m>(&self, mark: &'m Mark) -> &'m str {
        if self.detail >= WIDE_COLUMNS {
            &mark.long
        } else {
            &mark.short
        }
    }

    /// The remarks of a row, with those about what is not shown.
    fn marks(&self, row: &Row) -> Vec<Mark> {
        let mut marks = Vec::new();
        if self.took.is_none() && row.took_ms.is_some() {
            marks.push(Mark::new(shown(row.took_ms), Tone::Quiet));
        }
        if let Body::Code(code) = &row.body {
            // A failed run has a separate mark.
            let hidden = code.hidden();
            if hidden > 0 && !code.has_failed && !self.style.thinking {
                marks.push(hidden_lines(hidden));
            }
        }
        if !row.sources.is_empty() && !self.style.sources {
            let unread = row.unread.len();
            if unread > 0 {
                marks.push(Mark::new(format!("{unread} not read"), Tone::Caution));
            }
            marks.push(Mark {
                long: "(-s lists them)".to_owned(),
                short: "(-s)".to_owned(),
                tone: Tone::Quiet,
            });
        }
        marks.extend(row.marks.iter().cloned());
        if self.style.verbose
            && let Some(tokens) = &row.tokens
        {
            marks.push(Mark::new(tokens.as_str(), Tone::Quiet));
        }
        marks
    }

    /// The first sentence, and a mark if `-t` would show more.
    fn fold(&self, prose: &Footnotes) -> (String, Option<Mark>) {
        let line = prose::sentence(prose, self.style);
        let hidden = prose::lines(prose, self.block_width(), self.style)
            .len()
            .saturating_sub(1);
        if hidden > 0 {
            return (line, Some(hidden_lines(hidden)));
        }
        let mark = (text::width(&line) > self.detail).then(|| Mark::new("(-t)", Tone::Quiet));
        (line, mark)
    }

    /// A text of one line of at most `room` columns follows the name; any other is printed below it.
    fn whole(&self, whole: &str, limit: Option<usize>, room: usize) -> Laid {
        if !whole.contains('\n') && text::width(whole) <= room {
            return Laid::Beside(whole.to_owned());
        }
        Laid::Below(self.limited(text::wrap(whole, self.block_width()), limit))
    }

    /// Like [`Self::whole`], for a text of a model.
    fn prose(&self, text: &Footnotes, limit: Option<usize>, room: usize) -> Laid {
        match prose::short(text, room, self.style) {
            Some(line) => Laid::Beside(line),
            None => {
                let lines = prose::lines(text, self.block_width(), self.style);
                Laid::Below(self.limited(lines, limit))
            }
        }
    }

    /// Limits the lines to `limit`, with a note about the rest; `-v` shows all of them.
    fn limited(&self, mut lines: Vec<String>, limit: Option<usize>) -> Vec<String> {
        if let Some(limit) = limit.filter(|limit| lines.len() > *limit && !self.style.verbose) {
            let hidden = lines.split_off(limit).len();
            lines.push(format!("(+{}, -v)", format::count(hidden, "line")));
        }
        lines
    }

    /// A whole result; on a terminal its lines are wrapped.
    fn result(&self, content: &str) -> Vec<String> {
        let lines = results::lines(content)
            .into_iter()
            .map(|line| text::clean(&line, self.style.charset));
        match self.style.prose {
            Form::Raw => lines.collect(),
            Form::Rendered => lines
                .flat_map(|line| text::wrap(&line, self.block_width()))
                .collect(),
        }
    }

    fn block_indent(&self) -> usize {
        self.time + 1 + SEQ_COLUMNS + 2 * GAP.len()
    }

    fn block_width(&self) -> usize {
        self.style.width.saturating_sub(self.block_indent()).max(20)
    }

    fn indented(&self, text: &str) -> String {
        let text = text::cut(text, self.block_width(), self.style.charset);
        let mut line = Line::default();
        line.push(&" ".repeat(self.block_indent()), Paint::Plain);
        line.push(&text, Paint::Plain);
        line.finish(self.style)
    }
}

/// The position of a row's text.
enum Laid {
    /// One line in the column of details.
    Beside(String),
    /// Lines below the row.
    Below(Vec<String>),
}

impl Laid {
    /// The lines in one colour; the column of details has its own.
    fn painted(self, paint: Paint, style: &Style) -> Self {
        match self {
            Self::Beside(line) => Self::Beside(line),
            Self::Below(lines) => {
                Self::Below(lines.iter().map(|line| paint.over(line, style)).collect())
            }
        }
    }
}

fn shown(took_ms: Option<u64>) -> String {
    took_ms.map(format::took).unwrap_or_default()
}

/// The mark for hidden lines, which `-t` shows.
fn hidden_lines(lines: usize) -> Mark {
    Mark {
        long: format!("(+{}, -t)", format::count(lines, "line")),
        short: format!("(+{lines}, -t)"),
        tone: Tone::Quiet,
    }
}

/// A program and its output in one line, which has a fifth of the width for the program.
pub(super) fn code_line(code: &Code, style: &Style) -> String {
    code.line(
        &text::cut(code.begin(), style.width / 5, style.charset),
        style.charset,
    )
}

/// A printed line. It is painted last, because colours take no room.
#[derive(Debug, Default)]
struct Line(Vec<(String, Paint)>);

impl Line {
    fn push(&mut self, text: &str, paint: Paint) {
        self.0.push((text.to_owned(), paint));
    }

    fn finish(self, style: &Style) -> String {
        let mut room = style.width;
        let mut parts = Vec::new();
        for (part, paint) in self.0 {
            let part = text::cut(&part, room, style.charset);
            room = room.saturating_sub(text::width(&part));
            parts.push((part, paint));
        }
        while let Some((last, _)) = parts.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            parts.pop();
        }
        parts
            .iter()
            .map(|(part, paint)| paint.over(part, style))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_core::timeline::{EventType, rows};

    #[test]
    fn a_long_event_number_takes_its_room_from_the_detail_and_cuts_no_mark() {
        let style = Style {
            width: 80,
            ..Style::default()
        };
        for seq in [7, 1481, 123_456] {
            let mut event = crate::cli::render::tests::story().remove(0);
            (event.event_type, event.content) = (EventType::ToolResult, "line ".repeat(40));
            event.metadata = serde_json::json!({"tool_name": "k8s.get_logs", "bytes": 3_700});
            let row = rows::single(&event, style.charset);
            let front = Front {
                time: "+1.0".to_owned(),
                seq,
                agent: String::new(),
            };
            let lines = Columns::new(&style, None)
                .of_row(seq, None)
                .lines(&front, row);
            assert!(
                lines.iter().all(|line| {
                    line.contains('…') && line.ends_with("  3.7 kB") && text::width(line) == 80
                }),
                "{lines:#?}"
            );
        }
    }
}
