//! Tests of the checks before people are asked, as far as the engine makes them.

use super::*;
use tarsy_core::approvals::CallHash;
use tarsy_core::execution::approvals::{MAX_AGE, MAX_OF_SESSION};

fn two_changes() -> Scene {
    let turns = vec![
        Turn::Says("because", vec![("v", "k8s.restart"), ("w", "k8s.restart")]),
        Turn::Says("Cause: y", vec![]),
    ];
    scene(Strategy::NativeThinking, turns)
}

const NOT_ASKED: ApprovalOutcome = ApprovalOutcome::NotAsked;
const APPROVED: ApprovalOutcome = ApprovalOutcome::Approved;

#[tokio::test(start_paused = true)]
async fn all_calls_of_an_answer_are_asked_about_in_one_checkpoint() {
    let scene = two_changes();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    let asked: Vec<_> = scene
        .disk()
        .requests
        .iter()
        .map(|request| {
            (
                request.asked.call_id.clone(),
                request.asked.why.clone(),
                request.is_open(),
            )
        })
        .collect();
    let open = |call: &str| (call.to_owned(), "because".to_owned(), true);
    assert_eq!(asked, [open("v"), open("w")]);
    let events: Vec<u32> = scene
        .disk()
        .requests
        .iter()
        .map(|request| request.event)
        .collect();
    assert_eq!(events[0] + 1, events[1]);
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_are_answered_and_not_asked_about() {
    let scene = two_changes();
    let unfit = ("v".to_owned(), "pod: is missing".to_owned());
    scene.ports.tools.unfit.lock().extend([unfit]);
    drive(&scene, &People::new()).await;
    assert_eq!(
        outcomes(&scene.disk()),
        [("v".to_owned(), NOT_ASKED), ("w".to_owned(), APPROVED)]
    );
    assert!(result(&scene, "v").contains("pod: is missing"));
    assert_eq!([sent(&scene, "v"), sent(&scene, "w")], [0, 1]);
    let asked: Vec<_> = scene
        .disk()
        .requests
        .iter()
        .map(|request| request.asked.call_id.clone())
        .collect();
    assert_eq!(asked, ["w"]);
}

#[tokio::test(start_paused = true)]
async fn people_are_asked_up_to_the_limits_of_all_sessions_of_one_and_of_its_age() {
    let scene = two_changes();
    scene.disk().open_elsewhere = 999;
    drive(&scene, &People::new()).await;
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), NOT_ASKED), ("v".to_owned(), APPROVED)],
        "the one that fits is asked about"
    );
    assert!(
        result(&scene, "w").contains("at most 1000 at the same time"),
        "{}",
        result(&scene, "w")
    );

    let old = two_changes();
    old.disk().session_age = MAX_AGE + Duration::from_secs(1);
    assert_eq!(drive(&old, &People::new()).await, 0);
    assert_eq!(outcomes(&old.disk()).len(), 2);
    assert!(old.disk().requests.is_empty());
    assert!(
        result(&old, "v").contains("older than 7 days"),
        "{}",
        result(&old, "v")
    );

    let often = two_changes();
    often.disk().asked_before = MAX_OF_SESSION - 1;
    drive(&often, &People::new()).await;
    assert_eq!(often.disk().requests.len(), 1);
    assert!(result(&often, "w").contains("at most 20 of one investigation"));
}

fn scene_of(turns: Vec<Turn>) -> Scene {
    scene(Strategy::NativeThinking, turns)
}

/// The hash of the only request, in the journal and in the store.
fn hashes(scene: &Scene) -> [CallHash; 2] {
    let entries = scene.journal();
    let requested = entries.iter().find_map(|entry| {
        if let Entry::ApprovalRequested(requested) = entry {
            Some(requested.call_sha256)
        } else {
            None
        }
    });
    [
        requested.unwrap(),
        scene.disk().requests[0].asked.call_sha256,
    ]
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_reading_no_person_can_read_is_neither_asked_about_nor_sent() {
    for unreadable in [
        "{\"pod\":\"a\",\"pod\":\"b\"}",
        "{\"p\u{202e}od\":\"a\"}",
        "[\"a\"]",
    ] {
        let scene = scene_of(vec![
            Turn::Says("", vec![("w", "k8s.restart")]),
            Turn::Says("Cause: y", vec![]),
        ]);
        // The model has written something readable.
        *scene.ports.tools.fitted.lock() = Some(unreadable.to_owned());
        assert_eq!(run(&scene, control()).await, Ok(()), "{unreadable}");
        assert_eq!(
            result(&scene, "w"),
            "Error: not sent: a person cannot read these arguments as the tool will.",
            "{unreadable}"
        );
        assert_eq!(
            outcomes(&scene.disk()),
            [("w".to_owned(), ApprovalOutcome::NotAsked)]
        );
        assert!(scene.disk().requests.is_empty(), "{unreadable}");
        assert!(scene.ports.tools.sent.lock().is_empty(), "{unreadable}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_is_sent_without_a_recorded_approval_of_its_hash() {
    let one_change = || {
        let scene = scene_of(vec![
            Turn::Says("", vec![("w", "k8s.restart")]),
            Turn::Says("Cause: y", vec![]),
        ]);
        *scene.ports.tools.fitted.lock() = Some("{\"replicas\":2}".to_owned());
        scene
    };
    let same = one_change();
    drive(&same, &People::new()).await;
    let spec = same.disk().record.plan.stages[0].agents[0]
        .tool("k8s.restart")
        .unwrap()
        .clone();
    let shown = CallHash::new(&spec, "{\"replicas\":2}");
    assert_eq!(hashes(&same), [shown, shown], "of the reading that is sent");
    assert_eq!(same.disk().requests[0].asked.arguments, "{\"replicas\":2}");
    assert_eq!(*same.ports.tools.sent.lock(), ["{\"replicas\":2}"]);

    let other = one_change();
    assert_eq!(run(&other, control()).await, Err(Interrupted::Parked));
    *other.ports.tools.fitted.lock() = Some("{\"replicas\":20}".to_owned());
    other.disk().decide("w", APPROVED, None);
    assert_eq!(run(&other, control()).await, Ok(()));
    assert_eq!(
        outcomes(&other.disk()),
        [("w".to_owned(), ApprovalOutcome::ToolChanged)]
    );
    assert!(other.ports.tools.sent.lock().is_empty());
}
