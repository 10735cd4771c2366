//! The agents of a session: decides when the column of agents appears.

use serde_json::Value;

use crate::cli::render::style::Charset;
use crate::cli::render::text;
use tarsy_config::builtin;
use tarsy_core::ids::ExecutionId;
use tarsy_core::timeline::{EventType, TimelineEvent};

use tarsy_core::timeline::rows::meta::Meta;

/// The agents that have appeared so far.
#[derive(Debug)]
pub(super) struct Roster {
    charset: Charset,
    /// The agents in the order in which they appeared.
    agents: Vec<(ExecutionId, String)>,
    /// Columns of the agents' names, once more than one agent has run.
    pub(super) column: Option<usize>,
}

impl Roster {
    pub(super) fn new(charset: Charset) -> Self {
        Self {
            charset,
            agents: Vec::new(),
            column: None,
        }
    }

    /// The name of an execution's agent, once there is a column for it.
    pub(super) fn agent(&self, execution: ExecutionId) -> Option<&str> {
        self.column?;
        self.agents
            .iter()
            .find(|(known, _)| *known == execution)
            .map(|(_, agent)| agent.as_str())
    }

    /// Adds the stage or agent of an event; returns whether this adds the column of agents.
    pub(super) fn add(&mut self, event: &TimelineEvent) -> bool {
        self.add_all(event) || self.add_stage(event) || self.add_agent(event)
    }

    /// The first event of a session with several agents names all of them.
    fn add_all(&mut self, event: &TimelineEvent) -> bool {
        let meta = Meta::new(&event.metadata, self.charset);
        let agents = meta.list("agents");
        if event.event_type != EventType::SessionStarted || agents.len() < 2 {
            return false;
        }
        self.add_column(self.longest(agents))
    }

    fn longest(&self, names: &[Value]) -> usize {
        let names = names.iter().filter_map(Value::as_str);
        let widths = names.map(|name| text::width(&text::one_line(name, self.charset)));
        widths.max().unwrap_or_default()
    }

    fn add_stage(&mut self, event: &TimelineEvent) -> bool {
        if event.event_type != EventType::StageStarted {
            return false;
        }
        let meta = Meta::new(&event.metadata, self.charset);
        let agents = meta.list("agents");
        let longest = self.longest(agents);
        // The synthesis that follows has the same column.
        agents.len() > 1 && self.add_column(longest.max(builtin::SYNTHESIS.len()))
    }

    fn add_agent(&mut self, event: &TimelineEvent) -> bool {
        let Some((execution, agent)) = event.execution_id.zip(event.agent.as_deref()) else {
            return false;
        };
        if self.agents.iter().any(|(known, _)| *known == execution) {
            return false;
        }
        self.agents
            .push((execution, text::one_line(agent, self.charset)));
        let widths = self.agents.iter().map(|(_, agent)| text::width(agent));
        let longest = widths.max().unwrap_or_default();
        self.agents.len() > 1 && self.add_column(longest)
    }

    /// Adds the column unless it is there.
    fn add_column(&mut self, longest: usize) -> bool {
        let is_new = self.column.is_none();
        self.column.get_or_insert_with(|| longest.clamp(8, 12));
        is_new
    }
}
