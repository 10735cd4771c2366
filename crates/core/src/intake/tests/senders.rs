//! A simulated sender of unknown form: it repeats, escalates, is acknowledged and ends, and has two problems on one
//! host and one on two. Every choice of names, spelling, envelope and words gives one fingerprint for each problem.

use chrono::{TimeZone as _, Utc};

use super::*;

/// The form in which a sender writes its alerts.
#[derive(Clone, Debug)]
struct Sender {
    condition: &'static str,
    resource: &'static str,
    state: &'static str,
    text: &'static str,
    words: Words,
    spelling: Spelling,
    envelope: Option<&'static str>,
    has_severity: bool,
}

/// The words of its states.
#[derive(Clone, Copy, Debug)]
struct Words {
    firing: &'static str,
    resolved: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Spelling {
    Snake,
    Camel,
    Kebab,
    Capitals,
}

/// One message about a problem.
#[derive(Clone, Copy, Debug)]
struct Message {
    problem: &'static str,
    host: &'static str,
    number: u32,
    state: &'static str,
    severity: &'static str,
}

impl Spelling {
    fn of(self, key: &str) -> String {
        match self {
            Self::Snake => key.to_owned(),
            Self::Kebab => key.replace('_', "-"),
            Self::Capitals => key.to_uppercase(),
            Self::Camel => {
                let mut parts = key.split('_');
                let first = parts.next().unwrap_or_default().to_owned();
                parts.fold(first, |key, part| key + &capitalised(part))
            }
        }
    }
}

fn capitalised(part: &str) -> String {
    let mut letters = part.chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect::<String>()
}

impl Sender {
    fn body(&self, message: Message) -> Value {
        let Message {
            problem,
            host,
            number,
            state,
            severity,
        } = message;
        let mut fields = vec![
            (self.condition, json!(problem)),
            (self.resource, json!(host)),
            (self.state, json!(state)),
            (
                self.text,
                json!(format!("{problem} on {host} is {state}: {number}.5 %")),
            ),
            ("event_id", json!(format!("e-{number}"))),
            (
                "updated_at",
                json!(format!("2026-11-27T01:{:02}:00Z", number % 60)),
            ),
            ("measured_value", json!(f64::from(number) * 1.5)),
            ("duration", json!(format!("{number}m"))),
            ("notification_count", json!(number)),
            (
                "previous_status",
                json!(if number % 2 == 0 { "ok" } else { "alarm" }),
            ),
            (
                "incident_url",
                json!(format!("https://monitoring.example.com/{number}")),
            ),
        ];
        if self.has_severity {
            fields.push(("severity", json!(severity)));
        }
        let fields = fields
            .into_iter()
            .map(|(key, value)| (self.spelling.of(key), value))
            .collect();
        match self.envelope {
            Some(name) => json!({name: Value::Object(fields), "sent": number}),
            None => Value::Object(fields),
        }
    }

