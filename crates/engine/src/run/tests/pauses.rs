//! Tests of the time in prompts after a worker has died.

use chrono::{TimeDelta, Utc};

use super::{control, run};
use crate::testing::{Death, Scene, Turn};
use tarsy_core::clock::ClockPlan;
use tarsy_core::execution::entry::Role;
use tarsy_core::plan::Strategy;
use tarsy_core::testing::alert;

/// The user messages of the last request. A worker died with the n-th write, and another one went on an hour later.
async fn shown_an_hour_later(max_iterations: u32, write: u32) -> Vec<String> {
    let turns = vec![
        Turn::Says("", vec![("a", "k8s.get")]),
        Turn::Says("Cause: y", vec![]),
    ];
    let scene = Scene::new(Strategy::NativeThinking, max_iterations, turns);
    let received_at = Utc::now() - TimeDelta::hours(1);
    {
        let mut disk = scene.disk();
        disk.record.plan = disk
            .record
            .plan
            .clone()
            .with_clock(ClockPlan::of_alert(&alert("x"), received_at));
        disk.death = Death::After(write);
    }
    tokio::select! {
        biased;
        () = scene.ports.journal.died.notified() => {}
        ended = run(&scene, control()) => panic!("outlived its death: {ended:?}"),
    }
    {
        let mut disk = scene.disk();
        (disk.epoch, disk.death) = (disk.epoch + 1, Death::Never);
        for recorded in disk.entries.values_mut().flatten() {
            recorded.at = recorded.at.map(|at| at - TimeDelta::hours(1));
        }
    }
    assert_eq!(run(&scene, control()).await, Ok(()));
    let requests = scene.ports.model.requests.lock();
    let messages = requests
        .last()
        .unwrap()
        .messages
        .iter()
        .filter(|message| message.role == Role::User);
    messages.map(|message| message.content.clone()).collect()
}

const PAUSE: &str = ", 1 h after the message above; what it shows may have changed.";

#[tokio::test(start_paused = true)]
async fn the_model_learns_once_that_an_hour_has_passed() {
    // The first message, the answer with a call, its result.
    let messages = shown_an_hour_later(9, 4).await;
    let [opening, pause] = messages.as_slice() else {
        panic!("{messages:#?}")
    };
    assert!(
        opening.contains("\n\nIt is now ") && opening.ends_with("tarsy received it just now."),
        "{opening}"
    );
    assert!(
        pause.starts_with("It is now ") && pause.ends_with(PAUSE),
        "{pause}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_request_to_conclude_stays_the_last_message_after_a_pause() {
    for write in [4, 5] {
        let messages = shown_an_hour_later(1, write).await;
        let pause = messages
            .iter()
            .position(|message| message.ends_with(PAUSE))
            .unwrap();
        let last = messages.last().unwrap();
        assert!(
            last.starts_with("It is now ") && last.ends_with("\n\nConclude now."),
            "{write}: {messages:#?}"
        );
        assert_eq!(pause, messages.len() - 2, "{write}: {messages:#?}");
    }
}
