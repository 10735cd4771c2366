//! The skills of a configuration: those of its directories, and names in it that no skill has.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::secrets::{self, Unreadable};
use tarsy_config::{Config, Settings};
use tarsy_core::readable::format;
use tarsy_skills::Library;

/// Reads the directories of the configuration.
///
/// # Errors
/// When a file with values for the mask cannot be read.
pub fn library(config: &Config) -> Result<Library, Unreadable> {
    let mask = secrets::mask(config, None)?;
    let directories: Vec<PathBuf> = config
        .skills
        .directories
        .iter()
        .map(PathBuf::from)
        .collect();
    Ok(Library::read(&directories, config.skills.max_bytes, &mask))
}

/// A line for each name in the configuration that no skill has, with its key. None while no directory has a skill: this
/// machine may lack the directories of the workers.
pub fn unknown(config: &Config, library: &Library) -> Vec<String> {
    let has_directories = !config.skills.directories.is_empty();
    if has_directories && library.skills.is_empty() {
        return Vec::new();
    }
    let mut unknown = Vec::new();
    for (key, settings) in layers(config) {
        let plain = settings.skills.iter().flatten();
        let plain = plain.filter(|pattern| !pattern.contains('*'));
        for name in plain.chain(&settings.required_skills) {
            if library.named(name).is_none() {
                unknown.push(format!("{key}: there is no skill {name}"));
            }
        }
    }
    for route in config.routes.iter() {
        for name in &route.required_skills {
            if library.named(name).is_none() {
                unknown.push(format!("routes.{}: there is no skill {name}", route.name));
            }
        }
    }
    for default in &config.runbooks.default {
        if let Some(name) = &default.skill
            && library.named(name).is_none()
        {
            unknown.push(format!("runbooks.default: there is no skill {name}"));
        }
    }
    unknown
}

/// The number of skills for people, such as `3 skills`.
pub fn counted(library: &Library) -> String {
    let count = u32::try_from(library.skills.len()).unwrap_or(u32::MAX);
    format::count(count, "skill")
}

/// Every layer of settings by its key.
fn layers(config: &Config) -> BTreeMap<String, &Settings> {
    let mut layers = BTreeMap::from([("defaults".to_owned(), &config.defaults.settings)]);
    for (name, agent) in &config.agents {
        layers.insert(format!("agents.{name}"), &agent.settings);
    }
    for (name, chain) in &config.agent_chains {
        let key = format!("agent_chains.{name}");
        for stage in &chain.stages {
            for agent in &stage.agents {
                let key = format!("{key}.{}.{}", stage.name, agent.name);
                layers.insert(key, &agent.settings);
            }
            layers.insert(format!("{key}.{}", stage.name), &stage.settings);
        }
        layers.insert(key, &chain.settings);
    }
    layers
}
