//! Collects everything that a system has stored, sent, logged and printed.

use std::sync::{Arc, Mutex};

use async_nats::HeaderMap;
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::support::system::TestSystem;

/// Texts with their places.
pub(crate) type Traces = Vec<(String, String)>;

/// The messages of core NATS since the start of this value: deltas, statuses and whatever else is sent.
pub(crate) struct Overheard(Arc<Mutex<String>>);

impl Overheard {
    pub(crate) async fn start(system: &TestSystem) -> Self {
        let client = async_nats::connect(system.nats.url()).await.unwrap();
        let mut messages = client.subscribe(">").await.unwrap();
        client.flush().await.unwrap();
        let heard: Arc<Mutex<String>> = Arc::default();
        let kept = Arc::clone(&heard);
        tokio::spawn(async move {
            // The client has to live as long as its subscription.
            let _client = client;
            while let Some(message) = messages.next().await {
                let line = shown(&message.subject, message.headers.as_ref(), &message.payload);
                kept.lock().unwrap().push_str(&line);
            }
        });
        Self(heard)
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

fn shown(subject: &str, headers: Option<&HeaderMap>, payload: &[u8]) -> String {
    format!(
        "{subject} {headers:?} {}\n",
        String::from_utf8_lossy(payload)
    )
}

/// Every message of every stream: subject, headers and payload.
pub(crate) async fn streams(system: &TestSystem) -> Traces {
    let jetstream = system.jetstream().await;
    let names: Vec<String> = jetstream.stream_names().try_collect().await.unwrap();
    assert!(names.len() >= 4, "{names:?}");
    let mut traces = Traces::new();
    for name in names {
        let mut stream = jetstream.get_stream(&name).await.unwrap();
        let info = stream.info().await.unwrap().clone();
        let mut text = format!("{info:?}\n");
        for sequence in info.state.first_sequence..=info.state.last_sequence {
            if let Ok(message) = stream.get_raw_message(sequence).await {
                text.push_str(&shown(
                    &message.subject,
                    Some(&message.headers),
                    &message.payload,
                ));
            }
        }
        traces.push((format!("stream {name}"), text));
    }
    traces
}

/// Every value of every column of every table in the database, bytes also as text.
pub(crate) fn tables(system: &TestSystem) -> Traces {
    let columns = system.database.text(
        "SELECT string_agg(format('%I.%I %I %s', table_schema, table_name, column_name, data_type), E'\\n') \
         FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) \
         WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')",
    );
    let columns: Vec<Vec<&str>> = columns
        .lines()
        .map(|line| line.splitn(3, ' ').collect())
        .collect();
    assert!(columns.len() > 100, "{columns:?}");
    columns
        .into_iter()
        .map(|column| {
            let [table, name, kind] = column[..] else {
                panic!("{column:?}")
            };
            let value = if kind == "bytea" {
                format!("encode({name}, 'escape')")
            } else {
                format!("{name}::text")
            };
            let sql = format!("SELECT coalesce(string_agg({value}, E'\\n'), '') FROM {table}");
            (format!("column {table}.{name}"), system.database.text(&sql))
        })
        .collect()
}
