//! Tests of requests after a loss of commits.

use super::*;
use crate::ports::ClosedAs;
use tarsy_core::execution::entry::SentCall;
use tarsy_core::execution::recovery::{LostCall, Recovery, identity};

#[tokio::test(start_paused = true)]
async fn a_request_whose_end_was_lost_is_closed_with_its_lost_call_and_the_next_one_waits() {
    let calls = vec![("v", "k8s.restart"), ("w", "k8s.patch.lost")];
    let turns = vec![Turn::Says("both", calls), Turn::Says("Cause: y", vec![])];
    let scene = scene(Strategy::NativeThinking, turns);
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    // The first call was approved and sent. A failover has lost both, and its published events show it.
    {
        let mut disk = scene.disk();
        let request = disk.request("v");
        let call = SentCall {
            tool: request.asked.tool.clone(),
            identity: identity(&request.asked.tool, &request.asked.arguments),
        };
        let execution_id = request.execution_id;
        disk.record.recoveries.push(Recovery {
            number: 1,
            calls: vec![LostCall { execution_id, call }],
        });
    }
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    let closed: Vec<Option<ClosedAs>> = scene
        .disk()
        .requests
        .iter()
        .map(|request| request.closed)
        .collect();
    assert_eq!(closed, [Some(ClosedAs::Lost), None]);
    assert!(
        result(&scene, "v").contains("Its outcome is unknown"),
        "{}",
        result(&scene, "v")
    );
    scene.disk().decide("w", ApprovalOutcome::Approved, None);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!((sent(&scene, "v"), sent(&scene, "w")), (0, 1));
    assert_eq!(
        scene.disk().requests[1].closed,
        Some(ClosedAs::Outcome(ApprovalOutcome::Approved))
    );
}
