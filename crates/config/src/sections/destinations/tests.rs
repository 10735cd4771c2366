//! Destinations in whole files: values, output of `show`, faults; the built-in declarations.

use super::*;
use crate::{Config, show};
use tarsy_core::notification::Moment;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse("f", text, &|_| None).map_err(|faults| faults.to_string())
}

const OWN: &str = "\
destinations:
  pagerduty:
    with: {from: tarsy@example.com}
    secret_file: /run/secrets/pagerduty
    when: [ended, covered]
    severities: [critical]
  desk:
    base: https://desk.example.com/api/
    needs: {ticket: '^[0-9]{1,9}$'}
    post: '/tickets/{ticket}/notes/'
    query: {by: 'tarsy {session}'}
    headers: {X-Key: '{secret}'}
    json: {text: {render: report, as: markdown, max: 5000}, tags: [1, true, null, '{{{severity}}}']}
    secret_env: DESK_KEY
    idempotent: true
";

#[test]
fn destinations_are_read_with_what_they_are_like_and_shown_again() {
    let config = parse(OWN).unwrap();
    let pagerduty = &config.destinations["pagerduty"];
    assert_eq!(pagerduty.route.filter.on, [Moment::Ended, Moment::Covered]);
    let declared = pagerduty.destination().unwrap();
    assert_eq!(declared.base, "https://api.pagerduty.com");
    assert_eq!(declared.with["from"], "tarsy@example.com");
    assert!(declared.find.is_some() && declared.lookup.is_some());

    let desk = config.destinations["desk"].destination().unwrap();
    assert_eq!(desk.base, "https://desk.example.com/api");
    assert_eq!(
        desk.note.path.last(),
        Some(&Text::default()),
        "the / at the end"
    );
    let Body::Json(Node::Map(members)) = &desk.note.body else {
        panic!("{:?}", desk.note.body);
    };
    let Node::List(tags) = &members[1].node else {
        panic!("{members:?}");
    };
    let severity = Text(vec![
        Piece::Literal("{".into()),
        Piece::Value(Name::Notification("severity")),
        Piece::Literal("}".into()),
    ]);
    assert_eq!(
        *tags,
        [
            Node::Number(1.into()),
            Node::Bool(true),
            Node::Null,
            Node::Text(severity)
        ]
    );
    assert_eq!(parse(&show(&config)).unwrap(), config, "{}", show(&config));
    let routes = config.notification_routes();
    assert_eq!(routes.keys().collect::<Vec<_>>(), ["desk", "pagerduty"]);
}

#[test]
fn a_reference_fits_a_form_only_as_a_whole() {
    let text = "destinations: {d: {base: 'https://h', post: /a, needs: {id: '^ab|[0-9]+$'}}}";
    let config = parse(text).unwrap();
    let need = &config.destinations["d"].destination().unwrap().needs[0];
    for (id, fits) in [("ab", true), ("12", true), ("abc", false), ("x12", false)] {
        assert_eq!(need.form.regex.is_match(id), fits, "{id}");
    }
}

#[test]
fn every_value_of_a_request_is_hidden() {
    let text = "destinations: {d: {base: 'https://h', post: /a, with: {p: canary}, headers: {X-Key: canary}, \
                query: {k: canary}, json: {a: [canary, {b: canary}], m: '{marker}'}, \
                needs: {id: '^[0-9]$'}, lookup: {get: /l, query: {k: canary}, take: {id: /id}}, \
                find: {post: /f, json: {k: canary}, items: '', text: /t}}}";
    let mut config = parse(text).unwrap();
    for destination in config.destinations.values_mut() {
        destination.hide_values("hidden");
    }
    let shown = show(&config);
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("X-Key") && shown.contains("/id"), "{shown}");
}

#[test]
fn every_builtin_destination_is_read_without_a_fault() {
    for builtin in BUILTIN_DESTINATIONS {
        let read = builtin::parse(builtin.name, builtin.text);
        let destination = read.unwrap_or_else(|faults| panic!("{}: {faults}", builtin.name));
        assert!(
            destination.find.is_some() || destination.idempotent,
            "{} is not sent twice after a lost answer",
            builtin.name
        );
    }
}

