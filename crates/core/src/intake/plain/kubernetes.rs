//! Events of Kubernetes, as exporters pass them on: the reason says what happens, and the object where.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::text;

/// The name of an event and its object; `None` for anything else.
pub(super) struct Event {
    pub(super) reason: String,
    pub(super) place: BTreeMap<String, String>,
}

impl Event {
    pub(super) fn parse(fields: &Map<String, Value>) -> Option<Self> {
        let object = ["involvedObject", "regarding"]
            .iter()
            .find_map(|key| fields.get(*key)?.as_object())?;
        let kind = text(object, "kind")?;
        let name = text(object, "name")?;

        let namespace =
            text(object, "namespace").map(|namespace| ("namespace".to_owned(), namespace));
        let place = namespace.into_iter().chain([(kind.to_lowercase(), name)]);
        Some(Self {
            reason: text(fields, "reason")?,
            place: place.collect(),
        })
    }
}
