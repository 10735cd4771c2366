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
  mail:
    kind: email
    smtp: {host: smtp.example.com, port: 2525, tls: required, username: tarsy, password_file: /p, ca_file: /ca.pem}
    from: '\"Wächter, der\" <tarsy@example.com>'
    to: [ops@example.com, On call <on-call+p1@example.com>]
  relay: {kind: email, smtp: {host: 10.0.0.7, tls: none, allow_plaintext: true}, from: a@b.example, to: [c@d.example]}
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
    let mail = &config.notifications["mail"];
    assert_eq!((mail.kind.as_str(), mail.timeout.as_secs()), ("email", 30));
    assert_eq!(mail.kind.secrets(), [&SecretSource::File("/p".to_owned())]);
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

fn email(smtp: &str) -> Result<EmailRoute, String> {
    let route = format!("{{kind: email, smtp: {smtp}, from: a@b.example, to: [c@d.example]}}");
    let config = parse(&format!("notifications: {{r: {route}}}"))?;
    let RouteKind::Email(email) = &config.notifications["r"].kind else {
        panic!("{config:?}")
    };
    Ok((**email).clone())
}

#[test]
fn port_and_protection_follow_from_each_other() {
    for (smtp, port, tls) in [
        ("{host: h}", 587, SmtpTls::Starttls),
        ("{host: h, port: 465}", 465, SmtpTls::Required),
        ("{host: h, port: 2525}", 2525, SmtpTls::Starttls),
        ("{host: h, tls: required}", 465, SmtpTls::Required),
        ("{host: localhost, tls: none}", 25, SmtpTls::None),
        (
            "{host: '[::1]', tls: none, username: u, password_env: P}",
            25,
            SmtpTls::None,
        ),
        (
            "{host: h, tls: none, allow_plaintext: true}",
            25,
            SmtpTls::None,
        ),
    ] {
        let Smtp {
            port: found,
            tls: protection,
            ..
        } = email(smtp).unwrap().smtp;
        assert_eq!((found, protection), (port, tls), "{smtp}");
    }
}

#[test]
fn each_fault_of_a_mail_server_names_its_key() {
    for (smtp, key, why) in [
        ("{}", "smtp.host", "missing"),
        ("{host: 'h:25'}", "smtp.host", "without a port"),
        ("{host: 'https://h'}", "smtp.host", "without a port"),
        (
            "{host: h, port: 0}",
            "smtp.port",
            "a whole number (1 to 65535)",
        ),
        (
            "{host: h, tls: tls}",
            "smtp.tls",
            "accepted: required, starttls, none",
        ),
        (
            "{host: h, tls: none}",
            "smtp.tls",
            "messages would be readable",
        ),
        (
            "{host: h, tls: none, allow_plaintext: true, username: u, password_env: P}",
            "smtp.tls",
            "a password would be readable",
        ),
        ("{host: h, username: u}", "smtp.password_file", "missing"),
        ("{host: h, password_env: P}", "smtp.username", "missing"),
        (
            "{host: h, username: u, password: s3cret}",
            "smtp.password",
            "unknown key",
        ),
        (
            "{host: h, username: u, password_env: a, password_file: b}",
            "smtp.password_env",
            "a second source",
        ),
    ] {
        let faults = email(smtp).unwrap_err();
        assert!(
            faults.contains(&format!("notifications.r.{key} ")) && faults.contains(why),
            "{smtp}: {faults}"
        );
        assert!(!faults.contains("s3cret"), "{faults}");
    }
}

#[test]
fn an_address_with_more_than_an_address_is_refused() {
    let route = |from: &str, to: &str| {
        let text = format!(
            "notifications: {{r: {{kind: email, smtp: {{host: h}}, from: {from}, to: {to}}}}}"
        );
        parse(&text).map(|_| ())
    };
    assert_eq!(route("'Tarsy <a@b.example>'", "[c@d.example]"), Ok(()));
    for from in [
        "'a'",
        "'a@'",
        "'a@b.example, c@d.example'",
        "'a@b.example>'",
        "'<a@b.example> x'",
        "'x <a@b.example> <c@d.example>'",
        "'\"a b\"@b.example'",
        "'ä@b.example'",
        "'a@bücher.example'",
        "\"a\\r\\nBcc: c@d.example <a@b.example>\"",
        "\"a@b.example\\r\\nRCPT TO:<c@d.example>\"",
        "\"a@b.example\\u0000\"",
    ] {
        let faults = route(from, "[c@d.example]").unwrap_err();
        assert!(faults.contains("notifications.r.from "), "{from}: {faults}");
        let faults = route("a@b.example", &format!("[c@d.example, {from}]")).unwrap_err();
        assert!(
            faults.contains("notifications.r.to[1] "),
            "{from}: {faults}"
        );
    }
    let many = vec!["c@d.example"; 51].join(", ");
    for to in ["[]", "c@d.example", &format!("[{many}]")] {
        let faults = route("a@b.example", to).unwrap_err();
        assert!(faults.contains("notifications.r.to "), "{to}: {faults}");
    }
}
