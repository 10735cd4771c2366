//! The examples with tools, against the lists of the servers that they are for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tarsy_config::{Config, example_of};

/// A tool of a recorded list.
#[derive(Deserialize)]
struct Tool {
    name: String,
    read_only: bool,
}

const LISTS: [(&str, &str); 3] = [
    (
        "grafana",
        include_str!("../../fixtures/mcp/lists/grafana.json"),
    ),
    (
        "postgres",
        include_str!("../../fixtures/mcp/lists/postgres.json"),
    ),
    (
        "prometheus",
        include_str!("../../fixtures/mcp/lists/prometheus.json"),
    ),
];

#[test]
fn each_example_offers_only_tools_that_read_and_that_its_server_has() {
    for (case, list) in LISTS {
        let config = Config::parse(case, example_of(case).unwrap().text, &|_| None).unwrap();
        let server = &config.mcp_servers[case];
        let tools: Vec<Tool> = serde_json::from_str(list).unwrap();
        let tools: BTreeMap<&str, bool> = tools
            .iter()
            .map(|tool| (tool.name.as_str(), tool.read_only))
            .collect();
        let offered = server.tools.as_deref().unwrap();
        assert_eq!(server.allow, Vec::<String>::new(), "{case}");
        for name in offered {
            let declared = tools
                .get(name.as_str())
                .unwrap_or_else(|| panic!("{case} has no tool {name}"));
            let added = server.read_only.contains(name);
            assert!(
                *declared != added,
                "{case}: {name}: read_only has to name what the server does not declare, and no more"
            );
        }
        let known = |names: &[String]| names.iter().all(|name| tools.contains_key(name.as_str()));
        assert!(known(&server.deny) && known(&server.read_only), "{case}");
        let both: BTreeSet<&String> = server
            .deny
            .iter()
            .filter(|name| offered.contains(name))
            .collect();
        assert_eq!(both, BTreeSet::new(), "{case}");
    }
}
