//! No GET changes anything: not a page, not a short address, not what a preview of a link or a scanner of mails
//! requests.

use super::fixture::{Asking, PEOPLE, SECRET};
use crate::support::system::TestSystem;
use crate::web::Web;
use crate::web::routes::rows;

/// Every row of every table of the program.
fn all_rows(system: &TestSystem) -> Vec<String> {
    let database = &system.database;
    let tables = database.text(
        "SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE schemaname = 'public'",
    );
    let rows = tables.split(' ').map(|table| {
        let rows = format!(
            "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM {table} t"
        );
        format!("{table}: {}", database.text(&rows))
    });
    rows.collect()
}

/// The last sequence and the number of messages of each stream.
async fn streams(system: &TestSystem) -> Vec<(String, u64, u64)> {
    let client = async_nats::connect(system.nats_url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let mut found = Vec::new();
    for name in [
        "TARSY_ALERTS",
        "TARSY_TIMELINE",
        "TARSY_DEAD_LETTERS",
        "TARSY_CONTROL",
        "TARSY_PEOPLE",
    ] {
        let stream = jetstream.get_stream(name).await.unwrap();
        let state = &stream.cached_info().state;
        found.push((name.to_owned(), state.last_sequence, state.messages));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_get_changes_anything() {
    let asking = Asking::new().await;
    let file = asking.system.file("web.yaml");
    let section = "web: {auth: proxy, allow: {ask: ['*'], cancel: ['*'], rerun: ['*'], submit: ['*'], judge: ['*'], system: ['*']}}";
    std::fs::write(&file, format!("{section}\n{PEOPLE}")).unwrap();
    let config = file.display().to_string();
    let web = Web::start(
        &asking.system,
        &[
            ("TARSY_CONFIG", &config),
            ("TARSY_WEB_PROXY_SECRET", SECRET),
        ],
    )
    .await;
    let session = asking.request.session.to_string();
    let event = asking.request.event.to_string();
    let ana = [
        ("x-tarsy-proxy-secret", SECRET),
        ("x-forwarded-email", "ana@example.com"),
        ("x-forwarded-groups", "sre"),
    ];
    let form = web.ask("GET", &asking.path(), &ana).await;
    assert!(
        form.body.contains("value=\"approve\""),
        "the test needs a person who may decide: {form:?}"
    );
    let mut paths: Vec<String> = rows(&session, "/assets/none")
        .iter()
        .map(|row| row.path.replace("/1", &format!("/{event}")))
        .collect();
    paths.sort();
    paths.dedup();
    let decision = "decision=approve&nonce=0199d3f2-0000-7000-8000-000000000001&seen_updates=0&freeze=begin&verdict=wrong\
                    &question=Why&alert=x";
    let call = "07".repeat(32);
    let before = (all_rows(&asking.system), streams(&asking.system).await);
    let mut decided = 0;
    for path in &paths {
        for query in [String::new(), format!("?{decision}&call={call}")] {
            for method in ["GET", "HEAD"] {
                let path = format!("{path}{query}");
                if path.contains("/api/v1/events") || path.contains("/live") {
                    let stream = web.stream(&path, &ana).await;
                    assert!(stream.status < 500, "{path}");
                    continue;
                }
                let answer = web.ask(method, &path, &ana).await;
                assert!(answer.status < 500, "{method} {path}: {answer:?}");
                decided += usize::from(path.starts_with(&asking.path()));
            }
        }
    }
    assert!(
        decided >= 4,
        "the page of the request is among them: {paths:?}"
    );
    let after = (all_rows(&asking.system), streams(&asking.system).await);
    assert_eq!(after, before);
}
