//! Reads the list of tools of a server, page by page. A list without an end costs no memory and no time.
//!
//! The requests do not pass through the cache of `rmcp`, which keeps 512 pages of any size, and returns an old list
//! when a server fails.

use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::{Peer, RoleClient};
use tokio::time::Instant;

use super::calls::pending::{NoAnswer, PendingCalls, RequestTimeouts};

/// The pages of a list that are read.
const MAX_PAGES: usize = 100;
/// The tools of a server; how many of them a model gets is a limit of its own.
const MAX_TOOLS: usize = 2_000;
/// All declarations of a server, as JSON.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Why there is no list.
#[derive(Debug)]
pub(super) enum ListFault {
    /// The server refused the request, or its list exceeds a limit.
    Refused(String),
    /// No complete list in time.
    Timeout,
}

/// All tools of the server, requested within `timeout`.
pub(super) async fn read(
    peer: &Peer<RoleClient>,
    pending: &PendingCalls,
    timeout: Duration,
) -> Result<Vec<Tool>, ListFault> {
    let timeouts = RequestTimeouts { idle: timeout, total: timeout, end: Instant::now() + timeout };
    let (mut tools, mut cursor, mut bytes) = (Vec::new(), None, 0_usize);
    for _ in 0..MAX_PAGES {
        let request = ListToolsRequest {
            params: Some(PaginatedRequestParams::default().with_cursor(cursor)),
            ..ListToolsRequest::default()
        };
        let page = match pending.send(peer, ClientRequest::ListToolsRequest(request), timeouts).await {
            Ok(ServerResult::ListToolsResult(page)) => page,
            Ok(_) => return Err(ListFault::Refused("the answer is no list of tools".to_owned())),
            Err(NoAnswer::Failed(error)) => return Err(ListFault::Refused(error.to_string())),
            Err(NoAnswer::Timeout(_)) => return Err(ListFault::Timeout),
        };
        bytes = page.tools.iter().map(size).fold(bytes, usize::saturating_add);
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS {
            return Err(ListFault::Refused(format!("the list has more than {MAX_TOOLS} tools")));
        }
        if bytes > MAX_BYTES {
            return Err(ListFault::Refused(format!("the list has more than {MAX_BYTES} bytes")));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(ListFault::Refused(format!("the list has more than {MAX_PAGES} pages")))
}

fn size(tool: &Tool) -> usize {
    serde_json::to_vec(tool).map_or(0, |json| json.len())
}
