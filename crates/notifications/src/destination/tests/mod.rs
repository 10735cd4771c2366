//! Destinations against one server that stands for every vendor; their samples; values that try to be more than values.

mod fake;
mod injection;
mod once;
mod refusals;
mod samples;

use chrono::{TimeDelta, TimeZone as _, Utc};
use tarsy_config::sections::destinations::{Destination, builtin_destinations};
use tarsy_core::alert::Severity;
use tarsy_core::alert::refs::Refs;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::summary::{Outcome, Summary};
use tarsy_core::notification::{Moment, Notification, NotificationKey};

const ANALYSIS: &str = "Cause: the heap limit of `checkout` leaves **no room** [5]\nSure: likely\nEvidence:\n- exit 137 [5]\n- limit 512Mi \
     [7]\n\n| pod | restarts |\n|---|---|\n| web-0 | 9 |\n\nDo next:\n\n```\nkubectl set resources deploy/checkout --limits=memory=1Gi\n```\n\n1. watch it\n2. \
     [read](https://runbooks.example.com/oom)\n";

/// An ended investigation of an alert with these references.
pub(crate) fn message(refs: Refs) -> Notification {
    let session = SessionId::parse("019a2b3c-0000-7000-8000-000000000001").unwrap();
    let began_at = Utc.with_ymd_and_hms(2026, 11, 23, 12, 0, 0).unwrap();
    Notification {
        key: NotificationKey {
            session,
            route: "destination".to_owned(),
            moment: Moment::Ended,
            request: None,
        },
        about: session,
        summary: Summary {
            title: "CheckoutErrors web-0".to_owned(),
            severity: Some(Severity::Critical),
            chain: Some("kubernetes".to_owned()),
            outcome: Some(Outcome::Completed),
            analysis: Some(ANALYSIS.to_owned()),
            refs,
            began_at: Some(began_at),
            ended_at: Some(began_at + TimeDelta::milliseconds(6_100)),
            ..Summary::default()
        },
        url: Some(format!("https://tarsy.example.com/sessions/{session}")),
        template: None,
        may_repeat: false,
        stays_in_thread: false,
    }
}

/// A built-in destination with what it leaves to the user.
fn builtin(name: &str, base: &str) -> Destination {
    let mut found = builtin_destinations()
        .find(|(each, _)| *each == name)
        .map(|(_, destination)| destination.clone())
        .unwrap();
    found.base = base.to_owned();
    found
        .with
        .values_mut()
        .for_each(|value| *value = "example".to_owned());
    found
}

/// The references that a destination needs.
fn needed(destination: &Destination) -> Refs {
    let issue = if destination.needs.iter().any(|need| need.name == "project") {
        "52"
    } else {
        "OPS-712"
    };
    let known = [
        ("alert", "8743a1cc-11c2-49ad-9a01-1a2b3c4d5e6f"),
        ("dashboard", "fgKkRkDMk"),
        ("event", "4711"),
        ("incident", "PGR0VU2"),
        ("issue", issue),
        ("number", "1347"),
        ("owner", "octo-shop"),
        ("problem", "-4356451356_1633046400000V2"),
        ("project", "shop/checkout"),
        ("repo", "checkout"),
        ("sys_id", "9d385017c611228701d22104cc95c371"),
    ];
    Refs::new(
        known
            .into_iter()
            .filter(|(name, _)| destination.needs.iter().any(|need| need.name == *name))
            .map(|(name, id)| (name.to_owned(), id.to_owned())),
    )
}
