//! Planning: the stages, agents and tools of a session, from the configuration and the alert.
//!
//! `session_planner` asks for the tools that the plan needs; everything else is pure.

mod error;
pub mod route;
pub mod provider_choices;
pub mod provider_plan;
pub mod agent_tools;
mod callable;
pub mod narrowing;
mod presentation;
mod summaries;
mod review;
pub mod skills;
mod past;
pub mod planner;
mod stage_agents;
pub mod follow_up;
pub mod session_planner;
