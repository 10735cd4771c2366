//! Tests of the section `sources`: every fault with its line, and what a source is like.

use serde_json::json;

use crate::*;
use tarsy_core::alert::Severity;
use tarsy_core::intake::{Hints, Intake};
use tarsy_core::sources::Reader;

fn faults(sources: &str) -> String {
    let text = format!("sources:\n{sources}");
    Config::parse("tarsy.yaml", &text, &|_| None)
        .unwrap_err()
        .to_string()
}

fn read(sources: &str) -> Config {
    Config::parse("tarsy.yaml", &format!("sources:\n{sources}"), &|_| None).unwrap()
}

const SHOP: &str = "
  shop-watch:
    recognise: {has: [/check/id, /check/state]}
    capture: {from: /title, regex: '^\\[(?<level>[^\\]]+)\\] (?<name>.*)$'}
    type: /check/name | $name
    title: '{/check/name | $name}  {/host | /ip}'
    severity: {from: /prio | $level, map: {1: critical}, default: low}
    status: {from: /check/state, map: {up: resolved, ack*: acknowledged, note: ignored}}
    key: [/check/id, /host | /ip]
    at: /changed_at
    auth: {hmac_sha256: {header: X-Signature, prefix: 'v1=', secret_env: SHOP_SECRET}}
";

#[test]
fn a_source_of_ten_lines_reads_its_alerts() {
    let config = read(SHOP);
    let intake = Intake::new(config.sources.all());
    let of = |state: &str, at: u32| {
        let body = json!({"check": {"id": 7, "state": state}, "host": "web-1", "title": "[high] disk", "prio": 9,
               "changed_at": format!("2026-11-25T10:00:{at:02}Z")});
        intake
            .part(body.to_string().as_bytes(), &Hints::default())
            .unwrap()
            .alert
    };
    let alert = of("down", 1);
    assert_eq!(
        (alert.source.as_str(), alert.title.as_str()),
        ("shop-watch", "disk  web-1")
    );
    assert_eq!(
        (
            alert.alert_type.as_str(),
            alert.severity.as_str(),
            alert.status.as_str()
        ),
        ("disk", "high", "firing")
    );
    assert!(
        alert.fingerprint.starts_with("shop-watch@:sha256:"),
        "{}",
        alert.fingerprint
    );
    for (state, status) in [
        ("UP", "resolved"),
        ("acked", "acknowledged"),
        ("purple", "firing"),
    ] {
        let other = of(state, 2);
        assert_eq!(
            (other.status.as_str(), &other.fingerprint),
            (status, &alert.fingerprint),
            "{state}"
        );
    }
    assert_eq!(
        of("note", 3).ignored_because.as_deref(),
        Some("state is note")
    );
    let expected = SourceAuth::HmacSha256 {
        header: "X-Signature".to_owned(),
        prefix: "v1=".to_owned(),
        secrets: vec![SecretSource::Variable("SHOP_SECRET".to_owned())],
        time_header: None,
    };
    assert_eq!(config.sources.auth("shop-watch"), Some(&expected));
    assert_eq!(
        Config::parse("shown", &show(&config), &|_| None).unwrap(),
        config
    );
}

#[test]
fn a_source_is_like_another_but_for_its_own_keys() {
    let config = read(
        "  stage:\n    like: pagerduty\n    severity: {default: low}\n  pagerduty: {severity: {default: high}}\n",
    );
    let sources = config.sources.all();
    let of = |name: &str| match &sources.get(name).unwrap().reader {
        Reader::Declared(source) => source.clone(),
        Reader::Alertmanager(_) | Reader::Grafana(_) => panic!("{name} is declared"),
    };
    let builtin = builtin_sources()
        .iter()
        .find(|source| source.name == "pagerduty")
        .unwrap();
    let builtin = builtin.declared().unwrap();
    assert_eq!(
        (of("stage").recognise.len(), of("pagerduty").recognise.len()),
        (0, 1)
    );
    assert_eq!(
        (&of("stage").key, &of("pagerduty").key),
        (&builtin.key, &builtin.key)
    );
    assert_eq!(
        sources
            .iter()
            .filter(|source| source.name == "pagerduty")
            .count(),
        1
    );
    let config = read("  east: {like: alertmanager, auth: {path: {secret_file: /run/token}}}\n");
    assert_eq!(
        config.sources.all().get("east").unwrap().reader,
        Reader::Alertmanager(Vec::new())
    );
}

