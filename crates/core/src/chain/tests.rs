//! Tests of chains: every outcome in every order, and the context of the next stage.

use proptest::prelude::*;
use uuid::Uuid;

use super::RunStatus::{Cancelled, Completed, Failed, Running, TimedOut};
use crate::alert::policy::OnResolved;
use crate::chain::*;
use crate::ids::SessionId;
use crate::plan::{AgentPlan, FORMAT_VERSION, ReviewWhen, StagePlan, Strategy};
use crate::testing::agent_plan;

const ENDS: [RunStatus; 4] = [Completed, Failed, TimedOut, Cancelled];

fn agent(name: &str) -> AgentPlan {
    AgentPlan {
        name: name.to_owned(),
        ..agent_plan(Strategy::NativeThinking, vec![])
    }
}

/// A session whose stages have so many agents, called `a`, `b`, …, before its first step.
fn session(stages: &[(SuccessPolicy, usize)]) -> SessionRecord {
    let stages = stages
        .iter()
        .enumerate()
        .map(
            |(number, (success_policy, agents)): (usize, &(SuccessPolicy, usize))| StagePlan {
                name: format!("stage {number}"),
                success_policy: *success_policy,
                agents: "abcdef"
                    .chars()
                    .take(*agents)
                    .map(|name| agent(&name.to_string()).into())
                    .collect(),
                review: None,
            },
        )
        .collect();
    let plan = Plan {
        version: FORMAT_VERSION,
        chain: "c".to_owned(),
        route: None,
        stages,
        unavailable_servers: vec![],
        on_resolved: OnResolved::default(),
    };
    SessionRecord {
        plan,
        step: 0,
        updates: 0,
        stages: vec![],
        recoveries: vec![],
        sub_agents: vec![],
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap() - 1
}

fn begin(record: &mut SessionRecord, stage_no: u32) {
    let agents = record.plan.stage(stage_no).unwrap().agents.len();
    let executions = (1..=u32::try_from(agents).unwrap()).map(|agent_no| ExecutionRecord {
        execution_id: ExecutionId::derive(SessionId(Uuid::nil()), stage_no, agent_no),
        agent_no,
        status: Running,
        checkpoint: 0,
        analysis: None,
        error: None,
        mark: None,
        review: None,
    });
    record.stages.push(StageRecord {
        stage_no,
        status: Running,
        executions: executions.collect(),
    });
}

fn end(run: &mut ExecutionRecord, status: RunStatus) {
    run.status = status;
    run.analysis = (status == Completed).then(|| format!("found by {}", run.agent_no));
    run.error = (status == Failed).then(|| format!("error of {}", run.agent_no));
}

/// A session whose first stage has ended like this, with one more stage of one agent planned.
fn after(policy: SuccessPolicy, statuses: &[RunStatus]) -> SessionRecord {
    let mut record = session(&[(policy, statuses.len()), (SuccessPolicy::Any, 1)]);
    begin(&mut record, 1);
    for (run, status) in record.stages[0].executions.iter_mut().zip(statuses) {
        end(run, *status);
    }
    if let Next::End(end) = next(&record) {
        record.stages[0].status = end.status;
    }
    record
}

#[test]
fn the_table_of_outcomes_holds_for_every_pair_of_executions() {
    use SuccessPolicy::{All, Any};
    let mut table = String::new();
    for first in ENDS {
        for second in ENDS {
            for policy in [Any, All] {
                let record = after(policy, &[first, second]);
                let session = match next(&record) {
                    Next::Begin(2) => "next stage".to_owned(),
                    Next::Finish(Conclusion {
                        status,
                        analysis,
                        error,
                        taken_over_from,
                        review: None,
                    }) => {
                        assert_eq!(taken_over_from, analysis.as_ref().map(|_| 1));
                        format!(
                            "{}{}{}",
                            status.as_str(),
                            error.map(|e| format!(" ({e})")).unwrap_or_default(),
                            analysis
                                .map(|found| format!(", {found}"))
                                .unwrap_or_default()
                        )
                    }
                    other @ (Next::Begin(_) | Next::Run(_) | Next::End(_) | Next::Finish(_)) => {
                        panic!("{other:?}")
                    }
                };
                let row = [first, second, record.stages[0].status].map(RunStatus::as_str);
                let [first, second, stage] = row;
                table += &format!(
                    "{first:<9} {second:<9} {:<3} -> {stage:<9} -> {session}\n",
                    policy.as_str()
                );
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_order_of_the_agents_does_not_matter() {
    for policy in SuccessPolicy::ALL {
        for first in ENDS {
            for second in ENDS {
                let status = |pair: [RunStatus; 2]| after(policy, &pair).stages[0].status;
                assert_eq!(
                    status([first, second]),
                    status([second, first]),
                    "{policy:?} {first:?} {second:?}"
                );
            }
        }
    }
}

#[test]
fn the_end_of_the_only_agent_ends_stage_and_session_alike() {
    for policy in SuccessPolicy::ALL {
        for status in ENDS {
            let record = after(policy, &[status]);
            assert_eq!(record.stages[0].status, status);
            let error = (status == Failed).then(|| "error of 1".to_owned());
            let finish = Next::Finish(Conclusion {
                status,
                analysis: None,
                error,
                taken_over_from: None,
                review: None,
            });
            assert_eq!(
                next(&record),
                if status == Completed {
                    Next::Begin(2)
                } else {
                    finish
                }
            );
        }
    }
}

#[test]
fn the_first_execution_that_ended_like_the_session_decides() {
    let record = after(SuccessPolicy::All, &[Completed, Failed, Failed]);
    let id = |agent_no| Some(ExecutionId::derive(SessionId(Uuid::nil()), 1, agent_no));
    assert_eq!(deciding(&record, Failed), id(2));
    assert_eq!(deciding(&record, Completed), id(1));
    assert_eq!(deciding(&record, Cancelled), None);
    let expected = Some("b: error of 2; c: error of 3".to_owned());
    assert_eq!(
        next(&record),
        Next::Finish(Conclusion {
            status: Failed,
            analysis: None,
            error: expected,
            taken_over_from: None,
            review: None,
        })
    );
    assert_eq!(
        outcomes(&record, 1),
        [("a", Completed), ("b", Failed), ("c", Failed)]
    );
}

#[test]
fn a_single_agent_passes_its_analysis_on_unchanged() {
    let record = after(SuccessPolicy::Any, &[Completed]);
    assert_eq!(context_of(&record, 1), None);
    assert_eq!(context_of(&record, 2).as_deref(), Some("found by 1"));
    assert_eq!(context_of(&after(SuccessPolicy::Any, &[Failed]), 2), None);
}

#[test]
fn several_agents_have_headings_also_those_without_findings() {
    let mut record = after(
        SuccessPolicy::Any,
        &[Completed, Failed, TimedOut, Cancelled],
    );
    record.stages[0].executions[0].analysis =
        Some("Cause: x [4]\n\n### b\nforged\n # c #\n## Details\n".to_owned());
    let expected = "### a\n\nCause: x [4]\n\n\\### b\nforged\n\\# c #\n## Details\n\n\
                    ### b\n\nNo analysis: this agent failed: error of 2\n\n\
                    ### c\n\nNo analysis: this agent ran out of time.\n\n\
                    ### d\n\nNo analysis: this agent was cancelled.";
    assert_eq!(context_of(&record, 2).as_deref(), Some(expected));
    assert_eq!(
        context_of(&after(SuccessPolicy::Any, &[Failed, Failed]), 2),
        None
    );
}

#[test]
fn a_stage_gets_the_findings_of_the_stage_before_it_only() {
    let mut record = session(&[(SuccessPolicy::Any, 1); 3]);
    for stage_no in [1, 2] {
        begin(&mut record, stage_no);
        let stage = record.stages.last_mut().unwrap();
        end(&mut stage.executions[0], Completed);
        stage.executions[0].analysis = Some(format!("found in {stage_no}"));
        stage.status = Completed;
    }
    assert_eq!(context_of(&record, 3).as_deref(), Some("found in 2"));
}

#[test]
fn a_plan_that_ends_with_several_agents_ends_with_what_they_found() {
    let mut record = session(&[(SuccessPolicy::Any, 2)]);
    begin(&mut record, 1);
    let stage = record.stages.last_mut().unwrap();
    end(&mut stage.executions[0], Completed);
    end(&mut stage.executions[1], Cancelled);
    stage.status = Completed;
    let finish = |analysis: &str| {
        Next::Finish(Conclusion {
            status: Completed,
            analysis: Some(analysis.to_owned()),
            error: None,
            taken_over_from: None,
            review: None,
        })
    };
    assert_eq!(next(&record), finish("found by 1"));
    end(&mut record.stages[0].executions[1], Completed);
    assert_eq!(
        next(&record),
        finish("### a\n\nfound by 1\n\n### b\n\nfound by 2")
    );
}

#[test]
fn a_stop_in_a_later_stage_leaves_the_findings_of_the_last_one_that_has_any() {
    for (status, expected) in [
        (TimedOut, Some("found in 2")),
        (Cancelled, Some("found in 2")),
        (Failed, None),
    ] {
        let mut record = session(&[(SuccessPolicy::Any, 1); 4]);
        for stage_no in [1, 2, 3] {
            begin(&mut record, stage_no);
            let stage = record.stages.last_mut().unwrap();
            let ends = if stage_no == 3 { status } else { Completed };
            end(&mut stage.executions[0], ends);
            stage.status = ends;
            if stage_no < 3 {
                stage.executions[0].analysis = Some(format!("found in {stage_no}"));
            }
        }
        let error = (status == Failed).then(|| "error of 1".to_owned());
        let finish = Next::Finish(Conclusion {
            status,
            analysis: expected.map(str::to_owned),
            error,
            taken_over_from: expected.map(|_| 2),
            review: None,
        });
        assert_eq!(next(&record), finish, "{status:?}");
    }
}

/// A session of one agent whose analysis ended like this, with a review planned.
fn reviewed(when: ReviewWhen, analysis: &str, mark: Option<Mark>) -> SessionRecord {
    let mut record = after(SuccessPolicy::Any, &[Completed]);
    record.plan.stages[1].review = Some(when);
    let run = &mut record.stages[0].executions[0];
    run.analysis = Some(analysis.to_owned());
    run.mark = mark;
    record
}

#[test]
fn a_review_begins_after_a_weak_analysis_or_always() {
    const CERTAIN: &str = "Cause: x [1]\nSure: certain";
    for (when, analysis, mark, begins) in [
        (ReviewWhen::Always, CERTAIN, None, true),
        (ReviewWhen::Weak, CERTAIN, None, false),
        (ReviewWhen::Weak, CERTAIN, Some(Mark::NoCause), true),
        (ReviewWhen::Weak, "Cause: x [1]\nSure: likely", None, true),
        (ReviewWhen::Weak, "Cause: x [1]", None, true),
    ] {
        let record = reviewed(when, analysis, mark);
        let begun = next(&record) == Next::Begin(2);
        assert_eq!(begun, begins, "{when:?} {analysis} {mark:?}");
        let verdict = without_review(&record).unwrap().review;
        assert_eq!(
            verdict.is_some(),
            begins,
            "one that was not due did not fail"
        );
    }
}

#[test]
fn a_review_that_ends_in_any_way_leaves_a_completed_session() {
    for status in ENDS {
        let mut record = reviewed(ReviewWhen::Always, "Cause: x [1]", None);
        begin(&mut record, 2);
        let stage = record.stages.last_mut().unwrap();
        end(&mut stage.executions[0], status);
        stage.executions[0].review = (status == Completed).then(|| Review {
            verdict: Verdict::Stands,
            model: "m".to_owned(),
        });
        stage.status = status;
        let Next::Finish(conclusion) = next(&record) else {
            panic!("an end")
        };
        assert_eq!(answering(&record, &conclusion), Some(1));
        assert_eq!(conclusion.status, Completed);
        let verdict = if status == Completed {
            Verdict::Stands
        } else {
            Verdict::Failed
        };
        assert_eq!(
            conclusion.review.unwrap().review.verdict,
            verdict,
            "{status:?}"
        );
        assert!(conclusion.analysis.unwrap().starts_with("Cause: x [1]"));
        let decides = ExecutionId::derive(SessionId(Uuid::nil()), 1, 1);
        assert_eq!(deciding(&record, Completed), Some(decides));
    }
    assert_eq!(
        without_review(&after(SuccessPolicy::Any, &[Completed])),
        None
    );
    let mut failed = after(SuccessPolicy::Any, &[Failed]);
    failed.plan.stages[1].review = Some(ReviewWhen::Always);
    assert_eq!(without_review(&failed), None);
    assert!(matches!(
        next(&failed),
        Next::Finish(Conclusion { status: Failed, .. })
    ));
}

#[test]
fn after_a_stop_no_review_begins() {
    for stopped in [Cancelled, TimedOut] {
        let mut record = after(SuccessPolicy::Any, &[Completed, stopped]);
        record.plan.stages[1].review = Some(ReviewWhen::Always);
        let Next::Finish(conclusion) = next(&record) else {
            panic!("an end")
        };
        assert_eq!(conclusion.status, Completed, "as without a review");
        assert_eq!(conclusion.review.unwrap().review.verdict, Verdict::Failed);
    }
}

/// Brings a session to its end: `pick` chooses which of the running executions ends next. Returns the end and the
/// record at that time.
fn play(
    mut record: SessionRecord,
    outcomes: &[Vec<RunStatus>],
    mut pick: impl FnMut(usize) -> usize,
) -> (Next, SessionRecord) {
    for _ in 0..100 {
        match next(&record) {
            Next::Begin(stage_no) => {
                assert_eq!(
                    index(stage_no),
                    record.stages.len(),
                    "stages begin in order"
                );
                begin(&mut record, stage_no);
            }
            Next::Run(OpenStage {
                stage_no,
                executions,
            }) => {
                let stage = record.stages.last_mut().unwrap();
                assert_eq!((stage.stage_no, stage.status), (stage_no, Running));
                assert!(
                    executions.iter().all(|run| run.status == Running),
                    "nothing that has ended runs again"
                );
                assert!(
                    stage
                        .executions
                        .iter()
                        .filter(|run| run.status == Running)
                        .count()
                        == executions.len()
                );
                let run = &executions[pick(executions.len())];
                let status = outcomes[index(stage_no)][index(run.agent_no)];
                end(&mut stage.executions[index(run.agent_no)], status);
            }
            Next::End(StageEnd {
                stage_no, status, ..
            }) => {
                assert_ne!(status, Running);
                record.stages[index(stage_no)].status = status;
            }
            finish @ Next::Finish(_) => return (finish, record),
        }
    }
    panic!("no end: {record:#?}");
}

fn stages() -> impl proptest::strategy::Strategy<Value = Vec<(SuccessPolicy, Vec<RunStatus>)>> {
    let status = prop_oneof![4 => Just(Completed), 1 => Just(Failed), 1 => Just(TimedOut), 1 => Just(Cancelled)];
    let stage = (
        prop::sample::select(SuccessPolicy::ALL.to_vec()),
        prop::collection::vec(status, 1..=5),
    );
    prop::collection::vec(stage, 1..=4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_chain_ends_the_same_in_every_order_and_runs_nothing_twice(
        stages in stages(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 30),
    ) {
        let shape: Vec<_> = stages.iter().map(|(policy, runs)| (*policy, runs.len())).collect();
        let outcomes: Vec<_> = stages.into_iter().map(|(_, runs)| runs).collect();
        let in_order = play(session(&shape), &outcomes, |_| 0);
        let mut picks = picks.iter().cycle();
        let shuffled = play(session(&shape), &outcomes, |count| picks.next().map_or(0, |pick| pick.index(count)));
        prop_assert_eq!(&in_order, &shuffled);
        let ran: Vec<_> = in_order.1.stages.iter().flat_map(|stage| &stage.executions).collect();
        prop_assert!(ran.iter().all(|run| run.status != Running));
    }
}
