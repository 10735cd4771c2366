//! The prompts of a sub-agent: one task of an investigation.

use super::{Briefing, Prompts, RUNBOOK_TO_NAME, SOURCES_RESULTS, Texts, render, system_of, user};
use crate::alert::Alert;

const SYSTEM: &str = include_str!("../prompts/sub_agent_system.md");
const REACT_SYSTEM: &str = include_str!("../prompts/sub_agent_react_system.md");
const FORM: &str = include_str!("../prompts/sub_agent_form.md");
const USER: &str = include_str!("../prompts/sub_agent_user.md");
const CONCLUDE: &str = include_str!("../prompts/sub_agent_conclude.md");
const REACT_CONCLUDE: &str = include_str!("../prompts/sub_agent_react_conclude.md");

/// The prompts of an agent that does one task of the investigation of an alert. Its first user message lacks the task,
/// which another agent writes later.
pub fn sub_agent(briefing: &Briefing<'_>, alert: &Alert) -> Prompts {
    let texts = texts(briefing);
    let form = render(FORM, &[("sources", texts.sources.trim())]);
    Prompts {
        system: system_of(texts.system, &form, briefing),
        user: user(&texts, alert, briefing),
        conclusion: texts.conclusion.trim().to_owned(),
    }
}

/// The texts of a strategy. A sub-agent has tools: no other strategy is configured for one.
fn texts(briefing: &Briefing<'_>) -> Texts {
    let writes_calls = briefing.strategy.writes_calls();
    Texts {
        system: if writes_calls { REACT_SYSTEM } else { SYSTEM },
        sources: SOURCES_RESULTS,
        user: USER,
        runbook: RUNBOOK_TO_NAME,
        has_runbook: true,
        conclusion: if writes_calls {
            REACT_CONCLUDE
        } else {
            CONCLUDE
        },
    }
}
