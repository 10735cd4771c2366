//! Compares a session's events on the stream with those of the table. If the stream has events that the table lacks,
//! the database has lost commits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::signature::EventSigner;
use super::wire::decode;
use crate::connection::Nats;
use crate::error::{Error, within};
use crate::names::{TIMELINE, timeline_subject};
use crate::stream::get::{first_from, last_on_subject};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{BrokerUnavailable, Divergence, EventIdentity, Outbox, StoreError};

const PAGE: u32 = 256;
/// Messages that are read of one session: more than an investigation has events.
const MAX_READ: u32 = 10_000;
/// Enough for the few thousand events of a session that the stream has at most.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The events that the stream has and the table has not; `None` when the stream's last event is in the table.
pub(super) async fn divergence<O: Outbox>(
    nats: &Nats,
    outbox: &O,
    session: SessionId,
) -> Result<Option<Divergence>, BrokerUnavailable> {
    let subject = timeline_subject(session);
    let Some(last) = last_on_subject(nats, TIMELINE, &subject).await? else {
        return Ok(None);
    };
    if let Some(found) = decode(&subject, &last.payload)
        && is_in_table(outbox, &found).await.map_err(unavailable)?
    {
        return Ok(None);
    }
    let signer = EventSigner::new(&outbox.event_key().await.map_err(unavailable)?);
    let read = signed_events(nats, &signer, subject, last.sequence);
    let published = within(
        READ_TIMEOUT,
        "the session's timeline takes too long to read",
        read,
    )
    .await?;
    match published.values().next_back() {
        Some(found) if !is_in_table(outbox, found).await.map_err(unavailable)? => {}
        Some(_) | None => return Ok(None),
    }
    let kept = last_common_event(outbox, session, &published).await?;
    // Events after a gap are left out: the table takes no event without the one before it.
    let mut events: Vec<TimelineEvent> = Vec::new();
    let mut next = kept.saturating_add(1);
    for (number, event) in published {
        if number == next {
            events.push(event);
            next = next.saturating_add(1);
        }
    }
    Ok((!events.is_empty()).then_some(Divergence { kept, events }))
}

/// Whether the stream has no event of the session; `false` when the stream cannot be read.
pub(super) async fn is_new(nats: &Nats, session: SessionId) -> bool {
    last_on_subject(nats, TIMELINE, &timeline_subject(session))
        .await
        .is_ok_and(|last| last.is_none())
}

/// The port has one error for the broker and the table.
fn unavailable(error: StoreError) -> BrokerUnavailable {
    BrokerUnavailable(error.to_string())
}

/// Whether the table has this event.
pub(super) async fn is_in_table<O: Outbox>(
    outbox: &O,
    event: &TimelineEvent,
) -> Result<bool, StoreError> {
    let rows = outbox
        .events(event.session_id, event.session_seq.saturating_sub(1), 1)
        .await?;
    Ok(rows.first().map(EventIdentity::new) == Some(EventIdentity::new(event)))
}

/// The session's events up to a stream sequence, by their numbers. Messages that no worker has signed are ignored, and
/// of more than [`MAX_READ`] messages those after them: an event that is then published again is dropped by its
/// number. They are read one by one, because a worker may read single messages and open no consumer.
pub(super) async fn signed_events(
    nats: &Nats,
    signer: &EventSigner,
    subject: String,
    last_sequence: u64,
) -> Result<BTreeMap<u32, TimelineEvent>, Error> {
    let mut events = BTreeMap::new();
    let mut from = 1;
    for _ in 0..MAX_READ {
        let next = first_from(nats, TIMELINE, &subject, from).await?;
        let Some(message) = next.filter(|message| message.sequence <= last_sequence) else {
            break;
        };
        if let Some(event) = decode(&subject, &message.payload)
            && signer.has_signed(&message.payload, Some(&message.headers))
        {
            events.entry(event.session_seq).or_insert(event);
        }
        from = message.sequence + 1;
    }
    Ok(events)
}

/// The number of the last event that both have. Events that are too old for the stream, or older than signatures, count
/// as the same.
async fn last_common_event<O: Outbox>(
    outbox: &O,
    session: SessionId,
    published: &BTreeMap<u32, TimelineEvent>,
) -> Result<u32, BrokerUnavailable> {
    let first = published.keys().next().copied().unwrap_or(1);
    let mut kept = 0;
    loop {
        let rows = outbox
            .events(session, kept, PAGE)
            .await
            .map_err(unavailable)?;
        if rows.is_empty() {
            return Ok(kept);
        }
        for row in rows {
            let is_same = match published.get(&row.session_seq) {
                Some(event) => EventIdentity::new(event) == EventIdentity::new(&row),
                None => row.session_seq < first,
            };
            if !is_same || row.session_seq != kept + 1 {
                return Ok(kept);
            }
            kept = row.session_seq;
        }
    }
}
