//! The reserve: the part of a session's time that is kept for the conclusion of a stage and for the stages after it.

use std::time::Duration;

use crate::plan::{Plan, StagePlan};

/// A model call that was asked before the soft deadline may end this part of its stage's own reserve behind it.
const GRACE_DIVISOR: u32 = 3;

/// The time that is kept while a stage runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// For the conclusion of the stage; zero if no agent of it keeps any.
    pub own: Duration,
    /// For the stages after it.
    pub later: Duration,
}

impl Reserve {
    /// The time before the deadline at which tools end and no iteration begins.
    pub fn total(self) -> Duration {
        self.own.saturating_add(self.later)
    }

    /// The time before the deadline at which a model call is cut off that was asked before the soft deadline.
    pub fn of_mark(self) -> Duration {
        self.total().saturating_sub(self.own / GRACE_DIVISOR)
    }

    /// The reserve of the stage `stage_no`, counted from 1, if the session has enough time.
    pub fn whole(plan: &Plan, stage_no: u32) -> Self {
        let own = plan.stage(stage_no).map_or(Duration::ZERO, wrap_up);
        let index = usize::try_from(stage_no).unwrap_or(usize::MAX);
        // A review begins only if time is left for it.
        let later = plan.stages.iter().skip(index);
        let later = later.filter(|stage| stage.review.is_none()).map(need);
        let later = later.fold(Duration::ZERO, Duration::saturating_add);
        Self { own, later }
    }

    /// The same parts of at most half of the time that remains when the stage begins.
    #[must_use]
    pub fn within(self, remaining: Duration) -> Self {
        let half = remaining / 2;
        let total = self.total();
        if total <= half {
            return self;
        }
        let scale = half.as_secs_f64() / total.as_secs_f64();
        Self {
            own: self.own.mul_f64(scale),
            later: self.later.mul_f64(scale),
        }
    }
}

/// The longest of the agents.
fn wrap_up(stage: &StagePlan) -> Duration {
    let agents = stage.agents.iter().filter(|agent| agent.wraps_up());
    let longest = agents.map(|agent| agent.wrap_up_ms).max();
    Duration::from_millis(longest.unwrap_or_default())
}

/// The time that a stage needs at least: that of one look and one conclusion for an agent with tools, that of its only
/// answer for any other; of several agents the longest.
pub fn need(stage: &StagePlan) -> Duration {
    let needs = stage.agents.iter().map(|agent| {
        let iteration = Duration::from_millis(agent.limits.iteration_timeout_ms);
        let answers = if agent.strategy.uses_tools() { 2 } else { 1 };
        iteration.saturating_mul(answers)
    });
    needs.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::policy::OnResolved;
    use crate::plan::{AgentPlan, FORMAT_VERSION, Limits, Strategy, SuccessPolicy};

    const LOOKS: Strategy = Strategy::NativeThinking;
    const COMBINES: Strategy = Strategy::Synthesis;

    /// Strategy, time of an iteration and `wrap_up` of an agent, in seconds.
    type Agent = (Strategy, u64, u64);

    fn plan(stages: &[&[Agent]]) -> Plan {
        let stages = stages.iter().map(|agents| StagePlan {
            name: "look".to_owned(),
            success_policy: SuccessPolicy::Any,
            agents: agents
                .iter()
                .map(|(strategy, iteration, wrap_up)| {
                    let limits = Limits {
                        iteration_timeout_ms: iteration * 1_000,
                        ..Limits::default()
                    };
                    let agent = AgentPlan {
                        strategy: *strategy,
                        limits,
                        wrap_up_ms: wrap_up * 1_000,
                        ..AgentPlan::default()
                    };
                    agent.into()
                })
                .collect(),
            review: None,
        });
        Plan {
            version: FORMAT_VERSION,
            chain: "default".to_owned(),
            route: None,
            stages: stages.collect(),
            unavailable_servers: vec![],
            on_resolved: OnResolved::default(),
        }
    }

    #[test]
    fn the_reserve_is_a_conclusion_and_what_later_stages_need() {
        let one: &[&[Agent]] = &[&[(LOOKS, 120, 120)]];
        let team: &[&[Agent]] = &[
            &[(LOOKS, 120, 120), (Strategy::React, 60, 90)],
            &[(COMBINES, 60, 60)],
        ];
        let three: &[&[Agent]] = &[
            &[(LOOKS, 120, 120)],
            &[(LOOKS, 60, 0), (COMBINES, 150, 150)],
            &[(LOOKS, 30, 30)],
        ];
        let old: &[&[Agent]] = &[&[(LOOKS, 120, 0)], &[(COMBINES, 60, 0)]];
        for (stages, stage_no, remaining, own, later) in [
            (one, 1, 2_400, 120, 0),
            // At most half of what remains.
            (one, 1, 240, 120, 0),
            (one, 1, 12, 6, 0),
            (one, 1, 0, 0, 0),
            // The longest of several agents, and the synthesis behind them.
            (team, 1, 2_400, 120, 60),
            (team, 1, 180, 60, 30),
            // An agent without tools has only one answer, and keeps nothing for another one.
            (team, 2, 1_000, 0, 0),
            (three, 1, 2_400, 120, 150 + 60),
            (three, 2, 2_400, 0, 60),
            (three, 3, 2_400, 30, 0),
            (old, 1, 2_400, 0, 60),
            // A stage that the plan does not have.
            (one, 2, 2_400, 0, 0),
        ] {
            let seconds = Duration::from_secs;
            let expected = Reserve {
                own: seconds(own),
                later: seconds(later),
            };
            let reserve = Reserve::whole(&plan(stages), stage_no).within(seconds(remaining));
            assert_eq!(reserve, expected, "{stages:?} {stage_no} {remaining}");
        }
    }

    #[test]
    fn a_model_call_may_end_in_the_first_third_of_the_conclusion() {
        let seconds = Duration::from_secs;
        let reserve = Reserve {
            own: seconds(90),
            later: seconds(60),
        };
        assert_eq!(reserve.total(), seconds(150));
        assert_eq!(reserve.of_mark(), seconds(120));
    }
}
