//! Reads the broker's streams completely.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, PullConsumer};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;
use tarsy_bus::{Priority, TIMELINE};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::Outbox;

use super::system::TestSystem;
use super::wait::eventually;

const BATCH: usize = 500;

/// Timelines by session, each in the order of the stream.
pub(crate) type Timelines = BTreeMap<SessionId, Vec<TimelineEvent>>;

impl TestSystem {
    /// A plain JetStream client.
    pub(crate) async fn jetstream(&self) -> Context {
        let urls = self.nats_url();
        let servers: Vec<async_nats::ServerAddr> =
            urls.split(',').map(|url| url.parse().unwrap()).collect();
        jetstream::new(async_nats::connect(servers.as_slice()).await.unwrap())
    }

    /// Returns when a watcher reads the timeline stream: it has subscribed to the deltas before.
    pub(crate) async fn follower_reads(&self) {
        let jetstream = self.jetstream().await;
        eventually("a watcher reads the stream", async || {
            jetstream
                .get_stream(TIMELINE)
                .await
                .is_ok_and(|stream| stream.cached_info().state.consumer_count > 0)
        })
        .await;
    }

    /// All events on the timeline stream. A cluster that elects a leader answers with an error, and is asked again.
    pub(crate) async fn timelines(&self) -> Timelines {
        let jetstream = self.jetstream().await;
        let mut timelines = None;
        eventually("the stream is read to its end", async || {
            timelines = read(&jetstream).await.ok();
            timelines.is_some()
        })
        .await;
        timelines.unwrap()
    }

    /// Asserts that every alert and session has ended, and that each timeline on the stream equals the table, in order
    /// and without a gap. Returns the timelines.
    pub(crate) async fn assert_all_invariants(&self) -> Timelines {
        let timelines = self.timelines().await;
        let store = Arc::new(self.database.store());
        for (session, seen) in &timelines {
            let stored = store.events(*session, 0, 100_000).await.unwrap();
            assert_eq!(seen, &stored, "the stream equals the table");
            let numbers = seen.iter().map(|event| event.session_seq);
            assert!(
                numbers.eq(1..=u32::try_from(seen.len()).unwrap()),
                "{session}: a gap"
            );
            assert!(
                seen.last().unwrap().event_type.is_end(),
                "{session}: {:?}",
                seen.last()
            );
        }
        let alerts = self.database.number("SELECT count(*) FROM alerts");
        assert_eq!(
            i64::try_from(timelines.len()).unwrap(),
            alerts,
            "every alert has a timeline"
        );
        self.assert_row_invariants("true");
        assert_eq!(
            self.database
                .number("SELECT count(*) FROM alerts WHERE settled_at IS NULL"),
            0
        );
        timelines
    }

    /// Returns when no message is queued or waits for its ack.
    pub(crate) async fn queue_is_empty(&self) {
        let jetstream = self.jetstream().await;
        // A cluster without a leader answers with an error.
        eventually("every alert is acknowledged", async || {
            let Ok(stream) = jetstream.get_stream("TARSY_ALERTS").await else {
                return false;
            };
            let mut left = stream.cached_info().state.messages;
            for priority in Priority::ALL {
                let consumer: Result<Consumer<Config>, _> =
                    stream.get_consumer(priority.as_str()).await;
                let Ok(mut consumer) = consumer else {
                    return false;
                };
                let Ok(info) = consumer.info().await else {
                    return false;
                };
                left += info.num_pending + u64::try_from(info.num_ack_pending).unwrap();
            }
            left == 0
        })
        .await;
    }
}

async fn read(jetstream: &Context) -> Result<Timelines, async_nats::Error> {
    let mut stream = jetstream.get_stream("TARSY_TIMELINE").await?;
    let expected = stream.info().await?.state.messages;
    let config = Config {
        ack_policy: AckPolicy::None,
        ..Config::default()
    };
    let consumer: PullConsumer = stream.create_consumer(config).await?;
    let (mut timelines, mut seen) = (Timelines::new(), 0);
    while seen < expected {
        let mut batch = consumer.fetch().max_messages(BATCH).messages().await?;
        while let Some(message) = batch.next().await {
            let event: TimelineEvent = serde_json::from_slice(&message?.payload)?;
            timelines.entry(event.session_id).or_default().push(event);
            seen += 1;
        }
    }
    Ok(timelines)
}

/// The number of joined alerts that have an event: the first nine, then the 10th, 20th, 50th, 100th and so on.
pub(crate) fn join_events(joined: usize) -> usize {
    let shown = |count: &usize| {
        let digits = count.to_string();
        digits.len() == 1
            || (digits.starts_with(['1', '2', '5'])
                && digits[1..].chars().all(|digit| digit == '0'))
    };
    (1..=joined).filter(shown).count()
}
