//! The prompts of a review: the second look at an analysis.

use super::{
    ANSWER_FORM, Briefing, Prompts, RUNBOOK_TO_NAME, SOURCES_FINDINGS, SOURCES_RESULTS, Texts,
    render, system_of, user,
};
use crate::alert::Alert;
use crate::plan::Strategy;

const SYSTEM: &str = include_str!("../prompts/review_system.md");
const REACT_SYSTEM: &str = include_str!("../prompts/review_react_system.md");
const ANALYSE_SYSTEM: &str = include_str!("../prompts/review_analyse_system.md");
const FORM: &str = include_str!("../prompts/review_form.md");
const USER: &str = include_str!("../prompts/review_user.md");
const CONCLUDE: &str = include_str!("../prompts/review_conclude.md");
const REACT_CONCLUDE: &str = include_str!("../prompts/review_react_conclude.md");

/// The prompts of the agent that reviews the analysis of an alert. The analysis and the results behind it are added
/// when the stage begins.
pub fn review(briefing: &Briefing<'_>, alert: &Alert) -> Prompts {
    let texts = texts(briefing);
    // The form of an analysis, without the words that it begins the answer.
    let fields = ANSWER_FORM.trim().split_once('\n');
    let fields = fields.map_or(ANSWER_FORM, |(_, fields)| fields.trim());
    let fields = render(
        fields,
        &[("sources", texts.sources.trim()), ("example", "")],
    );
    let form = format!("{}\n\n{fields}", FORM.trim());
    Prompts {
        system: system_of(texts.system, &form, briefing),
        user: user(&texts, alert, briefing),
        conclusion: texts.conclusion.trim().to_owned(),
    }
}

fn texts(briefing: &Briefing<'_>) -> Texts {
    let analyse = Texts {
        system: ANALYSE_SYSTEM,
        sources: SOURCES_FINDINGS,
        user: USER,
        runbook: RUNBOOK_TO_NAME,
        has_runbook: false,
        conclusion: CONCLUDE,
    };
    match briefing.strategy {
        Strategy::React => Texts {
            system: REACT_SYSTEM,
            sources: SOURCES_RESULTS,
            conclusion: REACT_CONCLUDE,
            ..analyse
        },
        Strategy::NativeThinking => Texts {
            system: SYSTEM,
            sources: SOURCES_RESULTS,
            ..analyse
        },
        Strategy::SingleCall | Strategy::Synthesis | Strategy::SynthesisNativeThinking => analyse,
    }
}
