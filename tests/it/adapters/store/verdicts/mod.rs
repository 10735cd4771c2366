//! Verdicts of people: which are recorded, which counts, and what a wrong analysis no longer does.

use tarsy_core::alert::Severity;
use tarsy_core::approvals::Channel;
use tarsy_core::ids::SessionId;
use tarsy_core::plan::PastScope;
use tarsy_core::verdicts::Rating;
use tarsy_engine::ports::{
    By, NewVerdict, OpenRequest, Opened, PastQuery, PastSessions as _, RecordVerdict as _,
    Sessions as _, VerdictRecord, VerdictRefusal,
};
use tarsy_store::{SessionFilter, Store};
use uuid::Uuid;

use super::fixture::{completed, investigated, new_id, open_request, open_session, received};
use crate::support::postgres::TestDatabase;

fn verdict(session: SessionId, rating: Rating) -> NewVerdict {
    NewVerdict {
        id: Uuid::now_v7(),
        session,
        person: "ana".to_owned(),
        account: "ana@example.com".to_owned(),
        channel: Channel::Web,
        rating,
        cause: Some("the leak of 4.2".to_owned()),
        action: None,
    }
}

/// Opens a session for a new alert of the fingerprint `fp`, or finds the one that covers it.
async fn open(store: &Store) -> Opened {
    let id = new_id();
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    let request = OpenRequest {
        cooldown: std::time::Duration::from_secs(3_600),
        ..open_request(id, "fp")
    };
    store.open(request).await.unwrap()
}

#[tokio::test]
async fn the_newest_verdict_counts_and_the_same_message_adds_none() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let session = investigated(&store, "fp", Severity::Normal, completed()).await;
    let chain = database.text("SELECT chain FROM alert_sessions");
    let first = verdict(session, Rating::Right);
    let second = NewVerdict {
        cause: None,
        action: Some("rolled back".to_owned()),
        ..verdict(session, Rating::Wrong)
    };
    let newest = second.id;
    let recorded = Ok(VerdictRecord::Recorded(chain));
    assert_eq!(store.record_verdict(first.clone()).await, recorded);
    assert_eq!(
        store.record_verdict(first).await,
        Ok(VerdictRecord::Repeated)
    );
    assert_eq!(store.record_verdict(second).await, recorded);

    let report = store.report(session).await.unwrap().unwrap();
    let verdicts = report.session.unwrap().verdicts;
    let shown: Vec<_> = verdicts
        .iter()
        .map(|verdict| {
            (
                verdict.rating,
                verdict.cause.as_deref(),
                verdict.action.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Rating::Wrong, None, Some("rolled back")),
            (Rating::Right, Some("the leak of 4.2"), None)
        ]
    );
    let listed = store
        .list_sessions(SessionFilter {
            limit: 5,
            ..SessionFilter::default()
        })
        .await
        .unwrap();
    assert_eq!(listed[0].verdict, Some(Rating::Wrong));

    let exported = store.judged_sessions(None, None).await.unwrap();
    let [only] = exported.as_slice() else {
        panic!("{exported:?}")
    };
    assert_eq!(
        (
            only.session_id,
            only.verdict.rating,
            only.alert.title.as_str()
        ),
        (session, Rating::Wrong, "disk full on db-1")
    );
    assert!(!only.providers.is_empty() && only.plan.is_some() && only.analysis.is_some());
    let behind = store.judged_sessions(Some(session), None).await.unwrap();
    assert_eq!(behind, []);
    let by_id = store.recorded_verdict(newest).await.unwrap().unwrap();
    assert_eq!(by_id, only.verdict);
    let unknown = store.recorded_verdict(Uuid::now_v7()).await.unwrap();
    assert_eq!(unknown, None);
}

#[tokio::test]
async fn a_session_that_runs_or_is_unknown_gets_no_verdict() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let running = open_session(&store, new_id(), "fp").await.lease.session_id;
    let refused = |refusal| Ok(VerdictRecord::Refused(refusal));
    assert_eq!(
        store.record_verdict(verdict(running, Rating::Right)).await,
        refused(VerdictRefusal::NotEnded)
    );
    assert_eq!(
        store.record_verdict(verdict(new_id(), Rating::Right)).await,
        refused(VerdictRefusal::UnknownSession)
    );
    assert_eq!(database.number("SELECT count(*) FROM verdicts"), 0);

    let ended = investigated(&store, "other", Severity::Normal, completed()).await;
    for _ in 0..20 {
        let recorded = store.record_verdict(verdict(ended, Rating::Partly)).await;
        assert!(
            matches!(recorded, Ok(VerdictRecord::Recorded(_))),
            "{recorded:?}"
        );
    }
    assert_eq!(
        store.record_verdict(verdict(ended, Rating::Right)).await,
        refused(VerdictRefusal::TooManyVerdicts)
    );
}

#[tokio::test]
async fn an_analysis_that_a_person_judged_wrong_covers_no_alert() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let session = investigated(&store, "fp", Severity::Critical, completed()).await;
    assert_eq!(open(&store).await, Opened::CoveredByCooldown(session));
    store
        .record_verdict(verdict(session, Rating::Wrong))
        .await
        .unwrap();
    // A person who has changed their mind makes it count again.
    store
        .record_verdict(verdict(session, Rating::Partly))
        .await
        .unwrap();
    assert_eq!(open(&store).await, Opened::CoveredByCooldown(session));
    store
        .record_verdict(verdict(session, Rating::Wrong))
        .await
        .unwrap();
    let opened = open(&store).await;
    assert!(matches!(opened, Opened::Session(_)), "{opened:?}");
}

#[tokio::test]
async fn an_earlier_investigation_is_found_with_what_a_person_said() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let session = investigated(&store, "fp", Severity::Normal, completed()).await;
    let query = PastQuery {
        by: By::SameAlert,
        days: 30,
        limit: 3,
        scope: PastScope::Chain,
    };
    let past = store.past_of_alert(new_id(), "fp", &query).await.unwrap();
    assert_eq!(past.sessions[0].verdict, None);
    store
        .record_verdict(verdict(session, Rating::Wrong))
        .await
        .unwrap();
    let past = store.past_of_alert(new_id(), "fp", &query).await.unwrap();
    let found = past.sessions[0].verdict.clone().unwrap();
    assert_eq!(
        (found.rating, found.cause.as_deref(), found.person.as_str()),
        (Rating::Wrong, Some("the leak of 4.2"), "ana")
    );
    let later = open_session(&store, new_id(), "fp").await.lease.session_id;
    let report = store
        .past_report(later, session.to_string(), PastScope::All)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(report.record.verdict, Some(found));
}
