use super::*;
use crate::{Config, hints, show};

const ROUTES: &str = r#"
mcp_servers: {k8s: {command: k}, pg: {command: p}}
agent_chains:
  web: {default: true, stages: [{agents: [{name: sre}]}]}
  payments: {stages: [{agents: [{name: sre}]}]}
routes:
- {name: watchdog, match: ['@type=~"Watchdog|InfoInhibitor"'], ignore: true, reason: it fires all the time}
- {name: payments, match: ['namespace=~"pay.*"', '@severity=~"high|critical"'], chain: payments, tools: ['k8s.*', 'pg.*']}
- {name: dev, match: ['cluster="dev"'], priority: low, cooldown: 6h}
- {name: rest, match: [], cooldown: 0s, max_per_hour: 20}
"#;

fn config(text: &str) -> Config {
    Config::parse("f", text, &|_| None).unwrap()
}

fn faults(routes: &str) -> String {
    let text = format!("mcp_servers: {{k8s: {{command: k}}}}\nroutes:\n{routes}");
    Config::parse("f", &text, &|_| None)
        .unwrap_err()
        .to_string()
}

#[test]
fn the_first_route_whose_matchers_all_hold_counts() {
    let routes = config(ROUTES).routes;
    for (facts, expected) in [
        (
            Facts::from([("@type", "Watchdog"), ("cluster", "dev")]),
            "watchdog",
        ),
        (
            Facts::from([
                ("namespace", "payments"),
                ("@severity", "high"),
                ("cluster", "dev"),
            ]),
            "payments",
        ),
        (
            Facts::from([
                ("namespace", "payments"),
                ("@severity", "low"),
                ("cluster", "dev"),
            ]),
            "dev",
        ),
        (
            Facts::from([("namespace", "payments"), ("@severity", "low")]),
            "rest",
        ),
    ] {
        assert_eq!(routes.first(&facts).unwrap().name, expected, "{facts:?}");
    }
    let ignored: Vec<_> = routes.iter().map(AlertRoute::ignored_because).collect();
    assert_eq!(
        ignored,
        [
            Some("route watchdog: it fires all the time".to_owned()),
            None,
            None,
            None
        ]
    );
}

#[test]
fn routes_are_shown_as_they_are_read() {
    let config = config(ROUTES);
    let shown = show(&config);
    assert_eq!(
        Config::parse("f", &shown, &|_| None).unwrap().routes,
        config.routes,
        "{shown}"
    );
}

#[test]
fn a_check_names_the_routes_that_an_earlier_one_covers() {
    let covered = |routes: &str| {
        let config = config(&format!("routes:\n{routes}"));
        let pairs = config.routes.covered().into_iter();
        let names: Vec<String> = pairs
            .map(|(route, by)| format!("{} by {}", route.name, by.name))
            .collect();
        let hinted = hints(&config)
            .iter()
            .filter(|hint| hint.starts_with("routes."))
            .count();
        assert_eq!(hinted, names.len());
        names
    };
    let pay = "- {name: a, match: ['team=\"pay\"', 'env!=dev']}\n";
    assert_eq!(
        covered(&format!(
            "{pay}- {{name: b, match: ['env!=dev', 'x=y', 'team=pay']}}"
        )),
        ["b by a"]
    );
    assert_eq!(
        covered(&format!("{pay}- {{name: b, match: ['team=pay']}}")),
        [""; 0]
    );
    assert_eq!(
        covered(&format!(
            "{pay}- {{name: b, match: ['team=pay', 'env=prod']}}"
        )),
        ["b by a"]
    );
    assert_eq!(
        covered("- {name: a, match: []}\n- {name: b, match: []}\n- {name: c, match: [x=y]}"),
        ["b by a", "c by a"]
    );
    assert_eq!(
        covered(
            "- {name: a, match: ['x=~\"p.*\"']}\n- {name: b, match: [x=pq]}\n- {name: c, match: [x=q]}"
        ),
        ["b by a"]
    );
}

#[test]
fn every_fault_of_a_route_is_at_its_line() {
    let found = faults(
        "- {name: a b, match: ['team=\"x'], chain: nope}
- {match: [], tools: [prom.query], agents: [pg], required_skills: ['pg-*']}
- {name: c, match: [], ignore: true, cooldown: 1h}
- {name: c, match: [], reason: r, priority: urgent}
- {name: d}
- {name: e, match: [], max_per_hour: 0}
- {name: f, match: [], ignore: true, max_per_hour: 3}
- {name: g, match: [], ignore: true, required_skills: [pg]}",
    );
    let expected = "f: 15 faults
  routes[0].name                 line 3    \"a b\"; accepted: a name of at most 40 letters, digits, - and _
  routes[0].match[0]             line 3    \"team=\\\"x\": a quote that is not closed, or not escaped as \\\"
  routes[0].chain                line 3    \"nope\" is not defined; defined: default
  routes[1].name                 line 4    missing; accepted: a name
  routes[1].tools[0]             line 4    \"prom.query\": there is no MCP server \"prom\"; defined: k8s
  routes[1].required_skills[0]   line 4    \"pg-*\"; accepted: the name of a skill: 1 to 64 of a-z, 0-9 and -
  routes[1].agents               line 4    unknown key; accepted: name, match, tools, required_skills, priority, chain, cooldown, max_per_hour, ignore, reason
  routes[2]                      line 5    cooldown has no effect beside ignore: true
  routes[3].priority             line 6    \"urgent\"; accepted: critical, high, normal, low
  routes[3].reason               line 6    a reason without ignore: true
  routes[3]                      line 6    a second route \"c\"
  routes[4].match                line 7    missing; accepted: a list of matchers, such as ['team=\"storage\"']
  routes[5].max_per_hour         line 8    0; accepted: a whole number (1 to 10000)
  routes[6]                      line 9    max_per_hour has no effect beside ignore: true
  routes[7]                      line 10   required_skills has no effect beside ignore: true";
    assert_eq!(found, expected);
}
