//! Findings about a skill that works, but could be better: for the people who write it.

use super::library::SourcedSkill;

/// The words of a description that say when the skill helps.
const WHEN: [&str; 5] = ["when", "if ", "use for", "use this", "for alerts"];

/// The findings about a skill, each a sentence.
pub fn findings(known: &SourcedSkill) -> Vec<String> {
    let mut findings = Vec::new();
    let skill = &known.skill;
    if known.has_secret {
        findings
            .push("it has a secret, which is masked: remove it, and change the secret".to_owned());
    }
    let description = skill.description.to_lowercase();
    if !WHEN.iter().any(|word| description.contains(word)) {
        findings.push(
            "its description does not say when it helps: a model chooses by the description alone"
                .to_owned(),
        );
    }
    for link in links(&skill.body.text) {
        if !skill.files.contains_key(link) {
            findings.push(format!(
                "it links to references/{link}, which does not exist or is left out"
            ));
        }
    }
    findings
}

/// The files below `references/` that a Markdown text links to.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for part in text.split("](").skip(1) {
        let target = part.split([')', '#', ' ', '\n']).next().unwrap_or_default();
        let target = target.strip_prefix("./").unwrap_or(target);
        if let Some(file) = target.strip_prefix("references/")
            && !links.contains(&file)
        {
            links.push(file);
        }
    }
    links
}
