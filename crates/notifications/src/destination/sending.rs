//! Sends a note: looks absent references up, searches for the note of an earlier attempt, and adds it.

use chrono::Utc;
use reqwest::{Client, Response};
use serde_json::Value;

use super::render::Report;
use super::request::{Parts, Request};
use super::values::{Fault, Values};
use crate::answer::{self, unavailable};
use crate::guard;
use tarsy_config::sections::destinations::{Call, Destination, Find, Lookup, Name, Piece, Text};
use tarsy_core::notification::Notification;
use tarsy_engine::ports::{Arrival, ProviderAnswer};

/// Pages of a list in which a note is searched.
const MAX_PAGES: u32 = 5;
/// The age of an alert, in milliseconds, until which a lookup may come before the vendor has made the thing.
const LOOKUP_GRACE: i64 = 300_000;

/// A destination with its client and its secret.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) client: &'a Client,
    pub(crate) destination: &'a Destination,
    pub(crate) secret: &'a str,
}

/// The result of the search for a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Found,
    Absent,
    /// The list may not be read, is no list, has an item without a text, or may be longer than what was read.
    Failed,
}

impl Sender<'_> {
    /// Adds a note, or finds that an earlier attempt has added it.
    pub(crate) async fn deliver(&self, message: &Notification) -> ProviderAnswer {
        match self.try_deliver(message).await {
            Ok(answer) | Err(answer) => answer,
        }
    }

    async fn try_deliver(&self, message: &Notification) -> Result<ProviderAnswer, ProviderAnswer> {
        let mut values = Values::new(self.destination, message, self.secret);
        let mut report = Report::new(message);
        if let Some(lookup) = &self.destination.lookup
            && !values.missing().is_empty()
        {
            self.look_up(lookup, &mut values, &report, message).await?;
        }
        values.check().map_err(answer_of)?;

        if message.may_repeat {
            let search = match &self.destination.find {
                Some(find) => self.search(find, &mut values, &report).await?,
                None if self.destination.idempotent => Search::Absent,
                None => Search::Failed,
            };
            match search {
                Search::Found => return Ok(ProviderAnswer::Found { receipt: None }),
                // Every note since then was read.
                Search::Absent => report = report.without_remark(),
                Search::Failed => {}
            }
        }
        let request = self.request(&self.destination.note, &values, &report)?;
        let response = self.send(request).await?;
        Ok(self.judged(response).await)
    }

    /// Reads the absent references from an answer. A thing that the vendor does not know yet is looked up again.
    async fn look_up(
        &self,
        lookup: &Lookup,
        values: &mut Values<'_>,
        report: &Report,
        message: &Notification,
    ) -> Result<(), ProviderAnswer> {
        let request = self.request(&lookup.call, values, report)?;
        let response = self.send(request).await.map_err(not_arrived)?;
        if response.status().as_u16() == 404 {
            return Err(unknown(
                message,
                "the vendor knows no such thing".to_owned(),
            ));
        }
        let found = match self.json(response).await {
            Ok(found) => found,
            Err(answer) => return Err(not_arrived(answer)),
        };
        for equal in &lookup.equals {
            let expected = values.text(&equal.text).map_err(answer_of)?;
            if found.pointer(&equal.pointer).and_then(scalar) != Some(expected) {
                let reason = format!("the vendor knows no such thing: see {}", equal.pointer);
                return Err(unknown(message, reason));
            }
        }
        for take in &lookup.take {
            if let Some(id) = found.pointer(&take.pointer).and_then(scalar) {
                values.add(&take.name, id);
            }
        }
        match values.missing().first() {
            Some(name) => Err(unknown(
                message,
                format!("the vendor knows no such thing: no {name} in its answer"),
            )),
            None => Ok(()),
        }
    }

    async fn search(
        &self,
        find: &Find,
        values: &mut Values<'_>,
        report: &Report,
    ) -> Result<Search, ProviderAnswer> {
        let has_pages = find.call.query.iter().any(|each| is_paged(&each.text));
        for page in 1..=MAX_PAGES {
            values.page = page;
            let request = self.request(&find.call, values, report)?;
            let response = self.send(request).await?;
            let Some(list) = self.list(response).await? else {
                return Ok(Search::Failed);
            };
            let Some(items) = list.pointer(&find.items).and_then(Value::as_array) else {
                return Ok(Search::Failed);
            };
            let texts: Vec<&Value> = items
                .iter()
                .filter_map(|item| item.pointer(&find.text))
                .collect();
            if texts
                .iter()
                .any(|text| text.to_string().contains(values.marker()))
            {
                return Ok(Search::Found);
            }
            if texts.len() < items.len() {
                // An item whose text is elsewhere may be the note.
                return Ok(Search::Failed);
            }
            let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
            if !has_pages {
                let is_full = find.size.is_some_and(|size| count >= size);
                return Ok(if is_full {
                    Search::Failed
                } else {
                    Search::Absent
                });
            }
            // A vendor may make its pages shorter than asked for: only an empty one is the end.
            if count == 0 {
                return Ok(Search::Absent);
            }
            values.seen = values.seen.saturating_add(count);
        }
        Ok(Search::Failed)
    }

    /// The JSON of a list; `None` for an answer that will stay as it is.
    ///
    /// # Errors
    /// With the answer for a list that can be read later: until then the note may be there.
    async fn list(&self, response: Response) -> Result<Option<Value>, ProviderAnswer> {
        let status = response.status();
        if status.is_server_error() || status.as_u16() == 429 {
            return Err(answer::of_status(response).await);
        }
        if !status.is_success() {
            return Ok(None);
        }
        let Some(body) = answer::body(response).await else {
            return Err(unavailable("its list broke off", Arrival::Unknown));
        };
        let Ok(list) = serde_json::from_str::<Value>(&body) else {
            return Ok(None);
        };
        match self.failure(&list) {
            Some(failure) => Err(unavailable(answer::refused(failure), Arrival::Unknown)),
            None => Ok(Some(list)),
        }
    }

    fn request(
        &self,
        call: &Call,
        values: &Values<'_>,
        report: &Report,
    ) -> Result<Request, ProviderAnswer> {
        let parts = Parts {
            destination: self.destination,
            values,
            report,
        };
        Request::new(&parts, call).map_err(answer_of)
    }

    async fn send(&self, request: Request) -> Result<Response, ProviderAnswer> {
        guard::check(&request.url).map_err(|reason| unavailable(reason, Arrival::Refused))?;
        let builder = self
            .client
            .request(request.method, request.url)
            .headers(request.headers);
        let builder = match request.body {
            Some(body) => builder.body(body),
            None => builder,
        };
        builder.send().await.map_err(answer::failed)
    }

    /// The JSON of a successful answer.
    async fn json(&self, response: Response) -> Result<Value, ProviderAnswer> {
        if !response.status().is_success() {
            return Err(answer::of_status(response).await);
        }
        let body = answer::body(response).await.unwrap_or_default();
        let Ok(json) = serde_json::from_str::<Value>(&body) else {
            return Err(unavailable(
                "its answer is no JSON of at most 1 MiB",
                Arrival::Unknown,
            ));
        };
        match self.failure(&json) {
            Some(failure) => Err(unavailable(answer::refused(failure), Arrival::Refused)),
            None => Ok(json),
        }
    }

    /// The part that an answer has only if its request has failed.
    fn failure<'j>(&self, json: &'j Value) -> Option<&'j Value> {
        json.pointer(self.destination.failed.as_deref()?)
            .filter(|failure| !failure.is_null())
    }

    /// Interprets the answer to a note.
    async fn judged(&self, response: Response) -> ProviderAnswer {
        let status = response.status().as_u16();
        let accepted = ProviderAnswer::Accepted { receipt: None };
        if self.destination.accepted.contains(&status) {
            if self.destination.failed.is_none() {
                return accepted;
            }
            return match self.json(response).await {
                Ok(_) => accepted,
                Err(answer) => answer,
            };
        }
        if response.status().is_success() {
            let reason = format!("HTTP {status}, which the destination does not list as accepted");
            // Another attempt would have the same answer, and may add another note.
            return ProviderAnswer::Rejected { reason };
        }
        match (status, answer::of_status(response).await) {
            // What the note belongs to does not exist any more.
            (404 | 410, ProviderAnswer::Unavailable { reason, .. }) => {
                ProviderAnswer::Rejected { reason }
            }
            (_, answer) => answer,
        }
    }
}