    fn read(&self, message: Message) -> Alert {
        let received_at = Utc.with_ymd_and_hms(2026, 11, 28, 0, 0, 0).single();
        let body = self.body(message).to_string();
        normalise(
            body.as_bytes(),
            &Hints {
                received_at,
                ..Hints::default()
            },
        )
        .unwrap()
    }
}

fn any_sender() -> impl Strategy<Value = Sender> {
    let words = |firing, resolved| Words { firing, resolved };
    let words = prop::sample::select(vec![
        words("firing", "resolved"),
        words("DOWN", "UP"),
        words("CRITICAL", "OK"),
        words("problem", "recovery"),
        words("Alarm", "cleared"),
        words("OK -> CRITICAL", "CRITICAL -> OK"),
        words("Störung", "behoben"),
        words("告警", "恢复正常"),
        words("incident_opened", "incident_closed"),
    ]);
    let spelling = prop::sample::select(vec![
        Spelling::Snake,
        Spelling::Camel,
        Spelling::Kebab,
        Spelling::Capitals,
    ]);
    let condition = [
        "check_name",
        "alert_name",
        "rule",
        "monitor_name",
        "title",
        "name",
        "alarm",
        "policy_name",
        "service",
    ];
    let resource = [
        "host",
        "hostname",
        "node",
        "instance",
        "device",
        "target",
        "pod",
        "resource_name",
    ];
    let state = [
        "status",
        "state",
        "alert_status",
        "current_state",
        "new_status",
    ];
    let envelope = [
        None,
        Some("data"),
        Some("alert"),
        Some("event"),
        Some("incident"),
    ];
    (
        prop::sample::select(condition.to_vec()),
        prop::sample::select(resource.to_vec()),
        prop::sample::select(state.to_vec()),
        prop::sample::select(vec!["message", "description", "output", "details"]),
        words,
        spelling,
        prop::sample::select(envelope.to_vec()),
        any::<bool>(),
    )
        .prop_map(
            |(condition, resource, state, text, words, spelling, envelope, has_severity)| Sender {
                condition,
                resource,
                state,
                text,
                words,
                spelling,
                envelope,
                has_severity,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_sender_of_any_form_has_one_key_for_each_problem(sender in any_sender(), number in 1_u32..5_000) {
        let firing = Message {
            problem: "Disk full", host: "db-3", number, state: sender.words.firing, severity: "warning",
        };
        let first = sender.read(firing);
        let again = sender.read(Message { number: number + 7, ..firing });
        let worse = sender.read(Message { number: number + 8, severity: "critical", ..firing });
        let taken = sender.read(Message { number: number + 9, state: "acknowledged", ..firing });
        let ended = sender.read(Message { number: number + 10, state: sender.words.resolved, ..firing });
        for (alert, status) in [
            (&first, AlertStatus::Firing),
            (&again, AlertStatus::Firing),
            (&worse, AlertStatus::Firing),
            (&taken, AlertStatus::Acknowledged),
            (&ended, AlertStatus::Resolved),
        ] {
            prop_assert_eq!(alert.status, status, "{}", &alert.text);
            prop_assert_eq!(&alert.fingerprint, &first.fingerprint, "{}", &alert.text);
        }
        prop_assert_eq!(&again.members, &first.members, "{}", &again.text);
        let other = sender.read(Message { problem: "Replication stopped", ..firing });
        let elsewhere = sender.read(Message { host: "db-4", ..firing });
        prop_assert_ne!(&other.fingerprint, &first.fingerprint, "{}", &other.text);
        prop_assert_ne!(&elsewhere.fingerprint, &first.fingerprint, "{}", &elsewhere.text);
        prop_assert_ne!(&elsewhere.fingerprint, &other.fingerprint);
    }

    /// A name may have the word of a state or of a test in it.
    #[test]
    fn a_name_never_ends_an_alert(
        before in "(Contest|Backup|Recovery|Test|Normal|Up|Closed|OK|Ping|Resolved)",
        after in "(lag|site|forms|loop|queue|test|latency)",
        key in "(title|name|check|rule|service|message|alert_name|summary)",
        severity in "(critical|P1|high)",
    ) {
        let name = format!("{before} {after}");
        let alert = read_json(&json!({key: name, "severity": severity, "host": "db-3"}));
        prop_assert_eq!(alert.status, AlertStatus::Firing, "{}", &alert.text);
    }

    /// In a field that may say what an alert is about, the word of a good state says nothing.
    #[test]
    fn a_type_never_ends_an_alert(
        key in "(type|event|action|kind|event_type|check_type)",
        word in "(ping|test|normal|Normal|available|active|testing|closed circuit|connection closed|recovery mode)",
    ) {
        let alert = read_json(&json!({key: word, "name": "db-3", "severity": "critical"}));
        prop_assert_eq!(alert.status, AlertStatus::Firing, "{}", &alert.text);
    }

    /// Of several severities the worst counts, in any order and case.
    #[test]
    fn the_worst_of_several_severities_counts(
        worst in "(critical|CRITICAL|P0|P1|SEV-1|sev0|S1|P1 - Critical)",
        other in "(none|info|low|warning|P3|P5|SEV4)",
        keys in prop::sample::subsequence(vec!["severity", "priority", "Severity", "alert_severity", "urgency"], 2),
        is_first in any::<bool>(),
    ) {
        let (one, two) = if is_first { (&worst, &other) } else { (&other, &worst) };
        let labels = json!({"alertname": "A", keys[0]: one, keys[1]: two});
        let of_group = read_json(&json!({"alerts": [{"labels": labels, "status": "firing"}]}));
        let alone = read_json(&json!({"title": "A", keys[0]: one, keys[1]: two}));
        prop_assert_eq!(of_group.severity, Severity::Critical, "{}", &of_group.text);
        prop_assert_eq!(alone.severity, Severity::Critical, "{}", &alone.text);
        prop_assert!(alone.text.contains("the worse one counts"), "{}", &alone.text);
    }
}