#[test]
fn each_fault_of_a_destination_names_its_key() {
    let desk = |key: &str| format!("{{base: 'https://h', post: /notes, {key}}}");
    for (destination, key, why) in [
        (
            "{base: 'https://{title}.example.com', post: /a}".into(),
            "base",
            "a placeholder in an address",
        ),
        ("{base: 'http://h', post: /a}".into(), "base", "allow_http"),
        (
            "{base: 'https://u:p@h', post: /a}".into(),
            "base",
            "user name",
        ),
        ("{post: /a}".into(), "base", "missing"),
        ("{base: 'https://h'}".into(), "post", "missing"),
        (
            "{base: 'https://h', post: a}".into(),
            "post",
            "begins with /",
        ),
        (
            "{base: 'https://h', post: /a/../b}".into(),
            "post",
            "begins with /",
        ),
        (
            "{base: 'https://h', post: '/a?b'}".into(),
            "post",
            "begins with /",
        ),
        (
            "{base: 'https://h', post: /a, put: /a}".into(),
            "put",
            "a second request",
        ),
        (
            "{base: 'https://h', post: '/{secret}'}".into(),
            "post",
            "{secret} outside of headers",
        ),
        (
            desk("json: {a: '{secret}'}"),
            "json.a",
            "{secret} outside of headers",
        ),
        (
            desk("json: {a: '{titel}'}"),
            "json.a",
            "{titel} is no value; accepted: am_group, marker",
        ),
        (desk("json: {a: '{ticket}'}"), "json.a", "named in needs"),
        (desk("json: {a: '{with.x}'}"), "json.a", "is no value"),
        (
            desk("json: {a: '{title'}"),
            "json.a",
            "a brace without its other one",
        ),
        (
            desk("json: {a: 'title}'}"),
            "json.a",
            "a brace without its other one",
        ),
        (
            desk("json: {'{title}': b}"),
            "json.{title}",
            "a placeholder in a name",
        ),
        (
            desk("json: {a: '{page}'}"),
            "json.a",
            "which alone has pages",
        ),
        (
            desk("json: {a: {render: all, as: text}}"),
            "json.a.render",
            "accepted: report, cause, analysis",
        ),
        (
            desk("json: {a: {render: report, as: text, max: 9}}"),
            "json.a.max",
            "2000 to 200000",
        ),
        (desk("json: {}, form: {a: b}"), "form", "a second body"),
        (
            desk("headers: {Host: h}"),
            "headers.Host",
            "no header of the connection",
        ),
        (
            desk("headers: {X-Key: '{secret}'}"),
            "secret_file",
            "missing",
        ),
        (desk("secret_env: A"), "headers", "a header with {secret}"),
        (
            desk("needs: {title: '^a$'}"),
            "needs.title",
            "every note has",
        ),
        (desk("needs: {id: '[0-9]+'}"), "needs.id", "from ^ to $"),
        (
            desk("needs: {id: '^($'}"),
            "needs.id",
            "a regular expression",
        ),
        (
            desk("lookup: {get: /a, take: {id: /id}}"),
            "lookup.take.id",
            "not named in needs",
        ),
        (
            desk("find: {get: /a, items: '', text: /t}"),
            "json",
            "without which find has nothing",
        ),
        (
            desk("json: {a: '{marker}'}, find: {get: /a, items: x, text: /t}"),
            "find.items",
            "a JSON pointer",
        ),
        (
            desk("json: {a: '{marker}'}, find: {get: /a, items: '', text: /t, size: 0}"),
            "find.size",
            "1 to 1000",
        ),
        (desk("accepted: [302]"), "accepted[0]", "200 to 299"),
        (desk("timeout: 2s"), "timeout", "5s to 1m"),
        (desk("per_minute: 1"), "per_minute", "60 to 6000"),
        (desk("like: pagerdut"), "like", "did you mean"),
        (
            "{like: pagerduty, secret_env: A}".into(),
            "with.from",
            "missing",
        ),
        (
            "{like: pagerduty, secret_env: A, with: {form: a}}".into(),
            "with.form",
            "no parameter of it",
        ),
    ] {
        let faults = parse(&format!("destinations: {{d: {destination}}}")).unwrap_err();
        assert!(
            faults.contains(&format!("destinations.d.{key} ")) && faults.contains(why),
            "{destination}: {faults}"
        );
    }
    let both = "notifications: {d: {kind: teams, url_env: A}}\ndestinations: {d: {base: 'https://h', post: /a}}";
    assert!(
        parse(both)
            .unwrap_err()
            .contains("also a route of notifications")
    );
}
