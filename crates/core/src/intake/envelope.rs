//! Removes the envelope of a transport from a body: JSON in a JSON text, a push of Pub/Sub, a notification of SNS, an
//! event of `CloudEvents` with Base64. The alert inside is read as if it had come alone.

use std::borrow::Cow;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// JSON texts in JSON texts that are opened.
const MAX_DEPTH: usize = 3;
/// A larger body is no validation of a subscription.
const MAX_VALIDATION_BYTES: usize = 64 * 1024;
/// Fields of the messages of AWS that a source reads together with their envelope.
const OF_AWS: [&str; 9] = [
    "AlarmName",
    "AlarmArn",
    "detail-type",
    "Event",
    "Event ID",
    "Event Message",
    "AutoScalingGroupName",
    "Source ID",
    "LifecycleHookName",
];

/// The body in its envelopes; itself if it has none.
pub(super) fn open(mut value: Value) -> Value {
    for _ in 0..MAX_DEPTH {
        let Some(inner) = text_in(&value)
            .or_else(|| pushed(&value))
            .or_else(|| notified(&value))
        else {
            break;
        };
        value = inner;
        value.sort_all_objects();
    }
    if let Some(data) = base64_data(&value)
        && let Some(fields) = value.as_object_mut()
    {
        fields.insert("data".to_owned(), data);
    }
    value
}

/// The object or list in a text.
fn parse(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[', '"']) {
        return None;
    }
    let parsed = serde_json::from_str::<Value>(text).ok()?;
    let has_content = parsed.is_object()
        || parsed.is_array()
        || parsed.as_str().is_some_and(|text| parse(text).is_some());
    has_content.then_some(parsed)
}

/// A sender that has written its JSON as a text once more.
fn text_in(value: &Value) -> Option<Value> {
    parse(value.as_str()?)
}

/// <https://cloud.google.com/pubsub/docs/push>: the message is Base64.
fn pushed(value: &Value) -> Option<Value> {
    let message = value.get("message")?;
    value.get("subscription")?.as_str()?;
    ["messageId", "message_id"]
        .iter()
        .find_map(|key| message.get(*key))?;
    let text = decode(message.get("data")?.as_str()?)?;
    Some(parse(&text).unwrap_or(Value::String(text)))
}

/// <https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html>: JSON of another sender than AWS, as
/// Amazon Managed Service for Prometheus sends it.
fn notified(value: &Value) -> Option<Value> {
    value.get("TopicArn")?.as_str()?;
    if value.get("Type") != Some(&json!("Notification")) {
        return None;
    }
    let message = parse(value.get("Message")?.as_str()?)?;
    let is_of_aws = OF_AWS.iter().any(|key| message.get(*key).is_some());
    (!is_of_aws).then_some(message)
}

/// <https://github.com/cloudevents/spec/blob/main/cloudevents/formats/json-format.md>: `data_base64` for `data`.
fn base64_data(value: &Value) -> Option<Value> {
    value.get("specversion")?;
    if value.get("data").is_some() {
        return None;
    }
    let text = decode(value.get("data_base64")?.as_str()?)?;
    Some(parse(&text).unwrap_or(Value::String(text)))
}

fn decode(text: &str) -> Option<String> {
    let text = text.trim();
    let forms = [BASE64, BASE64_NOPAD, BASE64URL];
    let bytes = forms
        .iter()
        .find_map(|form| form.decode(text.as_bytes()).ok())?;
    String::from_utf8(bytes).ok()
}

/// The event of `CloudEvents` in the binary mode of HTTP, in the structured form: the attributes are headers `ce-…`,
/// and the body is the data. `None` without the attributes that every event has.
pub fn cloud_event(headers: &[(String, String)], body: &[u8]) -> Option<Vec<u8>> {
    let mut event = Map::new();
    for (name, value) in headers {
        if let Some(attribute) = name.to_ascii_lowercase().strip_prefix("ce-") {
            event.insert(attribute.to_owned(), Value::String(value.clone()));
        }
    }
    if !["id", "source", "specversion", "type"]
        .iter()
        .all(|attribute| event.contains_key(*attribute))
    {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    event.remove("data");
    // A large body is copied and not parsed into values.
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    let data = if is_json {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(Value::from(text).to_string())
    };
    let mut written = serde_json::to_string(&event).ok()?;
    written.pop()?;
    Some(
        [written.as_str(), ",\"data\":", &data, "}"]
            .concat()
            .into_bytes(),
    )
}

/// The answer to the validation of a subscription of Event Grid; `None` for any other body.
/// <https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema>
pub fn event_grid_answer(body: &[u8]) -> Option<Value> {
    if body.len() > MAX_VALIDATION_BYTES {
        return None;
    }
    let value: Value = serde_json::from_slice(body).ok()?;
    let event = value
        .as_array()
        .and_then(|events| events.first())
        .unwrap_or(&value);
    let is_validation =
        event.get("eventType")? == "Microsoft.EventGrid.SubscriptionValidationEvent";
    let code = event.pointer("/data/validationCode")?.as_str()?;
    is_validation.then(|| json!({"validationResponse": code}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_found_in_its_envelopes() {
        let alert = json!({"host": "db-1", "title": "Disk full"});
        let text = alert.to_string();
        let push = |data: &str| json!({"message": {"data": BASE64.encode(data.as_bytes()), "messageId": "1"}, "subscription": "s"});
        let sns =
            |message: &str| json!({"Type": "Notification", "TopicArn": "arn", "Message": message});
        for body in [
            json!(text),
            json!(json!(text).to_string()),
            push(&text),
            sns(&text),
            sns(&json!(text).to_string()),
        ] {
            assert_eq!(open(body.clone()), alert, "{body}");
        }
        for body in [
            alert.clone(),
            json!("disk full"),
            json!("[disk] full"),
            sns("disk full"),
            sns(r#"{"AlarmName": "cpu"}"#),
            json!({"message": {"data": "e30="}}),
            json!({"message": "x", "subscription": "s"}),
        ] {
            assert_eq!(open(body.clone()), body, "{body}");
        }
        assert_eq!(open(push("disk full")), json!("disk full"));
        let event = json!({"specversion": "1.0", "data_base64": BASE64.encode(text.as_bytes())});
        assert_eq!(open(event)["data"], alert);
    }

    #[test]
    fn an_event_in_headers_is_the_same_as_one_in_the_body() {
        let headers = |names: &[&str]| -> Vec<(String, String)> {
            names
                .iter()
                .map(|name| ((*name).to_owned(), "x".to_owned()))
                .collect()
        };
        let all = headers(&["CE-Id", "ce-source", "ce-specversion", "ce-type", "host"]);
        let event: Value =
            serde_json::from_slice(&cloud_event(&all, br#"{"a": 1}"#).unwrap()).unwrap();
        assert_eq!(
            event,
            json!({"id": "x", "source": "x", "specversion": "x", "type": "x", "data": {"a": 1}})
        );
        assert_eq!(cloud_event(&headers(&["ce-id", "ce-type"]), b"{}"), None);
    }

    #[test]
    fn only_the_validation_of_event_grid_is_answered() {
        let body = |kind: &str| {
            json!([{"eventType": kind, "data": {"validationCode": "512d38b6"}}]).to_string()
        };
        let answer =
            event_grid_answer(body("Microsoft.EventGrid.SubscriptionValidationEvent").as_bytes());
        assert_eq!(answer, Some(json!({"validationResponse": "512d38b6"})));
        assert_eq!(
            event_grid_answer(body("Microsoft.Storage.BlobCreated").as_bytes()),
            None
        );
        assert_eq!(event_grid_answer(b"disk full"), None);
    }
}
