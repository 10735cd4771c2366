//! Reads the list of tools of a server, page by page, within limits of pages, size and time. A malformed tool or
//! cursor does not affect the other tools.
//!
//! The requests do not pass through the cache of `rmcp`, which keeps 512 pages of any size, and returns an old list
//! when a server fails.

use std::collections::BTreeSet;
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use tokio::time::Instant;

use super::declared::Declared;
use crate::client::calls::pending::{NoAnswer, PendingCalls, RequestTimeouts};

/// The pages of a list that are read.
const MAX_PAGES: usize = 100;
/// The tools of a server; how many of them a model gets is a separate limit.
const MAX_TOOLS: usize = 2_000;
/// All declarations of a server, as JSON.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The reason why there is no list.
#[derive(Debug)]
pub(in crate::client) enum ListFault {
    /// The server refused the request, or its list exceeds a limit.
    Refused(String),
    /// No complete list in time.
    Timeout,
}

/// A page of the list.
struct Page {
    tools: Vec<Declared>,
    next_cursor: Option<String>,
}

impl Page {
    /// Reads an answer that is not as the protocol has it, tool by tool.
    fn read(answer: &Value) -> Option<Self> {
        let tools = answer.get("tools")?.as_array()?;
        let next_cursor = answer.get("nextCursor").and_then(Value::as_str);
        Some(Self {
            tools: tools.iter().map(Declared::parse).collect(),
            next_cursor: next_cursor.map(str::to_owned),
        })
    }
}

/// All tools of the server, requested within `timeout`. A cursor that was followed before ends the list.
pub(in crate::client) async fn read(
    peer: &Peer<RoleClient>,
    pending: &PendingCalls,
    timeout: Duration,
) -> Result<Vec<Declared>, ListFault> {
    let timeouts = RequestTimeouts {
        idle: timeout,
        total: timeout,
        end: Instant::now() + timeout,
    };
    let mut tools = Vec::new();
    let mut cursor = None;
    let mut bytes = 0_usize;
    let mut followed = BTreeSet::new();
    for _ in 0..MAX_PAGES {
        let request = ListToolsRequest {
            params: Some(PaginatedRequestParams::default().with_cursor(cursor)),
            ..ListToolsRequest::default()
        };
        let page = match pending
            .send(peer, ClientRequest::ListToolsRequest(request), timeouts)
            .await
        {
            Ok(ServerResult::ListToolsResult(page)) => Page {
                tools: page.tools.into_iter().map(Declared::from).collect(),
                next_cursor: page.next_cursor,
            },
            Ok(ServerResult::CustomResult(other)) => Page::read(&other.0).ok_or_else(no_list)?,
            Ok(_) => return Err(no_list()),
            Err(NoAnswer::Failed(error)) => return Err(ListFault::Refused(error.to_string())),
            Err(NoAnswer::Timeout(_)) => return Err(ListFault::Timeout),
        };
        bytes = page
            .tools
            .iter()
            .map(|declared| size(&declared.tool))
            .fold(bytes, usize::saturating_add);
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS {
            return Err(ListFault::Refused(format!(
                "the list has more than {MAX_TOOLS} tools"
            )));
        }
        if bytes > MAX_BYTES {
            return Err(ListFault::Refused(format!(
                "the list has more than {MAX_BYTES} bytes"
            )));
        }
        let Some(next) = page
            .next_cursor
            .filter(|next| followed.insert(next.clone()))
        else {
            return Ok(tools);
        };
        cursor = Some(next);
    }
    Err(ListFault::Refused(format!(
        "the list has more than {MAX_PAGES} pages"
    )))
}

fn no_list() -> ListFault {
    ListFault::Refused("the answer is no list of tools".to_owned())
}

fn size(tool: &Tool) -> usize {
    serde_json::to_vec(tool).map_or(0, |json| json.len())
}
