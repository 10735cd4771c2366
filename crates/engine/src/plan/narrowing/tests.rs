use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::plan::planner::plan;
use crate::plan::route::{choose, servers_of};
use crate::plan::skills::Material;
use crate::ports::Unavailable;
use tarsy_core::routing::Facts;
use tarsy_core::testing::{alert, changing_tool, read_only_tool};

const CONFIG: &str = "
mcp_servers: {k8s: {command: k, allow: [restart]}, pg: {command: p}, logs: {command: l}}
agents:
  sre: {mcp_servers: [k8s, pg], tools: ['k8s.*', 'pg.top']}
  writer: {iteration_strategy: ''}
agent_chains: {web: {stages: [{agents: [{name: sre}, {name: writer}]}]}}
routes:
- {name: pay, match: ['team=pay'], tools: ['k8s.*', 'logs.*']}
- {name: rest, match: []}
";

fn config() -> Config {
    Config::parse("f", CONFIG, &|_| None).unwrap()
}

fn listing() -> Listing {
    let tools = ["k8s.get", "k8s.list", "pg.top", "pg.query", "logs.search"].map(read_only_tool);
    let changing = ["k8s.restart", "k8s.delete"].map(changing_tool);
    Listing {
        tools: tools.into_iter().chain(changing).collect(),
        unavailable: Vec::new(),
    }
}

/// The names of the tools of all agents, after the check of the header; tarsy's own one is left out.
fn tools(config: &Config, team: &str, header: Option<&str>) -> Result<BTreeSet<String>, PlanError> {
    let route = config.routes.first(&Facts::from([("team", team)]));
    let narrowing = Narrowing::new(config, route, header)?;
    let chain = choose(config, "", None)?;
    let servers = narrowing.servers(servers_of(config, &chain));
    let mut listing = listing();
    listing
        .tools
        .retain(|tool| servers.iter().any(|server| server == tool.server()));
    narrowing.check(config, &chain, &listing)?;
    let plan = plan(
        config,
        &chain,
        &alert(""),
        &narrowing.listing(listing),
        &Material::default(),
    )?;
    let all = plan
        .stages
        .iter()
        .flat_map(|stage| &stage.agents)
        .flat_map(|agent| &agent.tools);
    Ok(all
        .map(|tool| tool.name.clone())
        .filter(|name| !name.starts_with("tarsy."))
        .collect())
}

#[test]
fn a_route_and_a_header_only_remove_tools() {
    let config = config();
    let unknown = |pattern: &str| {
        Err(PlanError::UnknownTools {
            pattern: pattern.to_owned(),
        })
    };
    for (team, header, expected) in [
        (
            "",
            None,
            Ok("k8s.get k8s.list k8s.restart pg.top".to_owned()),
        ),
        (
            "",
            Some(" , "),
            Ok("k8s.get k8s.list k8s.restart pg.top".to_owned()),
        ),
        ("", Some("k8s.get, pg.*"), Ok("k8s.get pg.top".to_owned())),
        ("pay", None, Ok("k8s.get k8s.list k8s.restart".to_owned())),
        ("pay", Some("*.*st"), Ok("k8s.list".to_owned())),
        ("", Some("k8s.get, pods"), unknown("pods")),
        ("", Some("kubernetes.*"), unknown("kubernetes.*")),
        ("", Some("k8s.get, k8s.gte"), unknown("k8s.gte")),
        ("", Some("k8s.delete"), unknown("k8s.delete")),
        ("", Some("pg.query"), unknown("pg.query")),
        ("", Some("logs.search"), unknown("logs.search")),
        ("pay", Some("pg.top"), unknown("pg.top")),
    ] {
        let found = tools(&config, team, header).map(|tools| Vec::from_iter(tools).join(" "));
        assert_eq!(found, expected, "{team} {header:?}");
    }
}

#[test]
fn an_unnamed_server_is_not_listed_and_an_unavailable_one_is_believed() {
    let config = config();
    let chain = choose(&config, "", None).unwrap();
    let narrowing = Narrowing::new(&config, None, Some("pg.query")).unwrap();
    assert_eq!(narrowing.servers(servers_of(&config, &chain)), ["pg"]);
    let unavailable = vec![Unavailable {
        server: "pg".to_owned(),
        why: "down".to_owned(),
    }];
    assert_eq!(
        narrowing.check(
            &config,
            &chain,
            &Listing {
                tools: Vec::new(),
                unavailable
            }
        ),
        Ok(())
    );
}

fn any_pattern() -> impl Strategy<Value = String> {
    let server = prop::sample::select(vec!["k8s", "pg", "logs", "*", "k*"]);
    let tool = prop::sample::select(vec![
        "*", "get", "*t", "top", "query", "restart", "delete", "l*",
    ]);
    (server, tool).prop_map(|(server, tool)| format!("{server}.{tool}"))
}

proptest! {
    #[test]
    fn narrowing_never_adds_a_tool(
        layer in prop::collection::vec(any_pattern(), 1..3),
        route in prop::collection::vec(any_pattern(), 1..4),
        header in prop::collection::vec(any_pattern(), 0..3),
    ) {
        let quoted = |patterns: &[String]| patterns.iter().map(|each| format!("'{each}'")).collect::<Vec<_>>().join(", ");
        let text = CONFIG
            .replace("'k8s.*', 'pg.top'", &quoted(&layer))
            .replace("'k8s.*', 'logs.*'", &quoted(&route));
        let config = Config::parse("f", &text, &|_| None).unwrap();
        let whole = tools(&config, "", None).unwrap();
        let by_route = tools(&config, "pay", None).unwrap();
        prop_assert!(by_route.is_subset(&whole));
        if let Ok(narrow) = tools(&config, "pay", Some(&header.join(","))) {
            prop_assert!(narrow.is_subset(&by_route), "{narrow:?} {by_route:?}");
            prop_assert!(header.is_empty() || !narrow.is_empty(), "{header:?}");
        }
    }
}
