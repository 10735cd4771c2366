//! Alerts that join an open session with something new: the statement and the core agree on what is new, and the
//! cooldown covers what the analysis knew.

use std::time::Duration;

use tarsy_core::alert::Severity::{Critical, High, Low, Normal};
use tarsy_core::alert::aggregate::Aggregate;
use tarsy_core::alert::{AlertStatus, MemberReport, Severity};
use tarsy_core::alert_update::{Change, KnownAlert, MAX_UPDATES, ReportedAlert, resolved_members};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Journal, OpenRequest, Opened, SessionEnd, Sessions};
use tarsy_store::Store;
use uuid::Uuid;

use crate::adapters::store::fixture::{
    checkpoint, completed, new_id, open_request, received, running_session,
};
use crate::support::postgres::TestDatabase;

const COOLDOWN: Duration = Duration::from_secs(3600);

fn members(numbers: &[u128]) -> Vec<Uuid> {
    numbers
        .iter()
        .map(|number| Uuid::from_u128(*number))
        .collect()
}

/// An alert in which these members fire, and these are resolved.
fn group(firing: &[u128], resolved: &[u128], severity: Severity) -> OpenRequest {
    let mut request = OpenRequest {
        cooldown: COOLDOWN,
        ..open_request(new_id(), "fp")
    };
    let reports = [
        (firing, AlertStatus::Firing),
        (resolved, AlertStatus::Resolved),
    ];
    request.alert.members = members(firing);
    request.alert.severity = severity;
    request.alert.status = if firing.is_empty() {
        AlertStatus::Resolved
    } else {
        AlertStatus::Firing
    };
    request.alert.reports = reports
        .into_iter()
        .flat_map(|(numbers, status)| {
            members(numbers)
                .into_iter()
                .map(move |member| (member, status))
        })
        .map(|(member, status)| MemberReport {
            member,
            status,
            text: format!("Down {member}"),
        })
        .collect();
    request
}

async fn open(store: &Store, request: OpenRequest) -> Opened {
    let id = request.alert_id;
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    let opened = store.open(request.clone()).await.unwrap();
    let again = store.open(request).await.unwrap();
    let joined = |opened: &Opened| match opened {
        Opened::Joined(session) | Opened::Updated { session, .. } => Some(*session),
        _ => None,
    };
    assert_eq!(
        joined(&opened),
        joined(&again),
        "sent again after a lost reply"
    );
    opened
}

fn updates(database: &TestDatabase, session: SessionId) -> i64 {
    database.number(&format!(
        "SELECT updates::bigint FROM alert_sessions WHERE session_id = '{session}'"
    ))
}

#[tokio::test]
async fn only_an_alert_with_something_new_is_an_update() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let Opened::Session(claimed) = open(&store, group(&[1], &[], Normal)).await else {
        panic!("not opened")
    };
    let session = claimed.lease.session_id;
    let updated = |changes: &[Change]| Opened::Updated {
        session,
        changes: changes.to_vec(),
    };
    for (request, expected) in [
        (group(&[1], &[], Normal), Opened::Joined(session)),
        (group(&[1, 2], &[], Normal), updated(&[Change::Firing])),
        (group(&[1, 2], &[], Normal), Opened::Joined(session)),
        (group(&[2], &[], Low), Opened::Joined(session)),
        (group(&[2], &[], Critical), updated(&[Change::Severity])),
        (group(&[2], &[1], Critical), updated(&[Change::Resolved])),
        (group(&[2, 3], &[1], Critical), updated(&[Change::Firing])),
        (
            group(&[], &[1, 2, 3], Critical),
            updated(&[Change::Resolved]),
        ),
        (group(&[], &[1, 2, 3], Critical), Opened::Joined(session)),
        (group(&[1], &[], Critical), updated(&[Change::Firing])),
    ] {
        let group = format!("{:?} {:?}", request.alert.members, request.alert.severity);
        assert_eq!(open(&store, request).await, expected, "{group}");
    }
    assert_eq!(updates(&database, session), 6);
    let read = store.alert_updates(session, 4).await.unwrap();
    assert_eq!(
        read.iter().map(|update| update.number).collect::<Vec<_>>(),
        [5, 6]
    );
    assert_eq!(
        read[1].update.firing.lines,
        [format!("Down {}", Uuid::from_u128(1))]
    );
}

/// Sends alerts until the session takes no more updates. The statement and the core have to agree on each.
async fn agree(alerts: impl Iterator<Item = OpenRequest>) {
    let database = TestDatabase::create().await;
    let store = database.store();
    let Opened::Session(claimed) = open(&store, group(&[1], &[], Low)).await else {
        panic!("not opened")
    };
    let session = claimed.lease.session_id;
    let (firing, resolved) = (members(&[1]), Vec::new());
    let mut known = KnownAlert {
        updates: 0,
        firing,
        resolved,
        severity: Low,
        status: AlertStatus::Firing,
    };
    for request in alerts {
        let resolved = resolved_members(&request.alert.members, &request.alert.reports);
        let reported = ReportedAlert {
            status: request.alert.status,
            at: None,
            severity: request.alert.severity,
            members: &request.alert.members,
            resolved: &resolved,
            reports: &request.alert.reports,
        };
        let expected = known.update(&reported);
        let opened = open(&store, request.clone()).await;
        match expected {
            Some((after, update)) => {
                let changes = update.changes().collect();
                assert_eq!(
                    opened,
                    Opened::Updated { session, changes },
                    "{known:?} {request:?}"
                );
                known = after;
            }
            None => assert_eq!(opened, Opened::Joined(session), "{known:?} {request:?}"),
        }
    }
    assert_eq!(
        (known.updates, updates(&database, session)),
        (MAX_UPDATES, i64::from(MAX_UPDATES))
    );
}

