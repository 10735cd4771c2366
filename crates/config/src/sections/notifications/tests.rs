//! Routes in whole files: values, output of `show`, faults.

use super::*;
use crate::SecretSource;
use crate::{Config, show};

const ROUTES: &str = "\
notifications:
  on-call:
    kind: slack
    token_file: /run/secrets/slack
    channel: C0123456789
    thread_channels: [C9876543210]
    when: [started, ended]
    severities: [critical, high]
    template: 'cause: {cause} $${{x}}'
  team: {kind: slack, url_env: SLACK_URL, outcomes: [failed, timed_out, dead_letter]}
  teams: {kind: teams, url_file: /run/secrets/teams, chains: [default]}
  tickets: {kind: webhook, url: 'https://tickets.example.com/tarsy', secret_env: TICKETS_SECRET}
";

fn parse(text: &str) -> Result<Config, String> {
    Config::parse("f", text, &|_| None).map_err(|faults| faults.to_string())
}

#[test]
fn routes_are_read_with_their_secrets_as_references_and_shown_again() {
    let config = parse(ROUTES).unwrap();
    let on_call = &config.notifications["on-call"];
    let token = SecretSource::File("/run/secrets/slack".to_owned());
    let api_url = "https://slack.com/api".to_owned();
    assert_eq!(
        on_call.kind,
        RouteKind::SlackBot {
            token,
            channel: "C0123456789".to_owned(),
            thread_channels: vec!["C9876543210".to_owned()],
            api_url
        }
    );
    assert_eq!(on_call.filter.on, [Moment::Started, Moment::Ended]);
    assert_eq!(
        config.notifications["team"].filter.on,
        [Moment::Ended],
        "the default"
    );
    assert_eq!(config.notifications["tickets"].kind.as_str(), "webhook");
    assert_eq!(parse(&show(&config)).unwrap(), config, "{}", show(&config));
    assert!(!show(&parse("").unwrap()).contains("notifications"));
}

#[test]
fn each_fault_of_a_route_names_its_key() {
    for (route, key, why) in [
        ("{}", "kind", "missing; accepted: slack, teams, webhook"),
        ("{kind: mail}", "kind", "accepted: slack, teams, webhook"),
        ("{kind: slack}", "url_file", "missing"),
        (
            "{kind: slack, url_env: A, token_env: B}",
            "url_file",
            "not both",
        ),
        (
            "{kind: slack, token_env: A}",
            "channel",
            "the id of a channel",
        ),
        (
            "{kind: slack, token_env: A, channel: '#ops'}",
            "channel",
            "not its name",
        ),
        (
            "{kind: slack, url_env: A, channel: C1}",
            "channel",
            "has its own channel",
        ),
        (
            "{kind: slack, url_env: 'https://hooks.slack.com/T/B/x'}",
            "url_env",
            "not the name of an environment variable",
        ),
        (
            "{kind: slack, url: 'https://hooks.slack.com/T/B/x'}",
            "url",
            "unknown key",
        ),
        (
            "{kind: teams, url_file: a, url_env: B}",
            "url_env",
            "a second source",
        ),
        ("{kind: teams}", "url_file", "missing"),
        ("{kind: webhook}", "url", "missing"),
        (
            "{kind: webhook, url: 'https://h/?key=1'}",
            "url",
            "may contain a key",
        ),
        (
            "{kind: webhook, url: 'https://h', url_env: A}",
            "url",
            "a second address",
        ),
        (
            "{kind: webhook, url: 'https://h', when: [begun]}",
            "when[0]",
            "accepted: started, ended",
        ),
        (
            "{kind: webhook, url: 'https://h', chains: [none]}",
            "chains[0]",
            "is not defined",
        ),
        (
            "{kind: webhook, url: 'https://h', template: '{titel}'}",
            "template",
            "{titel} is no value",
        ),
    ] {
        let faults = parse(&format!("notifications: {{r: {route}}}")).unwrap_err();
        assert!(
            faults.contains(&format!("notifications.r.{key} ")) && faults.contains(why),
            "{route}: {faults}"
        );
        assert!(
            !faults.contains("hooks.slack.com/T"),
            "the secret address is not shown: {faults}"
        );
    }
}
