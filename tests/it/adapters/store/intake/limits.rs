//! A route opens a limited number of investigations an hour; what exceeds it is listed in one session.

use std::sync::Arc;

use serde_json::json;
use tarsy_core::alert::AlertStatus;
use tarsy_core::alert::policy::OnAcknowledged;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::Moment;
use tarsy_core::notification::summary::Outcome;
use tarsy_engine::ports::{
    Claim, Disposition, JoinRequest, Journal, OpenRequest, Opened, Outbox, RouteLimit, RunStatus,
    Sessions,
};
use tarsy_store::{ConnectOptions, Store};
use tokio::{sync::Barrier, task::JoinSet};

use crate::adapters::store::fixture::{
    claim_request, completed, new_id, open_request, received, settled,
};
use crate::adapters::store::lost_replies::store_behind_a_relay;
use crate::adapters::store::outbox::{announcing, claim};
use crate::support::figures::by_depth;
use crate::support::postgres::TestDatabase;

/// Rounds of rivals.
const RACES: &str = "TARSY_LIMIT_RACES";

fn limit(route: &str, max_per_hour: u32) -> Option<RouteLimit> {
    Some(RouteLimit {
        route: route.to_owned(),
        max_per_hour,
        chain: "usual".to_owned(),
    })
}

/// An alert of its own fingerprint.
fn request(id: SessionId, limit: Option<RouteLimit>) -> OpenRequest {
    let mut request = OpenRequest {
        limit,
        ..open_request(id, &id.to_string())
    };
    request.alert.title = format!("disk {}", id.short());
    request
}

fn joining(request: &OpenRequest) -> JoinRequest {
    JoinRequest {
        alert_id: request.alert_id,
        alert: request.alert.clone(),
        cooldown: request.cooldown,
        force: request.force,
        limit: request.limit.clone(),
        worker_name: "w1".to_owned(),
        on_acknowledged: OnAcknowledged::default(),
    }
}

/// As a worker: asks before it plans, and opens afterwards.
async fn decide(store: &Store, request: OpenRequest) -> Opened {
    let id = request.alert_id;
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    match store.join(joining(&request)).await.unwrap() {
        Some(opened) => opened,
        None => store.open(request).await.unwrap(),
    }
}

fn listed(list: SessionId) -> Opened {
    Opened::Limited {
        list,
        route: "disks".to_owned(),
    }
}

/// Moves every session into the past.
fn age(database: &TestDatabase, minutes: u32) {
    database.execute(&format!(
        "UPDATE alert_sessions SET created_at = created_at - interval '{minutes} min'"
    ));
}

#[tokio::test]
async fn alerts_above_the_limit_of_a_route_are_listed_in_one_session() {
    let database = TestDatabase::create().await;
    let store = database.store();
    for _ in 0..2 {
        let opened = decide(&store, request(new_id(), limit("disks", 2))).await;
        assert!(matches!(opened, Opened::Session(_)), "{opened:?}");
    }
    let [list, third, fourth] = [new_id(), new_id(), new_id()];
    for id in [list, third, fourth] {
        assert_eq!(
            decide(&store, request(id, limit("disks", 2))).await,
            listed(list)
        );
        // A later request for this alert, by this delivery or another one, gets the same answer.
        assert_eq!(
            store.open(request(id, limit("disks", 2))).await,
            Ok(listed(list))
        );
        let again = joining(&request(id, limit("disks", 2)));
        assert_eq!(store.join(again).await, Ok(Some(listed(list))));
    }
    let redelivered =
        async |id: SessionId| store.receive(received(id, id.to_string().as_bytes())).await;
    assert_eq!(redelivered(list).await, Ok(Disposition::Opened));
    assert_eq!(redelivered(third).await, Ok(Disposition::Joined(list)));
    assert_eq!(
        store.claim(list, claim_request("w2")).await,
        Ok(Claim::Ended { settled: false })
    );

    let report = store.report(list).await.unwrap().unwrap();
    let session = report.session.as_ref().unwrap();
    let why = "route disks opens at most 2 investigations an hour";
    assert_eq!(
        (session.status, session.error.as_deref()),
        (RunStatus::Limited, Some(why))
    );
    assert_eq!(
        (report.limited_by.as_deref(), session.chain.as_str()),
        (Some("disks"), "usual")
    );
    let names: Vec<_> = report
        .joined
        .iter()
        .filter_map(|alert| alert.title.clone())
        .collect();
    assert_eq!(
        names,
        [third, fourth].map(|id| format!("disk {}", id.short())),
        "by name"
    );
    let of_third = store.report(third).await.unwrap().unwrap();
    assert_eq!(
        (of_third.joined_session_id, of_third.limited_by.as_deref()),
        (Some(list), Some("disks"))
    );

    let facts = |id: SessionId| json!({"route": "disks", "max_per_hour": 2, "severity": "high", "title": title(id)});
    for (id, event_type, content, more) in [
        (
            list,
            "session_failed",
            why.to_owned(),
            json!({"stop_reason": "limited"}),
        ),
        (
            third,
            "joined",
            format!("not investigated: {why}; see session {}", list.short()),
            json!({"reason": "limited", "joined_session_id": list}),
        ),
    ] {
        let events = store.events(id, 0, 10).await.unwrap();
        let [only] = events.as_slice() else {
            panic!("{events:#?}")
        };
        let mut metadata = facts(id);
        metadata
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        assert_eq!(
            (only.event_type.as_str(), only.content.as_str()),
            (event_type, content.as_str())
        );
        assert_eq!(only.metadata, metadata);
        settled(&store, id).await.unwrap();
    }
    assert_eq!(
        store
            .status_counts(Default::default())
            .await
            .unwrap()
            .limited,
        1
    );
    assert!(
        database.holds("SELECT joined_alerts = 2 FROM alert_sessions WHERE status = 'limited'")
    );
}

