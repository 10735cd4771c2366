//! Reads bodies of bounded size. An answer that is too large becomes an error of its call, so that the call fails at
//! once, with the reason.

use reqwest::Response;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};

use super::HttpFault;

/// The code of an error of ours in the place of an answer.
const TOO_LARGE: ErrorCode = ErrorCode(-32_000);

/// A body that was read.
#[derive(Debug)]
pub(super) enum ReadBody {
    Whole(Vec<u8>),
    TooLarge,
}

/// Reads the body up to `max_bytes`.
pub(super) async fn read(mut response: Response, max_bytes: usize) -> Result<ReadBody, HttpFault> {
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if response
        .content_length()
        .is_some_and(|length| length > limit)
    {
        return Ok(ReadBody::TooLarge);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(HttpFault::from_error)? {
        if body.len().saturating_add(chunk.len()) > max_bytes {
            return Ok(ReadBody::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(ReadBody::Whole(body))
}

/// The error that takes the place of an answer of more than `max_bytes`.
pub(super) fn too_large(request: Option<RequestId>, max_bytes: usize) -> ServerJsonRpcMessage {
    let message =
        format!("the answer is too large: at most {max_bytes} bytes are read. Ask for less.");
    ServerJsonRpcMessage::error(ErrorData::new(TOO_LARGE, message, None), request)
}

/// The id under which the answer to a message is expected; `None` for a notification.
pub(super) fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        ClientJsonRpcMessage::Notification(_)
        | ClientJsonRpcMessage::Response(_)
        | ClientJsonRpcMessage::Error(_) => None,
    }
}

/// A server on Windows may begin with a byte order mark.
pub(super) fn without_bom(body: &[u8]) -> &[u8] {
    body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body)
}
