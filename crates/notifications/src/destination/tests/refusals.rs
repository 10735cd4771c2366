//! Notes that have no place: absent references, answers about something else, refused addresses.

use chrono::Utc;
use serde_json::json;
use tarsy_core::alert::refs::{Refs, am_group};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Arrival, ProviderAnswer};

use super::fake::Vendor;
use super::{builtin, message, needed};
use crate::destination::Sender;
use crate::guard;
use tarsy_config::sections::destinations::Destination;

fn refs(pairs: &[(&str, &str)]) -> Refs {
    Refs::new(
        pairs
            .iter()
            .map(|(name, id)| ((*name).to_owned(), (*id).to_owned())),
    )
}

async fn deliver(destination: &Destination, refs: Refs) -> ProviderAnswer {
    let client = guard::client().unwrap();
    let sender = Sender {
        client: &client,
        destination,
        secret: "s3cret",
    };
    sender.deliver(&message(refs)).await
}

#[tokio::test]
async fn a_reference_of_another_form_is_no_place_for_a_note() {
    let destination = builtin("github", "http://127.0.0.1:9");
    let repo = [("owner", "octo"), ("repo", "shop")];
    for number in ["", "1/../2", "1\u{200b}", "12345678901"] {
        let refs = refs(&[repo[0], repo[1], ("number", number)]);
        let answer = deliver(&destination, refs).await;
        assert!(
            matches!(answer, ProviderAnswer::NoPlace { .. }),
            "{number:?}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn a_reference_is_looked_up_only_for_the_group_of_the_alert() {
    let group = am_group("{}:{alertname=\"A\"}");
    let declared = builtin("pagerduty", "http://unknown");
    let vendor = Vendor::start(declared.clone()).await;
    let destination = Destination {
        base: vendor.address.clone(),
        ..declared
    };
    let answer = |key: &str| json!({"incidents": [{"id": "PGR0VU2", "incident_key": key}]});
    for (lookup, group, is_added) in [
        (answer(&group), Some(&group), true),
        (answer("another"), Some(&group), false),
        (json!({"incidents": []}), Some(&group), false),
        (answer(&group), None, false),
    ] {
        vendor.state.lock().unwrap().lookup = lookup;
        vendor.state.lock().unwrap().notes.clear();
        let named = group.map(|group| ("am_group", group.as_str()));
        let answer = deliver(&destination, refs(named.as_slice())).await;
        assert_eq!(vendor.notes().len(), usize::from(is_added), "{answer:?}");
        assert_eq!(
            matches!(answer, ProviderAnswer::NoPlace { .. }),
            !is_added,
            "{answer:?}"
        );
    }
    let lines = vendor.state.lock().unwrap().requests.clone();
    assert_eq!(
        lines[0].line,
        format!("GET /incidents?incident_key={group}&sort_by=created_at%3Adesc&limit=1 HTTP/1.1")
    );
    assert_eq!(lines[1].line, "POST /incidents/PGR0VU2/notes HTTP/1.1");
}

#[tokio::test]
async fn a_lookup_that_comes_too_early_is_made_again() {
    let declared = builtin("pagerduty", "http://unknown");
    let vendor = Vendor::start(declared.clone()).await;
    vendor.state.lock().unwrap().lookup = json!({"incidents": []});
    let destination = Destination {
        base: vendor.address.clone(),
        ..declared
    };
    let client = guard::client().unwrap();
    let sender = Sender {
        client: &client,
        destination: &destination,
        secret: "s3cret",
    };
    let group = am_group("{}:{alertname=\"A\"}");
    let now = u64::try_from(Utc::now().timestamp_millis()).unwrap();
    for (age, is_early) in [(60_000, true), (360_000, false)] {
        let mut message = message(refs(&[("am_group", group.as_str())]));
        message.key.session = SessionId::of_message(&[], now - age);
        let answer = sender.deliver(&message).await;
        let is_later = matches!(
            answer,
            ProviderAnswer::Unavailable {
                arrival: Arrival::Refused,
                ..
            }
        );
        assert_eq!(is_later, is_early, "{answer:?}");
    }
    let mut young = message(Refs::default());
    young.key.session = SessionId::of_message(&[], now);
    let answer = sender.deliver(&young).await;
    assert!(
        matches!(answer, ProviderAnswer::NoPlace { .. }),
        "without a reference nothing is looked up: {answer:?}"
    );
}

#[tokio::test]
async fn an_address_of_a_metadata_service_is_never_reached() {
    for base in [
        "http://169.254.169.254",
        "http://[::ffff:a9fe:a9fe]",
        "http://[fe80::1]",
    ] {
        let destination = builtin("jira", base);
        let answer = deliver(&destination, needed(&destination)).await;
        let ProviderAnswer::Unavailable {
            reason, arrival, ..
        } = answer
        else {
            panic!("{base}: {answer:?}");
        };
        assert_eq!(arrival, Arrival::Refused);
        assert!(reason.contains("link-local"), "{reason}");
    }
}

#[tokio::test]
async fn a_secret_that_no_header_can_have_is_not_sent() {
    let destination = builtin("jira", "http://127.0.0.1:9");
    let client = guard::client().unwrap();
    let sender = Sender {
        client: &client,
        destination: &destination,
        secret: "a\r\nHost: evil",
    };
    let answer = sender.deliver(&message(needed(&destination))).await;
    let reason = "the value of the header Authorization is not plain ASCII".to_owned();
    assert_eq!(answer, ProviderAnswer::Rejected { reason });
}
