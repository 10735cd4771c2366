//! The cost of an alert that joins, compared with the statement before alert updates. `TARSY_LOAD_JOINS` is their
//! number: 60 in the suite, 300 in the proof.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use tarsy_core::alert::policy::OnAcknowledged;
use tarsy_core::alert::{Alert, Severity};
use tarsy_engine::ports::{JoinRequest, Opened, Sessions};
use tarsy_store::{ConnectOptions, MIGRATION_TIMEOUT, Store, migrate};
use uuid::Uuid;

use crate::adapters::store::fixture::{alert, new_id, open_session, received};
use crate::support::figures::by_depth;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::postgres_server::statements::{LOGGED, by_kind};
use crate::support::stream::join_events;

const JOINS: usize = 60;
const JOINS_IN_PROOF: usize = 300;
/// Groups of one to twenty members: those that are larger than any before are updates.
const MEMBERS: u128 = 20;

fn group(number: usize) -> Alert {
    let size = u128::try_from(number).unwrap() % MEMBERS + 1;
    Alert {
        members: (1..=size).map(Uuid::from_u128).collect(),
        severity: Severity::High,
        ..alert("fp")
    }
}

#[tokio::test]
async fn a_join_takes_one_statement_unless_it_is_an_update() {
    let count = by_depth("TARSY_LOAD_JOINS", JOINS, JOINS_IN_PROOF);
    let postgres = PostgresServer::start_with(&[&["fsync=off"], &LOGGED[..]].concat()).await;
    let database = TestDatabase::empty_on(postgres.url());
    migrate(&ConnectOptions::new(database.url()), MIGRATION_TIMEOUT)
        .await
        .unwrap();
    let store = database.store();
    let application_name = "tarsy joins".to_owned();
    let joining = Store::new(&ConnectOptions {
        application_name,
        ..ConnectOptions::new(database.url())
    })
    .unwrap();
    let session = open_session(&store, new_id(), "fp").await.lease.session_id;
    let mut old = database.connection();
    old.batch_execute(concat!(
        "PREPARE open (uuid, text, boolean, float8, uuid[], text, float8, float8, uuid, uuid, text, text, uuid, uuid, \
         text, integer, jsonb, text, text, text, text, text, text, text, jsonb) AS ",
        include_str!("../../adapters/store/database/previous/open_without_updates.sql")
    ))
    .unwrap();
    let (mut before, mut now, mut updates) = (Duration::ZERO, Duration::ZERO, 0);
    for number in 0..count {
        let [first, second] = [new_id(), new_id()];
        for id in [first, second] {
            store
                .receive(received(id, id.to_string().as_bytes()))
                .await
                .unwrap();
        }
        let began = Instant::now();
        let request = JoinRequest {
            alert_id: first,
            alert: group(number),
            cooldown: Duration::ZERO,
            force: false,
            limit: None,
            worker_name: "w1".to_owned(),
            on_acknowledged: OnAcknowledged::default(),
        };
        match joining.join(request).await.unwrap() {
            Some(Opened::Joined(target)) => assert_eq!(target, session),
            Some(Opened::Updated { .. }) => updates += 1,
            other => panic!("{other:?}"),
        }
        now += began.elapsed();
        let members = group(number)
            .members
            .iter()
            .map(Uuid::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let began = Instant::now();
        diesel::sql_query(format!(
            "EXECUTE open ('{second}', 'fp', true, 0, '{{{members}}}', 'high', NULL, 30, '{second}', '{second}', 'old', \
             '', NULL, NULL, NULL, 1, '{{}}', 'disk', 'disk full', 'json', 'the disk is full', '', '', '', NULL)"
        ))
        .execute(&mut old)
        .unwrap();
        before += began.elapsed();
    }
    let statements = by_kind(&postgres.log());
    assert_eq!(
        statements.values().sum::<usize>(),
        count + updates,
        "{statements:?}"
    );
    let each =
        |all: Duration| all.as_secs_f64() * 1_000.0 / f64::from(u32::try_from(count).unwrap());
    println!(
        "{count} alerts joined, {updates} of them updates: {:.2} ms each; with the statement of before {:.2} ms each",
        each(now),
        each(before)
    );
    assert_eq!(updates, usize::try_from(MEMBERS).unwrap().min(count) - 1);
    let events = format!(
        "SELECT count(*) FROM timeline_events WHERE session_id = '{session}' AND event_type = 'alert_joined'"
    );
    assert_eq!(
        database.number(&events),
        i64::try_from(join_events(2 * count)).unwrap()
    );
    assert_eq!(
        database.number("SELECT count(*) FROM alert_updates"),
        i64::try_from(updates).unwrap()
    );
}
