//! Measures calls through one MCP server over HTTP: tarsy's client and `rmcp` alone, in turn, in the same run.
//!
//! `./dev bench` runs it. The server is part of this program and answers at once over loopback, so the figures are
//! those of the clients.
#![allow(
    clippy::too_many_lines,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program of developers fails with its place, and prints its figures"
)]

mod server;
mod alone;

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RunningService;
use serde_json::json;
use tarsy_core::execution::entry::ToolCall;
use tarsy_core::plan::ToolSpec;
use tarsy_engine::ports::{ToolReply, ToolRequest, Tools as _};
use tarsy_mask::Mask;
use tarsy_mcp::{HttpConfig, ServerConfig, Servers, Transport};
use tokio_util::sync::CancellationToken;

use self::server::{TEXT, TOOL};

const CALLS: u32 = 1_000;
const IN_FLIGHT: usize = 16;
/// Each client is measured so often; the median counts.
const ROUNDS: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("the first provider of this process");
    let url = server::start().await;
    let servers = tarsy_client(&url);
    let alone = alone::connect(&url).await;
    let spec = servers
        .list(&["bench".to_owned()])
        .await
        .tools
        .pop()
        .expect("the server lists its tool");
    let (mut tarsy, mut rmcp) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        tarsy.push(measured(async |number| by_tarsy(&servers, &spec, number).await).await);
        rmcp.push(measured(async |number| by_rmcp(&alone, number).await).await);
    }
    let (tarsy, rmcp) = (median(tarsy), median(rmcp));
    println!("{CALLS} calls over HTTP, {IN_FLIGHT} in flight, median of {ROUNDS} rounds");
    println!("  tarsy       {:>8.0} calls/s", rate(tarsy));
    println!("  rmcp alone  {:>8.0} calls/s", rate(rmcp));
    println!(
        "  tarsy needs {:.2} times as long",
        tarsy.as_secs_f64() / rmcp.as_secs_f64()
    );
    servers.close().await;
}

/// With masking, the check of arguments, time-outs and everything else that a session has.
fn tarsy_client(url: &str) -> Servers {
    let http = HttpConfig {
        url: url.to_owned(),
        ..HttpConfig::default()
    };
    let config = ServerConfig::new("bench", Transport::Http(http));
    Servers::start(vec![config], Mask::default(), &CancellationToken::new())
        .expect("the name is valid")
}

async fn by_tarsy(servers: &Servers, spec: &ToolSpec, number: u32) {
    let call = ToolCall {
        id: number.to_string(),
        tool: spec.name.clone(),
        arguments: json!({"number": number}).to_string(),
        read_only: true,
    };
    let reply = servers
        .call(ToolRequest::new(&call, TIMEOUT).with_spec(Some(spec)))
        .await;
    assert_eq!(
        reply,
        ToolReply::Answered {
            content: TEXT.to_owned(),
            is_error: false
        }
    );
}

async fn by_rmcp(client: &RunningService<RoleClient, ()>, number: u32) {
    let arguments = json!({"number": number})
        .as_object()
        .cloned()
        .expect("an object");
    let params = CallToolRequestParams::new(TOOL).with_arguments(arguments);
    let CallToolResponse::Complete(result) =
        client.call_tool_once(params).await.expect("an answer")
    else {
        panic!("no result")
    };
    assert_eq!(result.content[0].as_text().expect("a text").text, TEXT);
}

/// The time for all calls.
async fn measured(call: impl AsyncFn(u32)) -> Duration {
    let began = Instant::now();
    stream::iter(0..CALLS)
        .map(&mut |number| call(number))
        .buffer_unordered(IN_FLIGHT)
        .collect::<Vec<()>>()
        .await;
    began.elapsed()
}

fn median(mut rounds: Vec<Duration>) -> Duration {
    rounds.sort_unstable();
    rounds[rounds.len() / 2]
}

fn rate(time: Duration) -> f64 {
    f64::from(CALLS) / time.as_secs_f64()
}