#[test]
fn every_fault_of_a_source_has_its_line() {
    insta::assert_snapshot!(faults("
  Shop: {}
  json: {}
  one:
    recognize: {has: [/a, /b]}
    like: pagerdut
    type: check/name
  two:
    recognise: {has: [/a], lacks: [/b]}
    type: /a | $nam
    title: '{/a'
    capture: {from: /title, regex: '(?<name>x'}
    severity: {from: /prio, map: {1: critcal}, default: worst}
    status: {from: /s, map: {up: resolvd}}
    key: ['@/id']
  three:
    each: '@/x'
    parse: [Message]
    capture: {from: /title, regex: '(?<name>x)'}
    type: /a | $nam
    test: {/a: []}
    ignore: {a: b}
    key: []
    labels: [{list: /tags}, {object: /labels, split: ':'}, /labels]
    links: {graph: ''}
    text: some
    runbook: '{/a} }'
    at: '/t~2'
  four:
    like: alertmanager
    type: /x
    auth: {hmac_sha256: {prefix: v1}}
  five:
    auth: {sns: {topics: ['arn:aws:sns:eu:1:x']}, path: {}}
  six:
    auth: {sns: {topics: ['arn:aws:sns:eu:1:x'], confirm: maybe}}
  seven:
    auth: beare
    recognise: {has: ['@/a', /b], equals: {/c: []}}
"), @r#"
    tarsy.yaml: 36 faults
      sources.Shop                               line 3    "Shop" as a name; accepted: a name of at most 40 lower-case letters, digits, - and _ that begins with a letter or digit
      sources.json                               line 4    "json" is reserved; accepted: another name than header, json, text, question, generic, alert
      sources.one.recognize                      line 6    unknown key; accepted: like, each, capture, parse, severity, status, recognise, ignore, type, title, test, key, labels, links, runbook, refs, at, text, auth, max_body (did you mean recognise?)
      sources.one.like                           line 7    "pagerdut" is not defined; defined: alertmanager, grafana, azure, azure-classic, cloudevents, cloudwatch, cloudwatch-eventbridge, cloudwatch-lambda, datadog, dynatrace, elastic, google-cloud, grafana-legacy, graylog, labels, monit, newrelic, newrelic-classic, opsgenie, pagerduty, pagerduty-v2, pingdom, robusta, sentry, sns, sns-control, splunk, uptime-kuma, zabbix (did you mean pagerduty?)
      sources.one.type                           line 8    "check/name"; a pointer begins with /, as in /alert/id
      sources.two.recognise                      line 10   1 of has and equals; accepted: at least 2 pointers, one of them the vendor's own
      sources.two.type                           line 11   $nam, and this source has no capture with a group (?<nam>…)
      sources.two.title                          line 12   "{/a"; "{" without its "}"; a plain brace is written {{ or }}
      sources.two.capture.regex                  line 13   "(?<name>x"; no regular expression: unclosed group
      sources.two.severity.map.1                 line 14   "critcal"; accepted: critical, high, normal, low (did you mean critical?)
      sources.two.severity.default               line 14   "worst"; accepted: critical, high, normal, low
      sources.two.status.map.up                  line 15   "resolvd"; accepted: firing, resolved, acknowledged, test, ignored (did you mean resolved?)
      sources.two.key[0]                         line 16   "@/id" leads into an element (@), and this source has no key each
      sources.three.each                         line 18   "@/x"; accepted: a pointer into the body, such as /alert/id
      sources.three.parse[0]                     line 19   "Message"; a pointer begins with /, as in /alert/id
      sources.three.type                         line 21   $nam is no group of capture; groups: name (did you mean $name?)
      sources.three.test./a                      line 22   a list; accepted: a text, number, true, false or null that it is, or the beginning of a text with * behind it; or a list of them
      sources.three.ignore.a                     line 23   "a"; a pointer begins with /, as in /alert/id
      sources.three.key                          line 24   a list; accepted: a list of parts, such as [/check/id, /host | /ip], or a list of such lists
      sources.three.labels[0]                    line 25   a mapping; accepted: {object: /labels}, {list: /tags, split: ':'} or {list: /dims, name: name, value: value}
      sources.three.labels[1]                    line 25   a mapping; accepted: {object: /labels}, {list: /tags, split: ':'} or {list: /dims, name: name, value: value}
      sources.three.labels[2]                    line 25   "/labels"; accepted: {object: /labels}, {list: /tags, split: ':'} or {list: /dims, name: name, value: value}
      sources.three.links.graph                  line 26   ""; an alternative is empty; accepted: /a | /b | $name
      sources.three.text                         line 27   "some"; accepted: all
      sources.three.runbook                      line 28   "{/a} }"; "}" without its "{"; a plain brace is written {{ or }}
      sources.three.at                           line 29   "/t~2"; "~" in a pointer is written ~0, and "/" in a key is written ~1
      sources.four.type                          line 32   unknown key; accepted: like, refs, auth, max_body
      sources.four.auth.hmac_sha256.header       line 33   missing; accepted: X-Signature
      sources.four.auth.hmac_sha256.secret_env   line 33   missing; accepted: secret_env with the name of a variable, or secret_file with a path
      sources.five.auth                          line 35   2 kinds of proof; accepted: one of bearer, basic, path, header, hmac_sha256, sns
      sources.six.auth.sns.confirm               line 37   "maybe"; accepted: true, false
      sources.six.auth.sns.topics[0]             line 37   "arn:aws:sns:eu:1:x"; accepted: the ARN of a topic, such as arn:aws:sns:eu-central-1:123456789012:alarms
      sources.seven.auth                         line 39   "beare"; accepted: bearer, basic (did you mean bearer?)
      sources.seven.recognise.has[0]             line 40   "@/a"; accepted: a pointer into the body, such as /alert/id
      sources.seven.recognise.equals./c          line 40   a list; accepted: a word or a list of words
      sources.seven.recognise                    line 40   1 of has and equals; accepted: at least 2 pointers, one of them the vendor's own
    "#);
}

#[test]
fn a_file_without_sources_has_the_builtin_ones() {
    let config = Config::load(None, &|_| None).unwrap();
    let all = config.sources.all();
    let names: Vec<&str> = all.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, BUILTIN_SOURCE_NAMES);
    assert!(names.iter().all(|name| source_name_fault(name).is_none()));
}

#[test]
fn the_words_of_a_declared_source_decide_which_elements_are_worst() {
    let yaml = "sources:\n  shop:\n    recognise: {has: [/shop, /events]}\n    each: /events\n    type: '@/name'\n    key: ['@/id']\n    \
                severity: {from: '@/level', map: {red: critical, blue: low}}\n";
    let config = Config::parse("tarsy.yaml", yaml, &|_| None).unwrap();
    let intake = Intake::new(config.sources.all());
    let events: Vec<_> = (0..1_000)
        .map(|id| {
            let level = if id == 700 { "red" } else { "blue" };
            json!({"id": id, "name": "Stock", "level": level, "x": "y".repeat(50)})
        })
        .collect();
    let body = json!({"shop": 1, "events": events}).to_string();
    let reduced = intake
        .reduced(body.as_bytes(), &Hints::default(), 8 * 1024)
        .unwrap()
        .unwrap();
    let read = intake
        .read(reduced.body.as_bytes(), &reduced.hints(Hints::default()))
        .unwrap();
    assert!(
        read.iter()
            .any(|part| part.alert.severity == Severity::Critical),
        "{read:?}"
    );
}