/// The answer to a note that is not sent.
fn answer_of(fault: Fault) -> ProviderAnswer {
    match fault {
        Fault::Absent(name) => ProviderAnswer::NoPlace {
            reason: format!("the alert has no reference {name} of the needed form"),
        },
        Fault::Unfit(reason) => ProviderAnswer::Rejected { reason },
    }
}

/// The answer when a lookup finds nothing: for a young alert it may only come too early.
fn unknown(message: &Notification, reason: String) -> ProviderAnswer {
    // A UUIDv7 begins with 48 bits of time, in milliseconds. The row is written when the alert is taken.
    let taken_at = i64::try_from(message.key.session.0.as_u128() >> 80).unwrap_or_default();
    let age = Utc::now().timestamp_millis().saturating_sub(taken_at);
    if age.saturating_abs() < LOOKUP_GRACE {
        unavailable(format!("lookup: {reason}"), Arrival::Refused)
    } else {
        ProviderAnswer::NoPlace { reason }
    }
}

fn is_paged(text: &Text) -> bool {
    text.0
        .iter()
        .any(|piece| matches!(piece, Piece::Value(Name::Page | Name::Offset)))
}

/// The failure of a request before the note: the note has not arrived.
fn not_arrived(answer: ProviderAnswer) -> ProviderAnswer {
    match answer {
        ProviderAnswer::Unavailable {
            reason,
            retry_after,
            arrival: _,
        } => ProviderAnswer::Unavailable {
            reason: format!("lookup: {reason}"),
            retry_after,
            arrival: Arrival::Refused,
        },
        answer @ (ProviderAnswer::Accepted { .. }
        | ProviderAnswer::Found { .. }
        | ProviderAnswer::NoPlace { .. }
        | ProviderAnswer::Rejected { .. }) => answer,
    }
}

/// A text or a number as a text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
