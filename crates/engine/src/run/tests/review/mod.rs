//! Tests of the second look at an analysis: it joins with the analysis, and never costs a session the analysis.

use std::time::Duration;

use serde_json::json;

use super::{control, run};
use crate::ports::{RunStatus, SessionEnd};
use crate::run::early_end::end_early;
use crate::testing::{Death, Scene, Turn};
use tarsy_core::chain::EarlyEnd;
use tarsy_core::execution::entry::{Entry, Mark, NotSent, StopReason};
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::{AgentPlan, AnswerCheck, REVIEW_VERSION, ReviewWhen, StagePlan, Strategy};
use tarsy_core::review::{Review, Verdict};
use tarsy_core::timeline::EventType;

const NATIVE: Strategy = Strategy::NativeThinking;
const FOUND: &str = "Cause: the disk [4]\nSure: likely, the log says so\nEvidence:\n- full [4]";
const CERTAIN: &str = "Cause: the disk [4]\nSure: certain\nEvidence:\n- full [4]";
const STANDS: &str = "Verdict: stands\nWhy: the result says it [4]";
/// A cause that is proven by a result of the first agent.
const REFUTED: &str =
    "Verdict: refuted\nWhy: it is the pool [4]\n\nCause: the pool [4]\nEvidence:\n- full [4]";

fn says(text: &'static str) -> Turn {
    Turn::Says(text, vec![])
}

/// An investigation with one call, and its review by a model of another name.
fn reviewed(when: ReviewWhen, found: &'static str, second: Vec<Turn>) -> Scene {
    let looks = Turn::Says("look", vec![("a", "k8s.get")]);
    let scene = Scene::new(NATIVE, 9, vec![looks, says(found)]);
    scene
        .ports
        .model
        .others
        .lock()
        .insert("second".to_owned(), second);
    {
        let mut disk = scene.disk();
        let plan = &mut disk.record.plan;
        let mut reviewer = AgentPlan::clone(&plan.stages[0].agents[0]);
        "reviewer".clone_into(&mut reviewer.name);
        "second".clone_into(&mut reviewer.providers[0].model);
        reviewer.limits.max_iterations = 1;
        reviewer.limits.max_calls = 3;
        reviewer.reviews = true;
        reviewer.answer_check = AnswerCheck::Once;
        reviewer.wrap_up_ms = 30_000;
        plan.version = REVIEW_VERSION;
        plan.stages.push(StagePlan {
            name: "investigate review".to_owned(),
            agents: vec![reviewer.into()],
            review: Some(when),
            ..StagePlan::default()
        });
    }
    scene
}

fn end(scene: &Scene) -> SessionEnd {
    scene.disk().end.clone().expect("an end")
}

fn review(verdict: Verdict) -> Option<Review> {
    Some(Review {
        verdict,
        model: "second".to_owned(),
    })
}

/// The requests to the model of the review.
fn asked(scene: &Scene) -> Vec<String> {
    let requests = scene.ports.model.requests.lock();
    requests
        .iter()
        .filter(|request| request.provider.model == "second")
        .map(|request| request.messages[1].content.clone())
        .collect()
}

/// Runs within so many seconds, after which the session is past its deadline.
async fn run_within(scene: &Scene, secs: u64) {
    let control = control();
    let _timer = control.stop_after(Duration::from_secs(secs));
    assert_eq!(run(scene, control).await, Ok(()));
}