fn random_group(random: &mut fastrand::Rng, severity: Severity) -> OpenRequest {
    let mut some = |of: u128| -> Vec<u128> { (1..=of).filter(|_| random.u8(..4) == 0).collect() };
    group(&some(9), &some(9), severity)
}

#[tokio::test]
async fn the_statement_and_the_core_agree_on_what_is_new() {
    let mut random = fastrand::Rng::with_seed(14);
    agree((0..300).map(|round| {
        let severity = if round < 150 {
            Low
        } else {
            Severity::ALL[random.usize(..4)]
        };
        random_group(&mut random, severity)
    }))
    .await;
}

/// The hash of a group of this size.
fn large(count: u64, digest: u32) -> Uuid {
    Aggregate::group(&[Aggregate::left_out(count)], digest)
}

#[tokio::test]
async fn the_statement_and_the_core_agree_on_aggregates() {
    let mut random = fastrand::Rng::with_seed(15);
    agree((0..200).map(|_| {
        let mut request = random_group(&mut random, Low);
        let members = &mut request.alert.members;
        match random.u8(..4) {
            _ if members.is_empty() => {}
            0 => members.push(Aggregate::left_out(random.u64(1..4))),
            1 => *members = vec![large(random.u64(257..260), random.u32(..2))],
            _ => {}
        }
        request
    }))
    .await;
}

#[tokio::test]
async fn the_cooldown_covers_an_aggregate_only_if_it_was_known() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let of = |members: Vec<Uuid>| {
        let mut request = group(&[1, 2], &[], Low);
        request.alert.members = members;
        request
    };
    let Opened::Session(claimed) = open(&store, of(members(&[1, 2]))).await else {
        panic!("not opened")
    };
    let updated = open(&store, of(vec![large(300, 1)])).await;
    assert!(matches!(updated, Opened::Updated { .. }), "{updated:?}");
    store
        .finish(
            claimed.lease,
            SessionEnd {
                covered_updates: 1,
                ..completed()
            },
        )
        .await
        .unwrap();
    let session = claimed.lease.session_id;
    for covered in [members(&[2]), vec![large(300, 1)]] {
        assert_eq!(
            open(&store, of(covered)).await,
            Opened::CoveredByCooldown(session)
        );
    }
    for new in [large(300, 2), Aggregate::left_out(1)] {
        let Opened::Session(other) = open(&store, of(vec![new])).await else {
            panic!("it was not known")
        };
        store.finish(other.lease, completed()).await.unwrap();
    }
}

#[tokio::test]
async fn rivals_with_the_same_change_are_one_update() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let Opened::Session(claimed) = open(&store, group(&[1], &[], Low)).await else {
        panic!("not opened")
    };
    let session = claimed.lease.session_id;
    let mut rivals = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (store, request) = (store.clone(), group(&[1, 2, 3], &[], Low));
        rivals.spawn(async move { open(&store, request).await });
    }
    let opened = rivals.join_all().await;
    let updated = opened
        .iter()
        .filter(|opened| matches!(opened, Opened::Updated { .. }))
        .count();
    assert_eq!((updated, updates(&database, session)), (1, 1), "{opened:?}");
    let counts =
        format!("SELECT joined_alerts::bigint FROM alert_sessions WHERE session_id = '{session}'");
    assert_eq!(database.number(&counts), 12);
}

#[tokio::test]
async fn a_checkpoint_and_a_renewal_return_the_number_of_updates() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let write = checkpoint(executions[0], 1);
    assert_eq!(store.append(lease, write.clone()).await.unwrap().updates, 0);
    database.execute("UPDATE alert_sessions SET updates = 3");
    assert_eq!(
        store.append(lease, write).await.unwrap().updates,
        3,
        "the reply was lost"
    );
    assert_eq!(
        store
            .append(lease, checkpoint(executions[0], 2))
            .await
            .unwrap()
            .updates,
        3
    );
    let renewed = store.renew(vec![lease], COOLDOWN).await.unwrap();
    assert!(format!("{renewed:?}").contains("updates: 3"), "{renewed:?}");
    assert_eq!(store.load(lease.session_id).await.unwrap().updates, 3);
}

#[tokio::test]
async fn the_cooldown_covers_what_the_analysis_knew() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let Opened::Session(claimed) = open(&store, group(&[1], &[], Low)).await else {
        panic!("not opened")
    };
    for (fires, severity) in [(&[1, 2][..], Low), (&[1], High), (&[1, 3], High)] {
        assert!(matches!(
            open(&store, group(fires, &[], severity)).await,
            Opened::Updated { .. }
        ));
    }
    // The last of the three came too late.
    let session = claimed.lease.session_id;
    store
        .finish(
            claimed.lease,
            SessionEnd {
                covered_updates: 2,
                ..completed()
            },
        )
        .await
        .unwrap();
    let end = database.text(&format!(
        "SELECT content || ' ' || metadata::text FROM timeline_events \
         WHERE session_id = '{session}' ORDER BY session_seq DESC LIMIT 1"
    ));
    assert!(
        end.starts_with("done; 1 change of the alert came too late for it"),
        "{end}"
    );
    assert!(end.contains("\"late_updates\": 1"), "{end}");
    for (fires, severity) in [(&[1_u128][..], Low), (&[2, 1], High), (&[2], Low)] {
        let opened = open(&store, group(fires, &[], severity)).await;
        assert_eq!(opened, Opened::CoveredByCooldown(session), "{fires:?}");
    }
    let Opened::Session(grown) = open(&store, group(&[1, 3], &[], Low)).await else {
        panic!("it was not known")
    };
    store.finish(grown.lease, completed()).await.unwrap();
    assert!(matches!(
        open(&store, group(&[1], &[], Critical)).await,
        Opened::Session(_)
    ));
}
