//! Tests of `mcp_servers`.

use super::env;
use crate::config::*;

#[test]
fn an_empty_list_of_tools_differs_from_no_list() {
    let server = |keys: &str| {
        let text = format!("mcp_servers: {{a: {{command: c{keys}}}}}");
        let server = Config::parse("f", &text, &env).unwrap().mcp_servers["a"].clone();
        (server.tools, server.deny, server.trust_hints)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(server(""), (None, vec![], true));
    assert_eq!(server(", tools: []"), (Some(vec![]), vec![], true));
    let expected = (Some(names(&["get", "top"])), names(&["exec"]), false);
    assert_eq!(server(", tools: [get, top], deny: [exec], trust_hints: false"), expected);
}

#[test]
fn the_longest_time_of_a_call_is_at_least_the_time_without_progress() {
    let limits = |keys: &str| {
        let text = format!("mcp_servers: {{a: {{command: c{keys}}}}}");
        let config = Config::parse("f", &text, &env).map_err(|faults| faults.to_string())?;
        let server = config.mcp_servers["a"].clone();
        let seconds = |time: std::time::Duration| time.as_secs();
        Ok((seconds(server.tool_timeout), seconds(server.max_tool_timeout), server.max_concurrent_calls))
    };
    assert_eq!(limits(""), Ok((60, 600, 32)));
    assert_eq!(limits(", tool_timeout: 20m"), Ok((1_200, 1_200, 32)));
    assert_eq!(limits(", tool_timeout: 5s, max_tool_timeout: 5s, max_concurrent_calls: 1"), Ok((5, 5, 1)));
    let faults: Result<_, String> = limits(", max_tool_timeout: 59s, max_concurrent_calls: 0");
    let faults = faults.unwrap_err();
    let words = "less than tool_timeout; accepted: the same or more, because progress extends a call";
    assert!(faults.contains(words) && faults.contains("mcp_servers.a.max_concurrent_calls"), "{faults}");
}
