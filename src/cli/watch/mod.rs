//! Follows a timeline to its end and prints it.
//!
//! The caller supplies events and deltas as one stream. Watching ends with the session's last event, at the time limit
//! or on request, and never ends the investigation.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{Stream, StreamExt as _};
use serde::Serialize;
use tokio::time::Instant;

use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::render::timeline::{Style, Timeline};
use crate::cli::render::{format, json, text};
use crate::cli::terminal::{Live, Printer};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{Delta, EventType, TimelineEvent};

/// The time without an event after which a note says so.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(3);

/// One item of a timeline that is being followed.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineItem {
    /// A durable event; in the order of `session_seq`, with duplicates.
    Event(TimelineEvent),
    /// A piece of an answer that is being written.
    Delta(Delta),
    /// The session does not continue; `None` when it does again.
    Waiting(Option<Waiting>),
}

/// The reason why a session does not continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// One line for people.
    pub text: String,
    /// The reason without numbers that change: where there is no status line, each reason is printed once.
    pub reason: String,
    /// The text is final.
    pub complete: bool,
}

/// The options of a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub style: Style,
    /// Prints only the events of the agent of this name, and the end.
    pub agent: Option<String>,
    /// Prints one JSON object a line.
    pub json: bool,
    pub live: Live,
    /// The time limit for all sessions that one watcher follows.
    pub timeout: Option<Duration>,
    /// The investigation ends with this process: a drill.
    pub ends_with_us: bool,
}

impl Options {
    /// Whether what an agent does is shown.
    fn is_of(&self, agent: Option<&str>) -> bool {
        self.agent.is_none() || self.agent.as_deref() == agent
    }

    fn shows(&self, event: &TimelineEvent) -> bool {
        let leads_on = event.event_type.is_end() || event.event_type == EventType::Joined;
        leads_on || self.is_of(event.agent.as_deref())
    }
}

/// The end of following one timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The watching is over.
    Over(Exit),
    /// The alert joined this session: follow it next.
    Follow(SessionId),
}

/// Whether a watcher ends a timeline with how to watch it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hints {
    Printed,
    LeftToCaller,
}

/// A watcher: prints timelines on `out` and remarks on `notes`.
#[derive(Debug)]
pub struct Watch<W, N> {
    printer: Printer<W>,
    notes: N,
    options: Options,
    deadline: Option<Instant>,
    hints: Hints,
    /// The last reason that a note has said.
    noted_reason: Option<String>,
}

impl<W: Write, N: Write> Watch<W, N> {
    /// A watcher whose time limit begins now.
    pub fn new(out: W, notes: N, options: Options) -> Self {
        let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
        Self {
            printer: Printer::new(out, options.live),
            notes,
            options,
            deadline,
            hints: Hints::Printed,
            noted_reason: None,
        }
    }

    /// Suppresses the closing hint, for one of several timelines: the caller prints one hint for all of them.
    #[must_use]
    pub fn one_of_several(self) -> Self {
        Self {
            hints: Hints::LeftToCaller,
            ..self
        }
    }

    /// Follows one session until its end, the time limit, or until `interrupt` resolves.
    ///
    /// # Errors
    /// When the feed fails or ends before the session does, or when the output cannot be written.
    pub async fn follow<S, I>(
        &mut self,
        session: SessionId,
        feed: S,
        interrupt: I,
    ) -> anyhow::Result<Watched>
    where
        S: Stream<Item = anyhow::Result<TimelineItem>>,
        I: Future<Output = ()>,
    {
        let mut feed = pin!(feed);
        let mut interrupt = pin!(interrupt);
        let mut timeline = Timeline::new(self.options.style.clone(), session);
        let mut last_seq = 0;
        let mut first_event_due = Some(Instant::now() + FIRST_EVENT_TIMEOUT);
        self.noted_reason = None;
        loop {
            let next = tokio::select! {
                biased;
                () = &mut interrupt => return self.detach(&timeline),
                () = until(self.deadline) => return self.time_out(&timeline),
                () = until(self.printer.due()) => {
                    self.printer.tick()?;
                    continue;
                }
                () = until(first_event_due) => {
                    first_event_due = None;
                    self.note(&messages::nothing_yet(session))?;
                    continue;
                }
                next = feed.next() => next,
            };
            let next = next.with_context(|| {
                format!("timeline of session {session} broke off before its end")
            })?;
            first_event_due = None;
            match next.with_context(|| format!("cannot follow session {session}"))? {
                TimelineItem::Event(event) if event.session_seq <= last_seq => {}
                TimelineItem::Event(event) => {
                    last_seq = event.session_seq;
                    self.noted_reason = None;
                    self.show(&mut timeline, &event)?;
                    if let Some(watched) = outcome(&event)? {
                        self.end(&timeline, watched)?;
                        return Ok(watched);
                    }
                }
                TimelineItem::Delta(delta) => self.show_delta(&mut timeline, &delta)?,
                TimelineItem::Waiting(None) => self.printer.status(None)?,
                TimelineItem::Waiting(Some(waiting)) => self.show_waiting(waiting)?,
            }
        }
    }