fn title(id: SessionId) -> String {
    format!("disk {}", id.short())
}

#[tokio::test]
async fn forced_alerts_ends_and_other_routes_do_not_count_and_an_hour_ends() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let is_open = |opened: &Opened| matches!(opened, Opened::Session(_));
    let first = decide(&store, request(new_id(), limit("disks", 1))).await;
    let Opened::Session(first) = first else {
        panic!("{first:?}")
    };
    let list = new_id();
    assert_eq!(
        decide(&store, request(list, limit("disks", 1))).await,
        listed(list)
    );

    // An alert of a fingerprint that is investigated joins its session. It needs none.
    let same = open_request(new_id(), &first.lease.session_id.to_string());
    let joined = decide(
        &store,
        OpenRequest {
            limit: limit("disks", 1),
            ..same
        },
    )
    .await;
    assert_eq!(joined, Opened::Joined(first.lease.session_id));
    // What a person asks for has no limit, and neither has another route.
    for other in [None, limit("others", 1)] {
        let opened = decide(&store, request(new_id(), other)).await;
        assert!(is_open(&opened), "{opened:?}");
    }
    let mut end = request(new_id(), limit("disks", 1));
    end.alert.status = AlertStatus::Resolved;
    assert_eq!(
        decide(&store, end).await,
        Opened::NotInvestigated,
        "no recovery is listed"
    );
    assert!(
        database.holds("SELECT joined_alerts = 0 FROM alert_sessions WHERE status = 'limited'")
    );

    // The list is as old as its first alert; the route opens again when its own session is older than an hour.
    store.finish(first.lease, completed()).await.unwrap();
    age(&database, 59);
    let late = new_id();
    assert_eq!(
        decide(&store, request(late, limit("disks", 1))).await,
        listed(list)
    );
    age(&database, 2);
    let opened = decide(&store, request(new_id(), limit("disks", 1))).await;
    assert!(is_open(&opened), "{opened:?}");
    let next = new_id();
    assert_eq!(
        decide(&store, request(next, limit("disks", 1))).await,
        listed(next),
        "a list of its own"
    );
}

#[tokio::test]
async fn a_limited_alert_whose_answer_was_lost_is_listed_once() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    assert!(matches!(
        decide(&store, request(new_id(), limit("disks", 1))).await,
        Opened::Session(_)
    ));
    let [list, late] = [new_id(), new_id()];
    for id in [list, late] {
        let request = request(id, limit("disks", 1));
        store
            .receive(received(id, id.to_string().as_bytes()))
            .await
            .unwrap();
        relay.lose_reply_to(id.0);
        assert_eq!(store.join(joining(&request)).await, Ok(Some(listed(list))));
        assert_eq!(store.events(id, 0, 10).await.unwrap().len(), 1);
    }
    assert!(
        database.holds("SELECT joined_alerts = 1 FROM alert_sessions WHERE status = 'limited'")
    );
}

#[tokio::test]
async fn the_list_of_limited_alerts_is_announced_once() {
    let database = TestDatabase::create().await;
    let store = announcing(&database).await;
    let first = decide(&store, request(new_id(), limit("disks", 1))).await;
    assert!(matches!(first, Opened::Session(_)), "{first:?}");
    assert_eq!(claim(&store).await.len(), 1, "its start");

    let list = new_id();
    for id in [list, new_id(), new_id()] {
        let opened = decide(&store, request(id, limit("disks", 1))).await;
        assert_eq!(opened, listed(list));
    }
    let due = claim(&store).await;
    let [only] = due.as_slice() else {
        panic!("{due:#?}")
    };
    assert_eq!(
        (only.key.session, only.key.moment),
        (list, Moment::Ended),
        "nothing has begun, so there is no start"
    );
    assert_eq!(only.summary.outcome, Some(Outcome::Limited));
    let cause = "route disks opens at most 1 investigation an hour";
    assert_eq!(only.summary.cause().as_deref(), Some(cause));
}

/// Two stores, as two workers have them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rivals_open_exactly_as_many_sessions_as_the_route_may() {
    let database = TestDatabase::create().await;
    let connections = |pool_size| ConnectOptions {
        pool_size,
        ..ConnectOptions::new(database.url())
    };
    let stores = [(); 2].map(|()| Store::new(&connections(16)).unwrap());
    for round in 0..by_depth(RACES, 3, 30) {
        let route = format!("route-{round}");
        let barrier = Arc::new(Barrier::new(48));
        let mut tasks = JoinSet::new();
        for number in 0..48 {
            let (store, barrier) = (stores[number % 2].clone(), Arc::clone(&barrier));
            let (id, limit) = (new_id(), limit(&route, 5));
            tasks.spawn(async move {
                barrier.wait().await;
                (id, decide(&store, request(id, limit)).await)
            });
        }
        let places = tasks.join_all().await;
        let opened = places
            .iter()
            .filter(|(_, place)| matches!(place, Opened::Session(_)))
            .count();
        let lists: Vec<SessionId> = places
            .iter()
            .filter(|(id, place)| matches!(place, Opened::Limited { list, .. } if list == id))
            .map(|(id, _)| *id)
            .collect();
        let [list] = lists.as_slice() else {
            panic!("{lists:?}: {places:?}")
        };
        let others = places
            .iter()
            .filter(|(id, place)| matches!(place, Opened::Limited { list: of, .. } if of == list && id != list));
        assert_eq!((opened, others.count()), (5, 42), "{places:?}");
    }
}
