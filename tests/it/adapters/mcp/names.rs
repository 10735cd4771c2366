//! Tools with names of any form, and more tools than a model can be given.

use tarsy_core::plan::ToolSpec;
use tarsy_engine::plan::agent_tools::agents_with_tools;

use super::*;

/// Names that a server may choose, and no provider accepts.
const NAMES: [&str; 8] = [
    "files/read.v2",
    "files_read_v2",
    "a__b",
    "_hidden",
    "grafana.query:range",
    "pods liste",
    "\u{83b7}\u{53d6}",
    "look\u{200b}",
];

fn server_of(names: &[String]) -> (TempDir, ServerConfig) {
    let folder = tempfile::tempdir().unwrap();
    let tool = json!({"description": "Looks.", "read_only": true, "schema": {"type": "object"}, "answers": [{"file": "text"}]});
    let tools: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| (name.clone(), tool.clone()))
        .collect();
    std::fs::write(
        folder.path().join("evidence.yaml"),
        json!({"tools": tools}).to_string(),
    )
    .unwrap();
    std::fs::write(folder.path().join("text"), "found").unwrap();
    let mut config = evidence_server("odd", folder.path().to_str().unwrap());
    let calls = folder.path().join("calls").to_str().unwrap().to_owned();
    program(&mut config)
        .env
        .insert("TARSY_TOOL_CALLS_FILE".to_owned(), calls);
    (folder, config)
}

#[tokio::test]
async fn a_tool_of_any_name_is_offered_to_every_provider_and_called_by_its_own_name() {
    let mut names: Vec<String> = NAMES.map(str::to_owned).into();
    names.extend(["x".repeat(200), "y.".repeat(100)]);
    let (folder, config) = server_of(&names);
    let servers = || {
        Servers::start(
            vec![config.clone()],
            Mask::default(),
            &CancellationToken::new(),
        )
        .unwrap()
    };
    let first = servers();
    let Listing { tools, unavailable } = within(first.list(&["odd".to_owned()])).await;
    assert_eq!((tools.len(), unavailable), (names.len(), vec![]));
    for tool in &tools {
        let wire = tool.name.replace('.', "__");
        let is_accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(
            wire.len() <= 64 && wire.chars().all(is_accepted) && !wire[5..].contains("__"),
            "{wire}"
        );
        assert_eq!(wire.replace("__", "."), tool.name);
    }
    first.close().await;
    // Another worker has only the plan, in which each tool has its name.
    let plan = serde_json::to_string(&tools).unwrap();
    let second = servers();
    let mut called = Vec::new();
    for spec in serde_json::from_str::<Vec<ToolSpec>>(&plan).unwrap() {
        let call = call(&spec.name, "{}");
        let reply =
            within(second.call(ToolRequest::new(&call, TEST_TIMEOUT).with_spec(Some(&spec)))).await;
        assert_eq!(content(reply), ("found".to_owned(), false));
        called.push(spec.tool().to_owned());
    }
    second.close().await;
    let recorded = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    let recorded: Vec<Value> = recorded
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["tool"].clone())
        .collect();
    assert_eq!(recorded, called);
    called.sort();
    names.sort();
    assert_eq!(called, names);
}

#[tokio::test]
async fn three_hundred_tools_are_listed_and_an_agent_gets_as_many_as_fit() {
    let names: Vec<String> = (0..300).map(|number| format!("tool_{number:03}")).collect();
    let (_folder, config) = server_of(&names);
    let servers = Servers::start(vec![config], Mask::default(), &CancellationToken::new()).unwrap();
    let listing = within(servers.list(&["odd".to_owned()])).await;
    assert_eq!(listing.tools.len(), 300);
    let config = "mcp_servers: {odd: {command: x}}\nagents:\n  all: {}\n  some: {tools: ['odd.tool_29*']}\n\
                  agent_chains: {c: {stages: [{agents: [{name: all}, {name: some}]}]}}";
    let config = tarsy_config::Config::parse("f", config, &|_| None).unwrap();
    let shares = agents_with_tools(&config, &listing.tools);
    let counts: Vec<_> = shares
        .iter()
        .map(|share| {
            (
                share.agent.as_str(),
                share.tools.tools.len(),
                share.tools.left_out.len(),
                share.not_named(),
            )
        })
        .collect();
    assert_eq!(counts, [("all", 124, 176, 0), ("some", 10, 0, 290)]);
    servers.close().await;
}
