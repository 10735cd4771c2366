//! Arguments of `skills`.

use clap::{Args, Subcommand};

/// The commands about skills.
#[derive(Clone, Debug, Subcommand)]
pub enum SkillsCommand {
    /// Check the skills of the configured directories, and names in tarsy.yaml that no skill has
    Check(SkillsCheckArgs),
    /// List the skills
    List(SkillsArgs),
    /// Print a skill as an agent gets it
    Show(SkillsShowArgs),
}

/// Arguments of `skills check`.
#[derive(Args, Clone, Debug)]
pub struct SkillsCheckArgs {
    /// Ask the MCP servers for their tools, too, and report those that skills name in backticks and no server offers
    #[arg(long)]
    pub tools: bool,
    /// For programs: one JSON object a skill or fault
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `skills list`.
#[derive(Args, Clone, Debug)]
pub struct SkillsArgs {
    /// For programs: one JSON object a skill or fault
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `skills show`.
#[derive(Args, Clone, Debug)]
pub struct SkillsShowArgs {
    /// The name of the skill
    pub name: String,
    /// One of its files below references/, instead of its text
    pub file: Option<String>,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}
