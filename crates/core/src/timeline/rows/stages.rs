//! The stages of a session: whether they matter, and whether analyses are parts of a synthesis.

use crate::readable::text::Charset;
use crate::timeline::{EventType, TimelineEvent};

use super::meta::Meta;

/// The stages that have appeared so far.
#[derive(Debug, Default)]
pub(super) struct Stages {
    names: Vec<String>,
    /// Several agents run in the present stage, so a synthesis follows their analyses.
    pub(super) is_team: bool,
    /// A stage with several agents has begun.
    had_team: bool,
}

impl Stages {
    pub(super) fn add(&mut self, event: &TimelineEvent) {
        if !is_stage(&event.event_type) {
            return;
        }
        let meta = Meta::new(&event.metadata, Charset::Unicode);
        let name = meta
            .text("stage")
            .or_else(|| event.stage.clone())
            .unwrap_or_default();
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        if event.event_type == EventType::StageStarted {
            self.is_team = meta.list("agents").len() > 1;
            self.had_team |= self.is_team;
        }
    }

    /// Whether the event is about a stage of a chain that has only one with one agent, which says little.
    pub(super) fn is_minor(&self, event: &TimelineEvent) -> bool {
        is_stage(&event.event_type) && self.names.len() < 2 && !self.had_team
    }
}

fn is_stage(event_type: &EventType) -> bool {
    matches!(
        event_type,
        EventType::StageStarted | EventType::StageCompleted
    )
}
