//! Sends a note: looks absent references up, searches for the note of an earlier attempt, and adds it.

use reqwest::{Client, Response};
use serde_json::Value;

use super::render::Report;
use super::request::{Parts, Request};
use super::values::{Fault, Values};
use crate::answer::{self, unavailable};
use crate::guard;
use tarsy_config::sections::destinations::{Call, Destination, Find, Lookup};
use tarsy_core::notification::Notification;
use tarsy_engine::ports::{Arrival, ProviderAnswer};

/// Pages of a list in which a note is searched.
const MAX_PAGES: u32 = 5;

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
    /// The list may not be read, is no list, or has too many pages.
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
            self.look_up(lookup, &mut values, &report).await?;
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

    /// Reads the absent references from an answer. A thing that the vendor does not know has no note.
    async fn look_up(
        &self,
        lookup: &Lookup,
        values: &mut Values<'_>,
        report: &Report,
    ) -> Result<(), ProviderAnswer> {
        let request = self.request(&lookup.call, values, report)?;
        let response = self.send(request).await.map_err(not_arrived)?;
        if response.status().as_u16() == 404 {
            return Err(ProviderAnswer::NoPlace {
                reason: "the vendor knows no such thing".to_owned(),
            });
        }
        let found = match self.json(response).await {
            Ok(found) => found,
            Err(answer) => return Err(not_arrived(answer)),
        };
        for equal in &lookup.equals {
            let expected = values.text(&equal.text).map_err(answer_of)?;
            if found.pointer(&equal.pointer).and_then(scalar) != Some(expected) {
                return Err(ProviderAnswer::NoPlace {
                    reason: format!("the vendor knows no such thing: see {}", equal.pointer),
                });
            }
        }
        for take in &lookup.take {
            if let Some(id) = found.pointer(&take.pointer).and_then(scalar) {
                values.add(&take.name, id);
            }
        }
        Ok(())
    }

    async fn search(
        &self,
        find: &Find,
        values: &mut Values<'_>,
        report: &Report,
    ) -> Result<Search, ProviderAnswer> {
        for page in 1..=MAX_PAGES {
            values.page = page;
            let request = self.request(&find.call, values, report)?;
            let response = self.send(request).await?;
            let status = response.status();
            if status.is_server_error() || status.as_u16() == 429 {
                // The list can be read later; until then the note may be there.
                return Err(answer::of_status(response).await);
            }
            let Ok(list) = self.json(response).await else {
                return Ok(Search::Failed);
            };
            let Some(items) = list.pointer(&find.items).and_then(Value::as_array) else {
                return Ok(Search::Failed);
            };
            let has_marker = items
                .iter()
                .filter_map(|item| item.pointer(&find.text))
                .any(|text| text.to_string().contains(values.marker()));
            if has_marker {
                return Ok(Search::Found);
            }
            let is_full = find
                .size
                .is_some_and(|size| u32::try_from(items.len()).is_ok_and(|count| count >= size));
            if !is_full {
                return Ok(Search::Absent);
            }
        }
        Ok(Search::Failed)
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
            return unavailable(reason, Arrival::Unknown);
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
