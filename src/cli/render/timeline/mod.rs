//! The timeline in a terminal: events and deltas in, printed lines and a status line out.
//!
//! Pure: knows nothing of terminals, streams or clocks. Text of models and tools is cleaned here, once, on its way in.

mod calls;
mod code;
mod event;
pub(crate) mod footnotes;
mod live;
pub(crate) mod meta;
mod row;
mod session;
pub(crate) mod status_line;

use chrono::{DateTime, Utc};

use crate::cli::messages;
use crate::cli::render::{format, text};
use crate::config::builtin;
use crate::investigation::ids::{ExecutionId, SessionId};
use crate::investigation::timeline::{Delta, EventType, TimelineEvent};

pub use super::style::Style;
pub use status_line::news;

use calls::Calls;
use live::Live;
use meta::Meta;
use row::{Body, Columns, Place};

/// Lines of one agent's analysis while others work beside it; a synthesis follows.
const PART_LINES: usize = 14;

/// The rendering of one session.
#[derive(Debug)]
pub struct Timeline {
    style: Style,
    session: SessionId,
    started_at: Option<DateTime<Utc>>,
    ended: bool,
    /// In order of appearance.
    agents: Vec<(ExecutionId, String)>,
    /// Columns of the agents' names, once more than one has run.
    agent_column: Option<usize>,
    stages: Vec<String>,
    /// Several agents run in the present stage: what each of them finds is not the last word.
    team: bool,
    /// A stage with several agents has begun.
    had_team: bool,
    calls: Calls,
    live: Live,
}

impl Timeline {
    /// A timeline that has shown nothing yet.
    pub fn new(style: Style, session: SessionId) -> Self {
        Self {
            style,
            session,
            started_at: None,
            ended: false,
            agents: Vec::new(),
            agent_column: None,
            stages: Vec::new(),
            team: false,
            had_team: false,
            calls: Calls::default(),
            live: Live::default(),
        }
    }

    /// The printed lines of an event, in `session_seq` order; none for one that is not for people.
    pub fn event(&mut self, event: &TimelineEvent) -> Vec<String> {
        self.live.event(event);
        if event.event_type == EventType::Joined {
            self.ended = true;
            return vec![self.joined(event)];
        }
        let mut lines = Vec::new();
        let is_first = self.started_at.is_none();
        let started_at = *self.started_at.get_or_insert(event.created_at);
        if is_first {
            lines.push(self.title(event));
        }
        // A second agent brings its column, so the names of the columns are said again.
        if self.staff(event) || self.meet(event) || is_first {
            lines.push(Columns::new(&self.style, self.agent_column).head());
        }
        let tool = self.calls.name(event, self.style.ascii);
        if self.is_hidden(event) {
            return lines;
        }
        let mut row = event::row(event, tool, &self.style);
        if self.team && !self.style.verbose && event.event_type == EventType::FinalAnalysis {
            "analysis".clone_into(&mut row.name);
            if let Body::Whole(_, limit) = &mut row.body {
                *limit = Some(PART_LINES);
            }
        }
        let columns = Columns::new(&self.style, self.agent_column).numbered(event.session_seq);
        lines.extend(columns.lines(&self.place(event, started_at), row));
        self.ended |= event.event_type.is_end();
        lines
    }

    /// The status line after a delta; `None` when the delta changes nothing.
    pub fn delta(&mut self, delta: &Delta) -> Option<String> {
        let is_ours = delta.session_id == self.session && !self.ended;
        (is_ours && self.live.delta(delta)).then(|| self.status()).flatten()
    }

    /// What is being written now, in one line that fits; `None` for nothing.
    pub fn status(&self) -> Option<String> {
        // The last column stays free: a terminal wraps when it is filled.
        let room = self.style.width.saturating_sub(1);
        let indent = " ".repeat(if self.style.utc { 16 } else { 12 });
        let agents: Vec<_> = self.agents.iter().filter(|_| self.agent_column.is_some()).collect();
        let (execution, _) = self.live.status(room, self.style.ascii)?;
        let agent = agents.iter().find(|(id, _)| *id == execution).map(|(_, agent)| format!("{agent}  "));
        let head = format!("{indent}{}", agent.unwrap_or_default());
        let (_, status) = self.live.status(room.saturating_sub(text::width(&head)), self.style.ascii)?;
        Some(text::cut(&format!("{head}{status}"), room, self.style.ascii))
    }

