//! The evidence server: an MCP server over stdio whose tools answer from the recording of a drill.
//!
//! It runs as a child process of a worker, like any other MCP server. It exits when its standard input ends, so a
//! killed worker leaves no process behind.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::PathBuf;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;

use super::Error;
use tarsy_drill::evidence::{Evidence, EvidenceTool, Recorded};
use tarsy_drill::gate::{Gates, Passage};

/// The exit code after a gate with the result `fail`, which simulates a crash during a call.
const FAILED_AT_GATE: i32 = 70;

/// Serves `evidence` on standard input and output until the input ends.
///
/// Each call is first appended to `calls_file` as one line `{"tool","arguments"}`. The call then waits at the gates
/// `tool-<name>-start` and `tool-<name>-end`, with the arguments as detail. A gate with the result `fail` ends the
/// process.
///
/// # Errors
/// When the client violates the protocol.
pub async fn serve(
    evidence: Evidence,
    gates: Gates,
    calls_file: Option<PathBuf>,
) -> Result<(), Error> {
    let end_of_input = CancellationToken::new();
    let (input, output) = stdio_pipes();
    let ended = end_of_input.clone();
    // The loop of rmcp would wait for the calls in flight before it reports the end of the input.
    let input = InspectReader::new(input, move |read| {
        if read.is_empty() {
            ended.cancel();
        }
    });
    let handler = EvidenceServer {
        evidence,
        gates,
        calls_file,
    };
    let serving = async {
        let service = handler
            .serve((input, output))
            .await
            .map_err(|error| Error::Serve(error.to_string()))?;
        service
            .waiting()
            .await
            .map_err(|error| Error::Serve(error.to_string()))?;
        Ok(())
    };
    tokio::select! {
        // Calls in flight are not awaited, because no client would read their answers.
        () = end_of_input.cancelled() => Ok(()),
        result = serving => result,
    }
}

struct EvidenceServer {
    evidence: Evidence,
    gates: Gates,
    calls_file: Option<PathBuf>,
}

impl ServerHandler for EvidenceServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(
            Implementation::new("tarsy-evidence", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            self.evidence.tools.iter().map(declaration).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        tokio::select! {
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
            result = self.call(&request.name, arguments, context.meta.get_traceparent()) => Ok(result?.into()),
        }
    }
}

impl EvidenceServer {
    async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        trace: Option<&str>,
    ) -> Result<CallToolResult, ErrorData> {
        let line = match trace {
            Some(trace) => json!({"tool": name, "arguments": arguments, "traceparent": trace}),
            None => json!({"tool": name, "arguments": arguments}),
        };
        self.record(&line)
            .await
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let Some(tool) = self.evidence.tool(name) else {
            return Err(ErrorData::invalid_params(
                format!("there is no tool {name:?}"),
                None,
            ));
        };
        let detail = Value::Object(arguments.clone()).to_string();
        self.gate(name, "start", &detail).await;
        let result = answer(tool, &arguments).await;
        self.gate(name, "end", &detail).await;
        Ok(result)
    }

    async fn gate(&self, tool: &str, point: &str, detail: &str) {
        if self
            .gates
            .wait(&format!("tool-{tool}-{point}"), detail)
            .await
            == Passage::Fail
        {
            std::process::exit(FAILED_AT_GATE);
        }
    }

    /// Writes the line at once, because several servers may share the file.
    async fn record(&self, line: &Value) -> std::io::Result<()> {
        let Some(path) = &self.calls_file else {
            return Ok(());
        };
        let line = format!("{line}\n");
        let path = path.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            file.write_all(line.as_bytes())
        });
        written.await?
    }
}

fn declaration(tool: &EvidenceTool) -> Tool {
    Tool::new(
        Cow::Owned(tool.name.clone()),
        Cow::Owned(tool.description.clone()),
        std::sync::Arc::new(tool.schema.clone()),
    )
    .with_annotations(ToolAnnotations::new().read_only(tool.read_only))
}

async fn answer(tool: &EvidenceTool, arguments: &Map<String, Value>) -> CallToolResult {
    let Some(recorded) = tool.answer(arguments) else {
        let asked = Value::Object(arguments.clone());
        tracing::warn!(tool = tool.name, arguments = %asked, recorded = tool.recorded(), "call not recorded");
        return CallToolResult::error(vec![ContentBlock::text(tool.miss(arguments))]);
    };
    let Recorded {
        delay,
        is_error,
        hang,
        ..
    } = recorded;
    if *hang {
        std::future::pending::<()>().await;
    }
    if !delay.is_zero() {
        tokio::time::sleep(*delay).await;
    }
    let content = vec![ContentBlock::text(recorded.text_for(arguments))];
    if *is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    }
}