/// Asserts that the session is completed with the first analysis, unmarked, and a failed review.
fn assert_unreviewed(scene: &Scene, why: &str) {
    let end = end(scene);
    assert_eq!(
        (
            end.status,
            end.final_analysis.as_deref(),
            end.mark,
            end.error.as_deref()
        ),
        (RunStatus::Completed, Some(FOUND), None, None),
        "{why}"
    );
    assert_eq!(end.review, review(Verdict::Failed), "{why}");
    assert_eq!(
        (end.reason, end.dead_letter),
        (StopReason::FinalAnswer, None),
        "{why}"
    );
    assert_eq!(end.event.event_type, EventType::SessionCompleted);
    assert_eq!(end.event.metadata["review"]["verdict"], "failed");
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_with_the_analysis_and_the_words_of_its_review() {
    for (answer, begins, verdict, mark) in [
        (STANDS, FOUND, Verdict::Stands, None),
        (
            "Verdict: weakened\nWhy: one fact [4]",
            "Cause: the disk [4]\nSure: unsure",
            Verdict::Weakened,
            Some(Mark::Weakened),
        ),
        (REFUTED, "Cause: the pool [4]", Verdict::Replaced, None),
        (
            "Verdict: refuted\nWhy: no\n\nCause: a guess",
            FOUND,
            Verdict::Refuted,
            Some(Mark::Disputed),
        ),
        ("It looks right.", FOUND, Verdict::Missing, None),
    ] {
        let scene = reviewed(ReviewWhen::Always, FOUND, vec![says(answer)]);
        assert_eq!(run(&scene, control()).await, Ok(()));
        let end = end(&scene);
        let analysis = end.final_analysis.unwrap();
        assert!(
            analysis.starts_with(begins) && analysis.contains("\n## Second look\n"),
            "{analysis}"
        );
        assert_eq!(
            (end.status, end.review, end.mark),
            (RunStatus::Completed, review(verdict), mark)
        );
        assert_eq!(
            end.event.metadata["review"],
            json!({"verdict": verdict.as_str(), "model": "second"})
        );
        let disk = scene.disk();
        let mut analyses = disk
            .events
            .iter()
            .filter(|event| event.event_type == EventType::FinalAnalysis);
        assert_eq!(analyses.next().unwrap().metadata.get("review"), None);
        assert_eq!(
            analyses.next().unwrap().metadata["review"]["model"],
            "second"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_review_of_weak_analyses_begins_only_after_a_weak_one() {
    for (when, found, begins) in [
        (ReviewWhen::Weak, CERTAIN, false),
        (ReviewWhen::Weak, FOUND, true),
        (ReviewWhen::Weak, "It is the disk.", true),
        (ReviewWhen::Always, CERTAIN, true),
    ] {
        let scene = reviewed(when, found, vec![says(STANDS)]);
        assert_eq!(run(&scene, control()).await, Ok(()));
        assert_eq!(asked(&scene).len(), usize::from(begins), "{when:?} {found}");
        let expected = if begins {
            review(Verdict::Stands)
        } else {
            None
        };
        assert_eq!(end(&scene).review, expected);
        if !begins {
            assert_eq!(end(&scene).final_analysis.as_deref(), Some(found));
        }
    }
    let scene = reviewed(ReviewWhen::Weak, CERTAIN, vec![says(STANDS)]);
    scene.disk().record.plan.unavailable_servers = vec!["k8s".to_owned()];
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        asked(&scene).len(),
        1,
        "a missing server leaves a proof open"
    );
}

#[tokio::test(start_paused = true)]
async fn a_review_gets_the_cited_results_and_may_cite_every_number_of_the_session() {
    let answer = "Verdict: weakened\nWhy: seen in [4], not in [99]";
    let calls = vec![
        ("b", "k8s.get"),
        ("c", "k8s.get"),
        ("d", "k8s.get"),
        ("e", "k8s.get"),
    ];
    let scene = reviewed(
        ReviewWhen::Always,
        FOUND,
        vec![Turn::Says("", calls), says(answer)],
    );
    assert_eq!(run(&scene, control()).await, Ok(()));
    let context = asked(&scene).remove(0);
    for part in [
        "```text\nCause: the disk [4]",
        "[4] k8s.get {}",
        "These numbers may be cited: [4]",
        "[event 4]\n```text\n",
    ] {
        assert!(context.contains(part), "no {part} in {context}");
    }
    let id = ExecutionId::derive(scene.session, 2, 1);
    let entries = scene.disk().entries[&id].clone();
    let results = entries
        .iter()
        .filter_map(|recorded| recorded.entry.result());
    let refused: Vec<Option<NotSent>> = results.map(|result| result.not_sent).collect();
    assert_eq!(refused, [None, None, None, Some(NotSent::TooMany)]);
    assert!(
        entries
            .iter()
            .any(|recorded| matches!(recorded.entry, Entry::Concluding { .. }))
    );
    let own = entries.iter().find_map(|recorded| recorded.event).unwrap();
    let analysis = end(&scene).final_analysis.unwrap();
    assert!(
        analysis.contains("[4]") && analysis.contains("not in [99?]"),
        "{own} {analysis}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_review_that_does_not_complete_leaves_the_analysis_as_it_was() {
    let failing = [
        ("a permanent error", vec![Turn::Misconfigured]),
        ("failures", vec![Turn::Fails, Turn::Fails]),
        ("time-outs", vec![Turn::TimesOut, Turn::TimesOut]),
        ("empty answers", vec![says(""), says(""), says("")]),
    ];
    for (why, turns) in failing {
        let scene = reviewed(ReviewWhen::Always, FOUND, turns);
        assert_eq!(run(&scene, control()).await, Ok(()));
        assert_unreviewed(&scene, why);
    }
    let scene = reviewed(ReviewWhen::Always, FOUND, vec![Turn::NeverAnswers]);
    run_within(&scene, 600).await;
    assert_unreviewed(&scene, "a model that never answers");
}

#[tokio::test(start_paused = true)]
async fn a_review_needs_no_tools() {
    let scene = reviewed(ReviewWhen::Always, FOUND, vec![says(STANDS)]);
    {
        let mut disk = scene.disk();
        let mut reviewer = AgentPlan::clone(&disk.record.plan.stages[1].agents[0]);
        reviewer.tools.clear();
        reviewer.strategy = Strategy::SingleCall;
        disk.record.plan.stages[1].agents = vec![reviewer.into()];
    }
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        (end(&scene).review, end(&scene).mark),
        (review(Verdict::Stands), None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_review_without_enough_time_is_not_begun() {
    // Two iterations of two minutes, of which a second is missing.
    for (secs, begins) in [(241, true), (239, false)] {
        let scene = reviewed(ReviewWhen::Always, FOUND, vec![says(STANDS)]);
        run_within(&scene, secs).await;
        assert_eq!(asked(&scene).len(), usize::from(begins));
        if !begins {
            assert_unreviewed(&scene, "too late");
        }
    }
}

/// A session whose worker dies while the model of the review thinks.
async fn killed_in_review() -> Scene {
    let scene = reviewed(ReviewWhen::Always, FOUND, vec![Turn::OnlyConcludes(STANDS)]);
    let killed = tokio::time::timeout(Duration::from_mins(1), run(&scene, control())); // paused time
    assert!(killed.await.is_err(), "it waits for its model");
    assert_eq!(asked(&scene).len(), 1);
    scene.disk().epoch += 1;
    scene
}

#[tokio::test(start_paused = true)]
async fn at_the_soft_deadline_a_review_concludes_from_what_it_has() {
    let scene = killed_in_review().await;
    run_within(&scene, 40).await;
    let end = end(&scene);
    assert_eq!(
        (end.status, end.review, end.mark),
        (RunStatus::Completed, review(Verdict::Stands), None)
    );
    let stop = Entry::Stopped {
        reason: StopReason::TimeBudget,
    };
    let disk = scene.disk();
    let id = ExecutionId::derive(scene.session, 2, 1);
    assert!(
        disk.entries[&id]
            .iter()
            .any(|recorded| recorded.entry == stop)
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_a_review_over_too_late_asks_no_model() {
    let scene = killed_in_review().await;
    run_within(&scene, 8).await;
    assert_eq!(asked(&scene).len(), 1);
    assert_unreviewed(&scene, "too late");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_a_review_leaves_a_completed_session() {
    let scene = reviewed(ReviewWhen::Always, FOUND, vec![Turn::NeverAnswers]);
    let control = control();
    let cancelled = control.clone();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await; // paused time
        cancelled.cancel();
    };
    let ended = tokio::join!(run(&scene, control), stop).0;
    assert_eq!(ended, Ok(()));
    assert_unreviewed(&scene, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_only_its_review_left_is_completed_whatever_ends_it() {
    let ends = [
        EarlyEnd::Cancelled,
        EarlyEnd::Deadline,
        EarlyEnd::AttemptsExhausted,
        EarlyEnd::GivenUp("no model".to_owned()),
    ];
    for early in ends {
        let scene = reviewed(ReviewWhen::Always, FOUND, vec![Turn::Unavailable]);
        assert!(run(&scene, control()).await.is_err(), "released: no model");
        let ended = end_early(&scene.ports, scene.lease(), early.clone())
            .await
            .unwrap();
        assert_eq!(ended.status, RunStatus::Completed);
        assert_unreviewed(&scene, &format!("{early:?}"));
    }
    let scene = reviewed(ReviewWhen::Always, FOUND, vec![]);
    scene.disk().death = Death::Before(3);
    tokio::select! {
        biased;
        () = scene.ports.journal.died.notified() => {}
        _ = run(&scene, control()) => panic!("outlived its death"),
    }
    scene.disk().epoch += 1;
    scene.disk().death = Death::Never;
    end_early(&scene.ports, scene.lease(), EarlyEnd::Cancelled)
        .await
        .unwrap();
    assert_eq!(
        end(&scene).status,
        RunStatus::Cancelled,
        "before its analysis nothing is completed"
    );
    assert_eq!(end(&scene).review, None);
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_write_a_reviewed_session_ends_the_same() {
    let busy = || {
        let calls = vec![("b", "k8s.get"), ("c", "k8s.get")];
        reviewed(
            ReviewWhen::Weak,
            FOUND,
            vec![Turn::Says("", calls), says(REFUTED)],
        )
    };
    let whole = busy();
    assert_eq!(run(&whole, control()).await, Ok(()));
    let writes = whole.disk().writes;
    assert!(writes > 8, "only {writes} writes");
    assert_eq!(end(&whole).review, review(Verdict::Replaced));
    for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
        let scene = busy();
        scene.disk().death = death;
        tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {}
            ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
        }
        scene.disk().epoch += 1;
        scene.disk().death = Death::Never;
        if scene.disk().end.is_none() {
            assert_eq!(run(&scene, control()).await, Ok(()), "{death:?}");
        }
        let ended = SessionEnd {
            at: end(&whole).at,
            ..end(&scene)
        };
        assert_eq!(ended, end(&whole), "{death:?}");
        let entries = |scene: &Scene| -> Vec<Entry> {
            let disk = scene.disk();
            let all = disk.entries.values().flatten();
            all.map(|recorded| recorded.entry.clone()).collect()
        };
        assert_eq!(entries(&scene), entries(&whole), "{death:?}");
        assert_eq!(
            scene.disk().events.len(),
            whole.disk().events.len(),
            "{death:?}"
        );
        let again = asked(&scene).len() - asked(&whole).len();
        assert!(
            again <= 1,
            "the review was paid {again} times too often: {death:?}"
        );
    }
}
