//! Bodies of no known form that have their alerts in a list: `{"alerts": [{"name": …}, {"name": …}]}`.

use serde_json::{Map, Value};

use super::words;
use crate::intake::fingerprint::is_severity_key;
use crate::intake::identity::plain;
use crate::sources::WordList;

/// Lists of alerts, whatever stands beside them.
const ALERTS: WordList = WordList::new("alerts alarms problems incidents");
/// Lists of alerts in a body that says nothing about itself; otherwise they may be the history of one alert.
const OTHERS: WordList =
    WordList::new("events notifications records issues results items data messages");

/// Fields with a status, in lower case without separators.
const STATUSES: WordList = WordList::new(
    "notificationtype status state alertstatus alertstate currentstatus currentstate newstatus newstate servicestate \
     hoststate statename checkstatename alerttypefriendlyname eventtype eventname action type event \
     notificationevent",
);

/// A body for each alert of the list: its fields, and those fields of the whole that it does not have. `None` for a
/// body that is one alert.
pub(super) fn elements(value: &Value) -> Option<Vec<Value>> {
    let fields = value.as_object()?;
    let list = |names: &WordList| {
        let found = fields.iter().find(|(key, _)| names.contains(&plain(key)));
        found
            .and_then(|(key, value)| Some((key, value.as_array().filter(|items| items.len() > 1)?)))
    };
    let are_alerts = |items: &[Value]| {
        let objects = items.iter().filter_map(Value::as_object);
        let alerts = objects.filter(|item| has(item, &words::TITLES) && says_state(item));
        alerts.take(2).count() > 1
    };
    let alerts = list(&ALERTS).filter(|(_, items)| are_alerts(items));
    let (key, items) = alerts.or_else(|| {
        let says_nothing =
            !has(fields, &words::TITLES) && !has(fields, &words::NAMES) && !says_state(fields);
        list(&OTHERS).filter(|(_, items)| says_nothing && are_alerts(items))
    })?;
    let shared: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| *name != key)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Some(
        items
            .iter()
            .map(|item: &Value| {
                let Some(own) = item.as_object() else {
                    return item.clone();
                };
                let mut fields = shared.clone();
                // A group of the same name may say otherwise than its alert in another spelling.
                fields.retain(|name, _| !own.keys().any(|key| plain(key) == plain(name)));
                fields.extend(own.clone());
                Value::Object(fields)
            })
            .collect(),
    )
}

fn has(fields: &Map<String, Value>, names: &WordList) -> bool {
    fields
        .iter()
        .any(|(key, value)| value.is_string() && names.contains(&plain(key)))
}

fn says_state(fields: &Map<String, Value>) -> bool {
    has(fields, &STATUSES)
        || fields
            .iter()
            .any(|(key, value)| value.is_string() && is_severity_key(key))
}