    /// Prints a line among the remarks, above the status line.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn note(&mut self, line: &str) -> anyhow::Result<()> {
        self.printer.clear()?;
        writeln!(self.notes, "{line}")?;
        self.notes.flush()?;
        Ok(())
    }

    /// Prints an empty line before another timeline.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn separate(&mut self) -> anyhow::Result<()> {
        if !self.options.json {
            self.printer.lines(&[String::new()], None)?;
        }
        Ok(())
    }

    fn show(&mut self, timeline: &mut Timeline, event: &TimelineEvent) -> anyhow::Result<()> {
        let lines = timeline.event(event);
        if !self.options.shows(event) {
            return Ok(());
        }
        if self.options.json {
            return self.print_json(event);
        }
        self.printer.lines(&lines, timeline.status())?;
        Ok(())
    }

    fn show_delta(&mut self, timeline: &mut Timeline, delta: &Delta) -> anyhow::Result<()> {
        if self.options.live == Live::Off || !self.options.is_of(delta.agent.as_deref()) {
            return Ok(());
        }
        if self.options.json {
            return self.print_json(delta);
        }
        if let Some(status) = timeline.delta(delta) {
            self.printer.status(Some(status))?;
        }
        Ok(())
    }

    /// Shows a status line on a terminal; elsewhere prints each reason once.
    fn show_waiting(&mut self, waiting: Waiting) -> anyhow::Result<()> {
        match self.options.live {
            Live::Redraw => {
                let style = &self.options.style;
                // The last column stays free: a terminal wraps when it is filled.
                let room = style.width.saturating_sub(1);
                let line = text::cut(&waiting.text, room, style.charset);
                Ok(self.printer.status(Some(line))?)
            }
            Live::Off | Live::Lines
                if !waiting.complete || self.noted_reason.as_ref() == Some(&waiting.reason) =>
            {
                Ok(())
            }
            Live::Off | Live::Lines => {
                self.noted_reason = Some(waiting.reason);
                self.note(&waiting.text)
            }
        }
    }

    fn print_json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        self.printer.lines(&[json::line(value)?], None)?;
        Ok(())
    }

    fn end(&mut self, timeline: &Timeline, watched: Watched) -> anyhow::Result<()> {
        self.printer.clear()?;
        let wants_hint =
            self.hints == Hints::Printed && !self.options.json && !self.options.ends_with_us;
        match watched {
            Watched::Over(_) if wants_hint => self.note(&timeline.finish()),
            Watched::Over(_) | Watched::Follow(_) => Ok(()),
        }
    }

    fn detach(&mut self, timeline: &Timeline) -> anyhow::Result<Watched> {
        if self.options.ends_with_us {
            self.note("Interrupted: the drill ends, and its investigation with it.")?;
        } else {
            self.note(&format!("Detached. {}", timeline.finish()))?;
        }
        Ok(Watched::Over(Exit::Interrupted))
    }

    fn time_out(&mut self, timeline: &Timeline) -> anyhow::Result<Watched> {
        let timeout = format::span(self.options.timeout.unwrap_or_default());
        self.note(&format!("No end after {timeout}. {}", timeline.finish()))?;
        Ok(Watched::Over(Exit::StillRunning))
    }
}

/// The end that an event means; `None` for any other event.
fn outcome(event: &TimelineEvent) -> anyhow::Result<Option<Watched>> {
    if event.event_type != EventType::Joined {
        return Ok(Exit::of_end(&event.event_type).map(Watched::Over));
    }
    let joined = event.metadata.get("joined_session_id");
    let session = joined.and_then(|id| SessionId::parse(id.as_str()?));
    let session = session.with_context(|| {
        let alert = event.session_id.short();
        format!("the joined event of alert {alert} has no valid session id")
    })?;
    Ok(Some(Watched::Follow(session)))
}

/// Returns at `deadline`; never without one.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
