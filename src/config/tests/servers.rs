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
