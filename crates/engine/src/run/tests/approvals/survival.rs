//! Tests of crashes around requests: a worker dies before or after every write, and the next one ends with the same
//! journal and sends no call twice.

use super::*;
use tarsy_core::execution::entry::ToolCall;

const DO: &str = "Thought: do\nAction: k8s.restart\nAction Input: {\"pod\": \"a\"}";
const AGAIN: &str = "Thought: do\nAction: k8s.restart\nAction Input: {\"pod\": \"b\"}";
const LOST: &str = "Action: k8s.patch.lost\nAction Input: {}";
const FOUND: &str = "Thought: enough\nFinal Answer: Cause: y";

struct Script {
    strategy: Strategy,
    turns: Vec<Turn>,
    people: People,
    on_timeout: OnTimeout,
}

fn scripts() -> Vec<Script> {
    let native = |people: People, on_timeout| Script {
        strategy: Strategy::NativeThinking,
        turns: vec![
            Turn::Says(
                "look",
                vec![
                    ("a", "k8s.get"),
                    ("v", "k8s.restart"),
                    ("w", "k8s.patch.lost"),
                    ("b", "k8s.get"),
                ],
            ),
            Turn::Says("more", vec![("x", "k8s.restart")]),
            Turn::Says("Cause: y", vec![]),
        ],
        people,
        on_timeout,
    };
    let acts = [
        Act::Approve,
        Act::Deny,
        Act::DenyAll,
        Act::Sleep,
        Act::ApproveTooEarly,
        Act::ApproveInFreeze,
    ];
    let mut scripts: Vec<Script> = acts
        .into_iter()
        .map(|act| native(people(&[("v", act)]), OnTimeout::Deny))
        .collect();
    scripts.push(native(people(&[("v", Act::Sleep)]), OnTimeout::Conclude));
    let says = [DO, LOST, AGAIN, FOUND].map(|text| Turn::Says(text, vec![]));
    for act in acts {
        scripts.push(Script {
            strategy: Strategy::React,
            turns: says.to_vec(),
            people: people(&[("*", act)]),
            on_timeout: OnTimeout::Deny,
        });
    }
    scripts
}

fn scene_of(script: &Script) -> Scene {
    let policy = ApprovalRule {
        on_timeout: script.on_timeout,
        ..rule()
    };
    scene_with(policy, script.strategy, script.turns.clone())
}

/// The journal without what a death in the middle of a sent call changes: its result.
fn comparable(entries: &[Entry], calls: &[ToolCall]) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    entries.retain(|entry| !matches!(entry, Entry::Lost { .. }));
    for entry in &mut entries {
        if let Entry::ToolResult(result) | Entry::Observation(result) = entry
            && calls
                .iter()
                .any(|call| call.id == result.call_id && !call.read_only)
            && result.not_sent.is_none()
        {
            result.content.clear();
            result.is_error = true;
        }
    }
    entries
}

/// No call is started that was not approved in the same checkpoint, and none is started twice.
fn check_starts(journal: &[Entry]) {
    let mut started = Vec::new();
    for pair in journal.windows(2) {
        let Entry::Started { call_id } = &pair[1] else {
            continue;
        };
        let approved = matches!(&pair[0], Entry::ApprovalEnded(ended)
            if ended.call_id == *call_id && ended.outcome == ApprovalOutcome::Approved);
        assert!(approved, "{call_id} was not approved: {journal:#?}");
        assert!(!started.contains(call_id), "{call_id} was started twice");
        started.push(call_id.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_is_sent_once_at_any_death() {
    let mut kills = 0;
    for script in scripts() {
        let whole = scene_of(&script);
        let parked = drive(&whole, &script.people).await;
        assert!(parked > 0, "{:?}", script.people);
        let journal = whole.journal();
        check_starts(&journal);
        let calls = crate::run::tests::survival::calls_of(&journal);
        let writes = whole.disk().writes;
        for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
            let scene = scene_of(&script);
            scene.disk().death = death;
            drive(&scene, &script.people).await;
            kills += 1;
            let about = format!("{:?} {:?} {death:?}", script.strategy, script.people);
            assert_eq!(
                comparable(&scene.journal(), &calls),
                comparable(&journal, &calls),
                "{about}"
            );
            check_starts(&scene.journal());
            for call in calls.iter().filter(|call| !call.read_only) {
                assert!(
                    sent(&scene, &call.id) <= 1,
                    "{} was sent twice: {about}",
                    call.id
                );
                let was_sent = sent(&whole, &call.id);
                assert!(
                    sent(&scene, &call.id) <= was_sent,
                    "{} was not approved: {about}",
                    call.id
                );
            }
            let end = |scene: &Scene| {
                scene
                    .disk()
                    .end
                    .as_ref()
                    .map(|end| (end.status, end.reason))
            };
            assert_eq!(end(&scene), end(&whole), "{about}");
            let open = scene
                .disk()
                .requests
                .iter()
                .filter(|request| request.closed.is_none())
                .count();
            assert_eq!(open, 0, "{about}");
        }
    }
    assert!(kills > 150, "only {kills} kills");
}
