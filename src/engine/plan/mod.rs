//! Planning: the stages, agents and tools of a session, from the configuration and the alert. Pure.

pub mod provider_plan;
pub mod agent_tools;
pub mod planner;
mod stage_agents;
pub mod follow_up;
