//! Tests of the limits of sub-agents: their number, tokens and time.

use super::*;

/// Calls of the agent `x`, as many as there are ids.
fn calls(ids: &[&'static str]) -> Calls {
    ids.iter().map(|id| (*id, "dispatch:x")).collect()
}

const TEN: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

#[tokio::test(start_paused = true)]
async fn four_sub_agents_run_at_once_and_eight_in_all() {
    let scene = scene(
        vec![
            Turn::Says("", calls(&TEN)),
            Turn::Says("", vec![("late", "dispatch:x")]),
            says("Cause: x"),
        ],
        vec![("x", vec![Turn::Slowly(60, "Found: x", vec![])])],
    );
    let began = Instant::now();
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(began.elapsed().as_secs(), 120, "two rounds of four");
    let results = results(&scene);
    let ids: Vec<&str> = results
        .iter()
        .map(|result| result.call_id.as_str())
        .collect();
    assert_eq!(ids[..10], TEN);
    for (at, result) in results.iter().enumerate() {
        if at < 8 {
            assert_eq!(result.content, "Found: x");
        } else {
            assert_eq!(result.content, "Error: not run: at most 8 agents in all");
            assert_eq!(result.not_sent, Some(NotSent::TooMany));
        }
    }
    assert_eq!(scene.disk().record.sub_agents.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_plan_without_sub_agents_refuses_the_tool_as_one_that_it_does_not_have() {
    let scene = Scene::new(
        NATIVE,
        9,
        vec![
            Turn::Says("", vec![("one", "dispatch:x")]),
            says("Cause: x"),
        ],
    );
    assert_eq!(run(&scene, control()).await, Ok(()));
    let results = results(&scene);
    assert_eq!(results[0].not_sent, Some(NotSent::UnknownTool));
    assert!(results[0].content.contains("unknown tool"), "{results:?}");
    assert!(scene.disk().record.sub_agents.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_an_iteration_stands_still_while_it_waits() {
    let calls = vec![("one", "dispatch:x"), ("after", "k8s.get")];
    let scene = scene(
        vec![Turn::Says("", calls), says("Cause: x")],
        vec![(
            "x",
            vec![
                Turn::Slowly(50, "", vec![("x1", "k8s.get")]),
                Turn::Slowly(50, "Found: x", vec![]),
            ],
        )],
    );
    change(&scene, |lead| {
        lead.limits.iteration_timeout_ms = 60_000;
        let mut agent = AgentPlan::clone(&lead.sub_agents[0].plan);
        agent.limits.iteration_timeout_ms = 60_000;
        lead.sub_agents[0].plan = agent.into();
    });
    assert_eq!(run(&scene, control()).await, Ok(()));
    let found = contents(&scene);
    assert_eq!(found[0].1, "Found: x");
    assert_eq!(found[1].1, "k8s.get says hello");
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_sub_agents_use_up_the_budget_of_their_parent() {
    let looks = |id| Turn::Says("", vec![(id, "k8s.get")]);
    let agent = vec![
        looks("x1"),
        looks("x2"),
        looks("x3"),
        Turn::OnlyConcludes("Found: x"),
    ];
    let scene = scene(
        vec![
            Turn::Says("", calls(&["one", "two"])),
            says("Cause: forced"),
        ],
        vec![("x", agent)],
    );
    // The first answer takes 12, and each of two sub-agents may have 30 of the rest: three answers of 12, and one more.
    change(&scene, |lead| lead.limits.max_tokens = 72);
    assert_eq!(run(&scene, control()).await, Ok(()));
    let spent: Vec<u64> = results(&scene)
        .iter()
        .map(|result| result.spent.as_ref().unwrap().usage.total())
        .collect();
    assert_eq!(spent, [48, 48]);
    let forced = Entry::Concluding {
        reason: StopReason::Budget,
    };
    assert!(journal(&scene, lead()).contains(&forced));
    for call in ["one", "two"] {
        let journal = journal(&scene, lead().of_sub_agent(call));
        assert!(journal.contains(&forced), "{journal:?}");
    }
    let end = end(&scene);
    assert_eq!(end.final_analysis.as_deref(), Some("Cause: forced"));
    assert_eq!(end.reason, StopReason::Budget);
}

/// Gives every agent a part of the session's time for its conclusion.
fn keep(scene: &Scene) {
    change(scene, |lead| {
        lead.wrap_up_ms = 60_000;
        lead.limits.iteration_timeout_ms = 600_000;
        for agent in &mut lead.sub_agents {
            let mut plan = AgentPlan::clone(&agent.plan);
            plan.wrap_up_ms = 60_000;
            plan.limits.iteration_timeout_ms = 600_000;
            agent.plan = plan.into();
        }
    });
}

async fn run_within(scene: &Scene, secs: u64) -> u64 {
    let control = control();
    let _timer = control.stop_after(Duration::from_secs(secs));
    let began = Instant::now();
    assert_eq!(run(scene, control).await, Ok(()));
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_concludes_before_its_parent_has_to() {
    let looks =
        ["k8s.get", "k8s.refused"].map(|tool| Turn::LooksSlowly(100, "", vec![("x", tool)]));
    let scene = scene(
        vec![Turn::Says("", calls(&["one"])), says("Cause: y")],
        vec![("x", looks.into_iter().cycle().take(9).collect())],
    );
    keep(&scene);
    let took = run_within(&scene, 600).await;
    assert!((480..540).contains(&took), "{took}");
    assert_eq!(contents(&scene)[0].1, "Cause: y", "its conclusion");
    let stop = Entry::Stopped {
        reason: StopReason::TimeBudget,
    };
    assert!(journal(&scene, lead().of_sub_agent("one")).contains(&stop));
    let end = end(&scene);
    assert_eq!(
        (end.status, end.reason),
        (RunStatus::Completed, StopReason::FinalAnswer),
        "its parent had time left"
    );
}

#[tokio::test(start_paused = true)]
async fn the_soft_deadline_of_a_parent_ends_its_sub_agents() {
    let scene = stuck();
    keep(&scene);
    let took = run_within(&scene, 600).await;
    assert_eq!(took, 540);
    assert_eq!(
        contents(&scene)[0].1,
        "the agent had no answer when its time was used up"
    );
    assert_eq!(statuses(&scene)["one"], RunStatus::TimedOut);
    let end = end(&scene);
    assert_eq!(
        (end.status, end.reason, end.final_analysis.as_deref()),
        (
            RunStatus::Completed,
            StopReason::TimeBudget,
            Some("Cause: y")
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_over_behind_the_soft_deadline_ends_what_it_finds() {
    let whole = stuck();
    keep(&whole);
    run_within(&whole, 600).await;
    let writes = whole.disk().writes;
    for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
        let scene = stuck();
        keep(&scene);
        scene.disk().death = death;
        tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {}
            _ = run_within(&scene, 600) => panic!("outlived {death:?}"),
        }
        scene.disk().epoch += 1;
        scene.disk().death = Death::Never;
        if scene.disk().end.is_none() {
            run_within(&scene, 50).await;
        }
        let end = end(&scene);
        assert_eq!(end.final_analysis.as_deref(), Some("Cause: y"), "{death:?}");
        let left = statuses(&scene);
        assert!(
            left.values().all(|status| *status != RunStatus::Running),
            "{left:?} {death:?}"
        );
    }
}
