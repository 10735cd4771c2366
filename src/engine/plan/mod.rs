//! Plans: from a configuration and an alert to the stages, agents and tools of its session. Pure.

pub mod planner;
mod stage_agents;
pub mod follow_up;
