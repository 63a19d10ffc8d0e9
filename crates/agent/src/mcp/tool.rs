//! A server's tool as one of the agent's: what it is called, what it says of itself, and what its results come to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use super::server::{CallError, Server};
use super::{Naming, ServerDefinition};
use crate::approval;
use crate::tools::{Calling, Tool, ToolErrorKind, ToolOutput, ToolSpec, Working};

/// Bytes of a result's text.
const MAX_RESULT: usize = 1 << 20;
/// Bytes of a description.
const MAX_DESCRIPTION: usize = 8 << 10;
/// Bytes of a schema.
const MAX_SCHEMA: usize = 64 << 10;
/// Characters of a name.
const MAX_NAME: usize = 128;

/// A tool, as its server describes it.
pub(super) struct Remote {
    /// As its server calls it.
    pub(super) name: String,
    pub(super) spec: ToolSpec,
}

/// What an agent may call, at its server.
pub(super) struct RemoteTool {
    pub(super) server: Arc<Server>,
    pub(super) remote: Arc<Remote>,
    /// What the model is told besides.
    pub(super) spec: ToolSpec,
}

/// A tool, unless it cannot be one: why, in a sentence fragment.
pub(super) fn remote(server: &ServerDefinition, tool: rmcp::model::Tool) -> Result<Remote, String> {
    let name = tool.name.to_string();
    let shown: String = name.escape_debug().take(40).collect();
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(format!("`{shown}` is no name of a tool"));
    }
    let schema = Value::Object((*tool.input_schema).clone());
    if schema.to_string().len() > MAX_SCHEMA {
        return Err(format!("the arguments of `{shown}` take more than {MAX_SCHEMA} bytes to describe"));
    }
    let hints = tool.annotations.unwrap_or_default();
    let title = tool.title.or(hints.title);
    let mut metadata = BTreeMap::from([("server".to_owned(), server.name.to_string())]);
    metadata.extend(title.map(|title| ("title".to_owned(), cut(&title, 200).to_owned())));
    let read_only = hints.read_only_hint == Some(true);
    let tool_spec = approval::Tool {
        name: match &server.naming {
            Naming::Server => format!("mcp__{}__{name}", server.name).into(),
            Naming::Prefixed(prefix) => format!("{prefix}_{name}").into(),
            Naming::Bare => name.as_str().into(),
        },
        category: Some("mcp".into()),
        read_only,
        // Without a word it is neither: what it does is not known.
        destructive: !read_only && hints.destructive_hint == Some(true),
        metadata,
    };
    let description = tool.description.as_deref().unwrap_or_default();
    let spec = ToolSpec {
        tool: tool_spec,
        description: cut(description, MAX_DESCRIPTION).into(),
        parameters: Arc::new(if schema.get("type").is_some() { schema } else { json!({ "type": "object" }) }),
    };
    Ok(Remote { name, spec })
}

impl Tool for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        Box::pin(async move {
            match self.server.call(&self.remote.name, call.arguments, call.cancel).await {
                Ok(result) => output(&result),
                Err(error) => {
                    let (kind, text) = match error {
                        CallError::Gone(why) => (ToolErrorKind::Network, why),
                        CallError::Timeout(after) => (
                            ToolErrorKind::Timeout,
                            format!("the tool did not answer within {} s", after.as_secs_f32()),
                        ),
                        CallError::Cancelled => (ToolErrorKind::Cancelled, "cancelled".to_owned()),
                        CallError::Failed(why) => (ToolErrorKind::Other, cut(&why, MAX_RESULT).to_owned()),
                    };
                    ToolOutput::error(kind, text)
                }
            }
        })
    }
}

/// A result as text: what is no text is noted.
pub(super) fn output(result: &CallToolResult) -> ToolOutput {
    let mut text = String::new();
    let mut is_cut = false;
    let mut add = |part: &str| {
        let room = MAX_RESULT.saturating_sub(text.len());
        let part = if text.is_empty() { part.to_owned() } else { format!("\n{part}") };
        let kept = cut(&part, room);
        is_cut |= kept.len() < part.len();
        text.push_str(kept);
    };
    for block in &result.content {
        match block {
            ContentBlock::Text(block) => add(&block.text),
            ContentBlock::Image(block) => add(&noted("image", &block.mime_type, &block.data)),
            ContentBlock::Audio(block) => add(&noted("audio", &block.mime_type, &block.data)),
            ContentBlock::ResourceLink(link) => add(&format!("[resource {}: {}]", link.name, link.uri)),
            ContentBlock::Resource(resource) => match &resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => add(&format!("[resource {uri}]\n{text}")),
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
                    add(&format!("[resource {uri}]\n{}", noted("data", kind, blob)));
                }
                _ => add("[a resource of a kind that is not known]"),
            },
            _ => add("[content of a kind that is not known]"),
        }
    }
    // A server that has structured content should give it as text too; where it does not, this is all there is.
    if let Some(structured) = result.structured_content.as_ref().filter(|_| result.content.is_empty()) {
        add(&structured.to_string());
    }
    if is_cut {
        let _ = write!(text, "\n[cut off after {MAX_RESULT} bytes]");
    }
    let error = (result.is_error == Some(true)).then_some(ToolErrorKind::Other);
    ToolOutput { text, error, ..ToolOutput::default() }
}

/// What stands for data that a model is not shown.
fn noted(what: &str, kind: &str, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|&byte| byte == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    format!("[{what}: {}, {bytes} bytes, not shown]", cut(kind, 100))
}

/// The beginning of a text, in whole characters.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