    /// What to say when nothing more is shown: where the whole of it is, or how to go on watching.
    pub fn finish(&self) -> Vec<String> {
        let short = self.session.short();
        if self.ended {
            return vec![format!("Again: tarsy watch {short}      all thinking: -t      for programs: --json")];
        }
        if self.started_at.is_none() && self.live.is_empty() {
            return vec![messages::once_more(self.session)];
        }
        vec![messages::go_on(self.session)]
    }

    /// Takes the agents of a stage in; `true` when they bring their column.
    fn staff(&mut self, event: &TimelineEvent) -> bool {
        if event.event_type != EventType::StageStarted {
            return false;
        }
        let agents = Meta::new(&event.metadata, self.style.ascii).list("agents");
        let names = agents.iter().filter_map(|agent| agent.as_str()).map(|name| text::one_line(name, self.style.ascii));
        let longest = names.map(|name| text::width(&name)).max().unwrap_or_default();
        self.team = agents.len() > 1;
        self.had_team |= self.team;
        if !self.team || self.agent_column.is_some() {
            return false;
        }
        // The synthesis that follows is in this column, too.
        self.agent_column = Some(agent_columns(longest.max(builtin::SYNTHESIS.len())));
        true
    }

    /// Takes the agent of an event in; `true` when it is the second one.
    fn meet(&mut self, event: &TimelineEvent) -> bool {
        let Some((execution, agent)) = event.execution_id.zip(event.agent.as_deref()) else {
            return false;
        };
        if self.agents.iter().any(|(known, _)| *known == execution) {
            return false;
        }
        self.agents.push((execution, text::one_line(agent, self.style.ascii)));
        if self.agents.len() < 2 || self.agent_column.is_some() {
            return false;
        }
        let longest = self.agents.iter().map(|(_, agent)| text::width(agent)).max().unwrap_or_default();
        self.agent_column = Some(agent_columns(longest));
        true
    }

    fn is_hidden(&mut self, event: &TimelineEvent) -> bool {
        let is_stage = matches!(event.event_type, EventType::StageStarted | EventType::StageCompleted);
        if !is_stage {
            return false;
        }
        let meta = Meta::new(&event.metadata, false);
        let name = meta.text("stage").or_else(|| event.stage.clone()).unwrap_or_default();
        if !self.stages.contains(&name) {
            self.stages.push(name);
        }
        // Whether a chain has more than one stage shows when the second one begins; one with several agents is followed
        // by a synthesis.
        self.stages.len() < 2 && !self.had_team && !self.style.verbose
    }

    fn place(&self, event: &TimelineEvent, started_at: DateTime<Utc>) -> Place {
        let since = (event.created_at - started_at).num_milliseconds().max(0);
        let time = if self.style.utc {
            let tenths = event.created_at.timestamp_subsec_millis() / 100;
            format!("{}.{tenths}", event.created_at.format("%H:%M:%S"))
        } else {
            format::since_start(u64::try_from(since).unwrap_or_default())
        };
        let agent = event.agent.as_deref().map_or_else(|| "-".to_owned(), |a| text::one_line(a, self.style.ascii));
        Place { time, seq: event.session_seq, agent }
    }

    fn title(&self, event: &TimelineEvent) -> String {
        let meta = Meta::new(&event.metadata, self.style.ascii);
        // What it asks is the next event.
        let about = meta.text("parent_id").map(|parent| format!("question about session {}", messages::short(&parent)));
        let title = about.or_else(|| meta.text("title")).or_else(|| meta.text("alert_type"));
        let facts = [title, meta.text("severity")];
        let facts: Vec<_> = facts.into_iter().flatten().collect();
        let session = format!("session {}", self.session.short());
        let room = self.style.width.saturating_sub(text::width(&session) + 3);
        let title = text::cut(&facts.join("  "), room, self.style.ascii);
        let gap = " ".repeat(room.saturating_sub(text::width(&title)) + 2);
        format!(" {title}{gap}{session}")
    }

    fn joined(&self, event: &TimelineEvent) -> String {
        let meta = Meta::new(&event.metadata, self.style.ascii);
        let session = meta.text("joined_session_id").unwrap_or_default();
        if meta.text("reason").as_deref() == Some("cooldown") {
            let finished = meta.text("finished_at").and_then(|at| DateTime::parse_from_rfc3339(&at).ok());
            return messages::cooled(&session, finished.and_then(|at| (event.created_at - at.to_utc()).to_std().ok()));
        }
        messages::joined(
            &session,
            meta.text("fingerprint").as_deref(),
            meta.number("running_ms").map(std::time::Duration::from_millis),
        )
    }
}

/// Columns for names of which the longest takes so many.
fn agent_columns(longest: usize) -> usize {
    longest.clamp(8, 12)
}
