//! The skills of an agent: those that its settings require, and those that it may load. Pure.

use std::sync::Arc;

use tarsy_config::Settings;
use tarsy_core::plan::ToolSpec;
use tarsy_core::runbook::FetchedRunbook;
use tarsy_core::skill_sections::AgentSkills;
use tarsy_core::skills::Skill;

/// The texts that a plan is made from, beside the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Material<'a> {
    /// The alert's runbook, if it was fetched or tried to.
    pub runbook: Option<&'a FetchedRunbook>,
    /// The skill that takes the place of a runbook that the alert does not name.
    pub runbook_skill: Option<&'a Skill>,
    /// The present skills.
    pub skills: &'a [Arc<Skill>],
    /// The names of the skills that the alert's route requires.
    pub required: &'a [String],
}

impl Material<'_> {
    /// The same for an agent that combines the findings of others.
    pub(super) fn without_runbook(&self) -> Self {
        Self {
            runbook: None,
            runbook_skill: None,
            ..*self
        }
    }
}

/// The skills of an agent with these settings and tools. An agent without tools can load none.
pub(super) fn of_agent(
    settings: &Settings,
    material: &Material<'_>,
    tools: &[ToolSpec],
) -> AgentSkills {
    let mut names: Vec<&String> = settings.required_skills.iter().collect();
    for name in material.required {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let present = material.skills;
    let required: Vec<Arc<Skill>> = names
        .iter()
        .filter_map(|name| present.iter().find(|skill| skill.name == **name))
        .cloned()
        .collect();
    if required.len() < names.len() {
        tracing::warn!(
            required = ?names,
            "skills required, but not all of them are there: tarsy skills check names the faults"
        );
    }
    let mut others = Vec::new();
    for skill in present {
        if settings.selects_skill(&skill.name) && !required.contains(skill) {
            others.push(Arc::clone(skill));
        }
    }
    let mut skills = AgentSkills::new(required, others);
    if tools.is_empty() {
        skills.loadable.clear();
    }
    skills
}

#[cfg(test)]
mod tests {
    use crate::plan::planner::plan;
    use crate::plan::route::choose;
    use crate::plan::skills::Material;
    use crate::ports::Listing;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use tarsy_config::Config;
    use tarsy_core::plan::AgentPlan;
    use tarsy_core::skills::{Skill, SkillText};
    use tarsy_core::testing::{alert, read_only_tool};

    fn skill(name: &str) -> Arc<Skill> {
        Arc::new(Skill {
            name: name.to_owned(),
            description: format!("When {name} is slow"),
            body: SkillText::new(format!("The text of {name}.")),
            files: BTreeMap::new(),
        })
    }

    /// The plan of the only agent, with these settings, and tools or none.
    fn planned(settings: &str, tools: &[&str]) -> AgentPlan {
        let text = format!(
            "llm_providers: {{a: {{provider: scripted}}}}\nmcp_servers: {{k8s: {{command: k}}}}\nagents: {{sre: {{{settings}}}}}"
        );
        let config = Config::parse("f", &text, &|_| None).unwrap();
        let listing = Listing {
            tools: tools.iter().map(|name| read_only_tool(name)).collect(),
            unavailable: vec![],
        };
        let skills = ["house-rules", "k8s-pods", "pg"].map(skill);
        let material = Material {
            skills: &skills,
            ..Material::default()
        };
        let route = choose(&config, "", None).unwrap();
        let plan = plan(&config, &route, &alert(""), &listing, &material).unwrap();
        plan.stages[0].agents[0].as_ref().clone()
    }

    fn loadable(plan: &AgentPlan) -> Vec<&str> {
        plan.skills
            .iter()
            .map(|skill| skill.name.as_str())
            .collect()
    }

    #[test]
    fn an_agent_with_tools_may_load_what_its_settings_name() {
        let plan = planned(
            "skills: ['k8s-*'], required_skills: [house-rules]",
            &["k8s.get"],
        );
        assert_eq!(loadable(&plan), ["k8s-pods"]);
        let names: Vec<_> = plan.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "k8s.get",
                "tarsy.load_skill",
                "tarsy.past_investigations",
                "tarsy.read_result"
            ]
        );
        let system = &plan.system_prompt;
        assert!(system.contains("## Skill: house-rules"), "{system}");
        assert!(system.contains("The text of house-rules."), "{system}");
        assert!(
            system.contains("- k8s-pods: When k8s-pods is slow"),
            "{system}"
        );
        assert!(!system.contains("The text of k8s-pods."), "{system}");
        assert!(!system.contains("- pg:"), "{system}");
    }

    #[test]
    fn by_default_every_skill_is_listed_and_an_empty_list_is_none() {
        assert_eq!(
            loadable(&planned("", &["k8s.get"])),
            ["house-rules", "k8s-pods", "pg"]
        );
        let none = planned("skills: []", &["k8s.get"]);
        assert_eq!(loadable(&none), Vec::<&str>::new());
        let names: Vec<_> = none.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            names,
            ["k8s.get", "tarsy.past_investigations", "tarsy.read_result"]
        );
        assert!(!none.system_prompt.contains("## Skills"));
    }

    #[test]
    fn a_route_requires_skills_beside_those_of_the_settings() {
        let skills = ["house-rules", "k8s-pods", "pg"].map(skill);
        let agent = tarsy_config::Settings {
            required_skills: vec!["house-rules".to_owned()],
            ..tarsy_config::Settings::default()
        };
        let required = ["pg", "house-rules", "unknown"].map(str::to_owned);
        let material = Material {
            skills: &skills,
            required: &required,
            ..Material::default()
        };
        let of_agent = super::of_agent(&agent, &material, &[read_only_tool("k8s.get")]);
        let names = |skills: &[Arc<Skill>]| -> Vec<String> {
            skills.iter().map(|skill| skill.name.clone()).collect()
        };
        assert_eq!(names(&of_agent.required), ["house-rules", "pg"]);
        assert_eq!(names(&of_agent.loadable), ["k8s-pods"]);
    }

    #[test]
    fn an_agent_without_tools_has_required_skills_only() {
        let plan = planned("required_skills: [pg, unknown]", &[]);
        assert_eq!((loadable(&plan), plan.tools.len()), (vec![], 0));
        assert!(plan.system_prompt.contains("The text of pg."));
        assert!(!plan.system_prompt.contains("## Skills"));
    }
}
