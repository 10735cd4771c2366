//! Lists of tools.

use serde_json::{Value, json};
use tarsy_engine::ports::{Listing, Tools};
use tarsy_mask::Mask;
use tarsy_mcp::Servers;
use tokio_util::sync::CancellationToken;

use super::server::{FAKE, HostileServer, tool};
use crate::support::wait::eventually;

async fn listed(server: &HostileServer) -> Listing {
    let servers = Servers::start(
        vec![server.config("s")],
        Mask::default(),
        &CancellationToken::new(),
    )
    .unwrap();
    let mut listing = servers.list(&["s".to_owned()]).await;
    for _ in 0..12 {
        // On a busy machine a list of megabytes may take longer than an alert waits for it.
        let is_late = listing
            .unavailable
            .iter()
            .any(|server| server.why.ends_with("no list of tools within 10s"));
        if !is_late {
            break;
        }
        listing = servers.list(&["s".to_owned()]).await;
    }
    servers.close().await;
    listing
}

fn names(listing: &Listing) -> Vec<&str> {
    listing
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect()
}

fn with_schema(name: &str, schema: Value) -> Value {
    let mut tool = tool(name);
    tool["inputSchema"] = schema;
    tool
}

#[tokio::test]
async fn a_list_without_an_end_offers_nothing_and_is_refused() {
    let server = HostileServer::start(&["ok"]).await;
    server.list_without_end();
    let Listing { tools, unavailable } = listed(&server).await;
    assert_eq!(tools, []);
    assert!(
        unavailable[0]
            .why
            .ends_with("the list has more than 100 pages"),
        "{unavailable:?}"
    );
    assert_eq!(server.received("tools/list").len(), 100);

    let large: Vec<Value> = (0..8)
        .map(|n| {
            json!({"name": format!("t{n}"), "description": "x".repeat(1024 * 1024),
        "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}})
        })
        .collect();
    let server = HostileServer::listing(large).await;
    server.list_without_end();
    let why = listed(&server).await.unavailable[0].why.clone();
    assert!(
        why.ends_with("the list has more than 16777216 bytes"),
        "{why}"
    );
    assert_eq!(
        server.received("tools/list").len(),
        2,
        "the second page exceeds the limit"
    );

    let many: Vec<Value> = (0..2_001).map(|n| tool(&format!("t{n}"))).collect();
    let why = listed(&HostileServer::listing(many).await)
        .await
        .unavailable[0]
        .why
        .clone();
    assert!(why.ends_with("the list has more than 2000 tools"), "{why}");
}

#[tokio::test]
async fn a_cursor_that_was_followed_ends_the_list_and_keeps_it() {
    for cursor in ["", "page-2"] {
        let server = HostileServer::start(&["ok", "other"]).await;
        server.repeat_cursor(cursor);
        let listing = listed(&server).await;
        assert_eq!(
            (names(&listing), listing.unavailable.len()),
            (vec!["s.ok", "s.other"], 0),
            "{cursor:?}"
        );
        assert_eq!(server.received("tools/list").len(), 2, "{cursor:?}");
    }
}

#[tokio::test]
async fn an_odd_tool_costs_no_other() {
    let odd = [
        json!({"name": "odd", "annotations": {"readOnlyHint": true}}),
        json!({"name": "odd", "inputSchema": null, "annotations": {"readOnlyHint": true}}),
        json!({"name": "odd", "inputSchema": "none"}),
        json!({"name": "odd", "inputSchema": {}, "annotations": {"readOnlyHint": "true"}}),
        json!({"name": "odd", "inputSchema": {}, "icons": ["a.png"], "_meta": []}),
        json!({"inputSchema": {}}),
        json!({"name": {"a": 1}}),
        json!(null),
        json!([[], "a", 7]),
    ];
    for odd in odd {
        let listing = listed(&HostileServer::listing(vec![odd.clone(), tool("ok")]).await).await;
        assert_eq!(listing.unavailable, [], "{odd}");
        assert!(names(&listing).contains(&"s.ok"), "{odd}: {listing:?}");
    }
}

#[tokio::test]
async fn schemas_of_a_megabyte_and_broken_tools_are_withheld_and_the_others_offered() {
    let megabyte = json!({"type": "object", "description": "x ".repeat(512 * 1024)});
    let deep = (0..60).fold(
        json!({"type": "string"}),
        |inner, _| json!({"properties": {"a": inner}}),
    );
    let server = HostileServer::listing(vec![
        tool("ok"),
        with_schema("megabyte", megabyte),
        with_schema("deep", deep),
        tool(""),
        tool(FAKE),
    ])
    .await;
    let listing = listed(&server).await;
    assert_eq!(listing.unavailable, []);
    let names = names(&listing);
    assert!(
        names.contains(&"s.ok") && names.contains(&"s.deep") && !names.contains(&"s.megabyte"),
        "{names:?}"
    );
    let is_plain = |name: &&str| name.len() <= 64 && name.chars().all(|c| c.is_ascii_graphic());
    assert!(names.iter().all(is_plain), "{names:?}");

    // A line of more than 16 MiB: there is no list.
    let schema = |n| {
        with_schema(
            &format!("t{n}"),
            json!({"type": "object", "description": "x".repeat(1024 * 1024)}),
        )
    };
    let why = listed(&HostileServer::listing((0..20).map(schema).collect()).await)
        .await
        .unavailable[0]
        .why
        .clone();
    assert!(why.contains("the answer is too large: 2"), "{why}");
}

#[tokio::test]
async fn names_of_200_characters_are_offered_in_a_form_that_providers_accept_each_once() {
    let long: Vec<Value> = (0..300)
        .map(|n| tool(&format!("{}{n:03}", "very_long.name/".repeat(14))))
        .collect();
    let server = HostileServer::listing(long).await;
    let listing = listed(&server).await;
    let mut names = names(&listing);
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 300);
}

#[tokio::test]
async fn a_changed_list_is_offered_to_later_sessions() {
    let server = HostileServer::start(&["ok", "old"]).await;
    let servers = Servers::start(
        vec![server.config("s")],
        Mask::default(),
        &CancellationToken::new(),
    )
    .unwrap();
    let offered = async || servers.list(&["s".to_owned()]).await;
    assert_eq!(names(&offered().await), ["s.ok", "s.old"]);
    server.change(vec![tool("new"), tool("ok")]).await;
    eventually("the new list is offered", async || {
        names(&offered().await) == ["s.new", "s.ok"]
    })
    .await;
    servers.close().await;
}
