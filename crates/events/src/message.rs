//! The chat inside a payload: OpenAI chat messages, whatever the caller spoke
//! (<https://platform.openai.com/docs/api-reference/chat>).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One message of a conversation. Fields that are not named here are kept in `extra` and written back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: Arc<str>,
    /// Its text. A message of several parts is shown as several messages, one for each part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Arc<str>>,
    /// The model's reasoning, where the protocol shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Arc<str>>,
    /// The calls the model asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Which call a `tool` message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Arc<str>>,
    /// The tool or speaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Fingerprints of images; their data stays where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Image>>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message of one text.
    pub fn new(role: &str, content: &str) -> Self {
        Self { role: role.into(), content: Some(content.into()), ..Self::default() }
    }

    /// The message as a line of JSON, with its line break. Of images the fingerprints are in it, the data is not.
    ///
    /// ```
    /// use gatehook_events::Message;
    ///
    /// assert_eq!(Message::new("user", "hi").to_line()?, "{\"role\":\"user\",\"content\":\"hi\"}\n");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn to_line(&self) -> serde_json::Result<String> {
        let has_data = self.images.iter().flatten().any(|image| image.data.is_some());
        let mut line = if has_data {
            let mut bare = self.clone();
            bare.images.iter_mut().flatten().for_each(|image| image.data = None);
            serde_json::to_string(&bare)?
        } else {
            serde_json::to_string(self)?
        };
        line.push('\n');
        Ok(line)
    }
}

/// An image of a message, as hooks see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// SHA-256 of the decoded bytes (of the address itself, for one given by URL), lower-case hex.
    pub sha256: String,
    /// As in `image/png`; empty where the protocol does not say.
    pub media_type: String,
    /// Size of the decoded bytes.
    pub bytes: u64,
    /// The data as it came (base64 or URL), only for hooks with `include_images: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Arc<str>>,
}

/// A call of a tool that the model asks for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's identity; some protocols have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// `function` in practice.
    #[serde(rename = "type", default = "function")]
    pub kind: Arc<str>,
    /// What is called.
    pub function: FunctionCall,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn function() -> Arc<str> {
    "function".into()
}

/// Name and arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments as JSON text.
    #[serde(default)]
    pub arguments: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_the_fields_it_does_not_know() {
        let text = r#"{"role":"user","content":"hi","cache_control":{"type":"ephemeral"}}"#;
        let message: Message = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
    }
}
