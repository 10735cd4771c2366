//! Adds a note to what an alert is about, by the requests of a declaration.
//!
//! `values` has the values of a note, `request` writes them into a request, `render` makes the text. `sending` looks
//! references up, searches for the note of an earlier attempt, and sends; `pace` limits how many notes are sent.

pub(crate) mod render;
mod values;
mod request;
mod sending;
mod pace;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::pace::Pace;
pub(crate) use self::sending::Sender;

use self::render::Report;
use self::request::{Parts, Request};
use self::values::{Fault, Values};
use tarsy_config::sections::destinations::Destination;
use tarsy_core::notification::Notification;

/// Stands for the secret of a destination.
const HIDDEN: &str = "[secret]";
/// Stands for a reference that a lookup would find.
const LOOKED_UP: &str = "LOOKED-UP";

/// A request of a note that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// `lookup`, `find` or `note`.
    pub purpose: &'static str,
    /// The request as a text of HTTP, without the secret.
    pub http: String,
}

/// The requests of a note, in their order; the list is read only after a lost answer.
///
/// # Errors
/// A text with the reason why there is no note.
pub fn preview(destination: &Destination, message: &Notification) -> Result<Vec<Preview>, String> {
    let reason = |fault| match fault {
        Fault::Absent(name) => format!("the alert has no reference {name} of the needed form"),
        Fault::Unfit(reason) => reason,
    };
    let report = Report::new(message);
    let mut values = Values::new(destination, message, HIDDEN);
    let mut requests = Vec::new();
    if let Some(lookup) = &destination.lookup
        && !values.missing().is_empty()
    {
        let parts = Parts {
            destination,
            values: &values,
            report: &report,
        };
        let request = Request::new(&parts, &lookup.call).map_err(reason)?;
        requests.push(Preview {
            purpose: "lookup",
            http: request.shown(&destination.headers),
        });
        for take in &lookup.take {
            values.add(&take.name, LOOKED_UP.to_owned());
        }
    } else {
        values.check().map_err(reason)?;
    }
    let parts = Parts {
        destination,
        values: &values,
        report: &report,
    };
    let find = destination.find.as_ref().map(|find| Planned {
        purpose: "find",
        call: &find.call,
    });
    let note = Planned {
        purpose: "note",
        call: &destination.note,
    };
    for planned in find.into_iter().chain([note]) {
        let request = Request::new(&parts, planned.call).map_err(reason)?;
        requests.push(Preview {
            purpose: planned.purpose,
            http: request.shown(&destination.headers),
        });
    }
    Ok(requests)
}

struct Planned<'a> {
    purpose: &'static str,
    call: &'a tarsy_config::sections::destinations::Call,
}
