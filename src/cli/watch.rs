//! Following a timeline to its end.
//!
//! Knows nothing of where events come from: whoever calls it joins the store's history and the broker's news into one
//! stream. Ends by the end event, at the time limit or on request, and never ends the investigation.

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
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::{Delta, EventType, TimelineEvent};

/// Until somebody who waits for the first event wants to know why.
const PATIENCE: Duration = Duration::from_secs(3);

/// One piece of a timeline that is being followed.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// Durable; in order of `session_seq`, duplicates allowed.
    Event(TimelineEvent),
    /// Live only.
    Delta(Delta),
    /// Nothing has happened yet; only before the first event.
    Waiting(Waiting),
}

/// Why nothing has happened yet, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// One line for people.
    pub text: String,
    /// Nothing more will become known: worth a line that stays.
    pub complete: bool,
}

/// How a timeline is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What it looks like.
    pub style: Style,
    /// One JSON object a line instead.
    pub json: bool,
    /// What becomes of deltas.
    pub live: Live,
    /// For all sessions that are followed together.
    pub timeout: Option<Duration>,
    /// What is followed ends with the watcher: a drill.
    pub ends_with_us: bool,
}

/// How following one timeline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// There is nothing more to follow.
    Over(Exit),
    /// The alert joined this session: follow it next.
    Follow(SessionId),
}

/// A watcher: timelines on `out`, remarks on `notes`.
#[derive(Debug)]
pub struct Watch<W, N> {
    printer: Printer<W>,
    notes: N,
    options: Options,
    deadline: Option<Instant>,
    /// Each timeline that ends is followed by how to see it again.
    hints: bool,
}

impl<W: Write, N: Write> Watch<W, N> {
    /// A watcher whose time begins to run now.
    pub fn new(out: W, notes: N, options: Options) -> Self {
        let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
        Self { printer: Printer::new(out, options.live), notes, options, deadline, hints: true }
    }

    /// The same for timelines of which none is the last word: whoever follows them says how to see them again.
    #[must_use]
    pub fn one_of_several(self) -> Self {
        Self { hints: false, ..self }
    }

    /// Follows one session until its end, the time limit, or until `interrupt` resolves.
    ///
    /// # Errors
    /// When the feed fails or ends before the timeline does, or when nothing can be written.
    pub async fn follow<S, I>(&mut self, session: SessionId, feed: S, interrupt: I) -> anyhow::Result<Watched>
    where
        S: Stream<Item = anyhow::Result<Followed>>,
        I: Future<Output = ()>,
    {
        let mut feed = pin!(feed);
        let mut interrupt = pin!(interrupt);
        let mut timeline = Timeline::new(self.options.style.clone(), session);
        let mut last_seq = 0;
        let mut patience = Some(Instant::now() + PATIENCE);
        let mut told = false;
        loop {
            let next = tokio::select! {
                biased;
                () = &mut interrupt => return self.detach(&timeline),
                () = until(self.deadline) => return self.time_out(&timeline),
                () = until(self.printer.due()) => {
                    self.printer.tick()?;
                    continue;
                }
                () = until(patience) => {
                    patience = None;
                    self.note(&messages::nothing_yet(session))?;
                    continue;
                }
                next = feed.next() => next,
            };
            let next = next.with_context(|| format!("timeline of session {session} broke off before its end"))?;
            patience = None;
            match next.with_context(|| format!("cannot follow session {session}"))? {
                Followed::Event(event) if event.session_seq <= last_seq => {}
                Followed::Event(event) => {
                    last_seq = event.session_seq;
                    self.show(&mut timeline, &event)?;
                    if let Some(watched) = outcome(&event)? {
                        self.end(&timeline, watched)?;
                        return Ok(watched);
                    }
                }
                Followed::Delta(delta) => self.show_delta(&mut timeline, &delta)?,
                Followed::Waiting(_) if last_seq > 0 => {}
                Followed::Waiting(waiting) => told = self.wait(&waiting, told)?,
            }
        }
    }

    /// Prints a line among the remarks, above the status line.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn note(&mut self, line: &str) -> anyhow::Result<()> {
        self.printer.clear()?;
        writeln!(self.notes, "{line}")?;
        self.notes.flush()?;
        Ok(())
    }

    /// Leaves room before another timeline.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn separate(&mut self) -> anyhow::Result<()> {
        if !self.options.json {
            self.printer.lines(&[String::new()], None)?;
        }
        Ok(())
    }

    fn show(&mut self, timeline: &mut Timeline, event: &TimelineEvent) -> anyhow::Result<()> {
        if self.options.json {
            return self.print_json(event);
        }
        let lines = timeline.event(event);
        self.printer.lines(&lines, timeline.status())?;
        Ok(())
    }

    fn show_delta(&mut self, timeline: &mut Timeline, delta: &Delta) -> anyhow::Result<()> {
        match (self.options.live, self.options.json) {
            (Live::Off, _) => Ok(()),
            (Live::Redraw | Live::Lines, true) => self.print_json(delta),
            (Live::Redraw | Live::Lines, false) => {
                if let Some(status) = timeline.delta(delta) {
                    self.printer.status(Some(status))?;
                }
                Ok(())
            }
        }
    }

    /// A status line on a terminal, elsewhere one line once all of it is known; returns whether it was told.
    fn wait(&mut self, waiting: &Waiting, told: bool) -> anyhow::Result<bool> {
        match self.options.live {
            Live::Redraw => {
                let room = self.options.style.width.saturating_sub(1);
                self.printer.status(Some(text::cut(&waiting.text, room, self.options.style.ascii)))?;
                Ok(told)
            }
            Live::Off | Live::Lines if told || !waiting.complete => Ok(told),
            Live::Off | Live::Lines => self.note(&waiting.text).map(|()| true),
        }
    }

    fn print_json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        self.printer.lines(&[json::line(value)?], None)?;
        Ok(())
    }

    fn end(&mut self, timeline: &Timeline, watched: Watched) -> anyhow::Result<()> {
        self.printer.clear()?;
        match watched {
            Watched::Over(_) if self.hints && !self.options.json && !self.options.ends_with_us => {
                self.note(&timeline.finish().join("\n"))
            }
            Watched::Over(_) | Watched::Follow(_) => Ok(()),
        }
    }

    fn detach(&mut self, timeline: &Timeline) -> anyhow::Result<Watched> {
        if self.options.ends_with_us {
            self.note("Interrupted: what was started here ends, and the investigation with it.")?;
        } else {
            self.note(&format!("Detached. {}", timeline.finish().join("\n")))?;
        }
        Ok(Watched::Over(Exit::Interrupted))
    }

    fn time_out(&mut self, timeline: &Timeline) -> anyhow::Result<Watched> {
        let timeout = format::span(self.options.timeout.unwrap_or_default());
        self.note(&format!("No end after {timeout}. {}", timeline.finish().join("\n")))?;
        Ok(Watched::Over(Exit::StillRunning))
    }
}

/// What an event means for the one who follows; `None` while it goes on.
fn outcome(event: &TimelineEvent) -> anyhow::Result<Option<Watched>> {
    if event.event_type != EventType::Joined {
        return Ok(Exit::of_end(&event.event_type).map(Watched::Over));
    }
    let joined = event.metadata.get("joined_session_id").and_then(serde_json::Value::as_str);
    let session = joined.and_then(SessionId::parse);
    session.map(|session| Some(Watched::Follow(session))).with_context(|| {
        format!("alert {} joined a session that it does not name", messages::short(&event.session_id.to_string()))
    })
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
