//! The MCP face: the same verbs over standard input and output; the only file that knows the crates `rmcp` and `tokio`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};

use super::{Envelope, ToolVerdict, Verb, ask};

/// How long a call may wait before it gets a ticket; clients give up on tools after a minute or two.
const WAIT: Duration = Duration::from_secs(45);

/// Why the server ended.
#[derive(Debug, thiserror::Error)]
#[error("the MCP server ended: {0}")]
pub struct McpError(String);

#[derive(Debug, Clone)]
struct Face {
    socket: PathBuf,
}

/// Serves the tools behind a socket until the client leaves.
///
/// # Errors
/// When the protocol breaks.
pub fn serve(socket: &Path) -> Result<(), McpError> {
    let wrong = |error: &dyn std::fmt::Display| McpError(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| wrong(&error))?;
    let face = Face {
        socket: socket.to_owned(),
    };
    runtime.block_on(async {
        let service = face
            .serve(rmcp::transport::stdio())
            .await
            .map_err(|error| wrong(&error))?;
        service.waiting().await.map_err(|error| wrong(&error))?;
        Ok(())
    })
}

/// The arguments of a verb, as a JSON schema.
fn schema(verb: Verb) -> Map<String, Value> {
    let mut properties = Map::new();
    if verb == Verb::Know {
        properties.insert(
            "query".into(),
            json!({ "type": "string", "description": "a few words" }),
        );
    }
    if verb.is_long() {
        let text = "the ticket of a pending answer";
        properties.insert("ticket".into(), json!({ "type": "string", "description": text }));
    }
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("additionalProperties".into(), false.into());
    schema
}

fn result(envelope: &Envelope) -> CallToolResult {
    let text = serde_json::to_string(envelope).unwrap_or_default();
    let content = vec![ContentBlock::text(text)];
    match envelope.verdict {
        ToolVerdict::Refused | ToolVerdict::Unavailable => CallToolResult::error(content),
        ToolVerdict::Passed | ToolVerdict::Failed | ToolVerdict::Info | ToolVerdict::Pending => {
            CallToolResult::success(content)
        }
    }
}

impl ServerHandler for Face {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("ksmith", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Verb::ALL
            .iter()
            .map(|verb| Tool::new(verb.name(), verb.help(), Arc::new(schema(*verb))))
            .collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let socket = self.socket.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            ask(&socket, &request.name, &arguments, WAIT)
        });
        match asked.await {
            Ok(Ok(envelope)) => Ok(result(&envelope).into()),
            Ok(Err(error)) => Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }
}
