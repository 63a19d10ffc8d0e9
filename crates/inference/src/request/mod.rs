//! A request: its bytes, what a hook sees of them, and the way back.

mod chat;
mod fields;
mod messages;
mod prompt;
mod responses;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use gatehook_events::{Input, Message};
use memchr::memmem;
use serde_json::Value;

use crate::error::{ReadError, Unheld};
use crate::fingerprint;
use crate::json::{At, Document, Edits};
use crate::rewrite;
use crate::route::{Path, Route, TextRoute};
use crate::view::{Chat, MAX_MESSAGES};

/// What a hook is shown of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestView {
    /// The model's name, where one is given.
    pub model: Option<Arc<str>>,
    /// The conversation as OpenAI chat messages, one for each content part.
    pub messages: Arc<[Message]>,
    /// The tools that the model may call, as chat completions write them.
    pub tools: Option<Arc<Value>>,
    /// Every field that is not shown elsewhere, by the caller's names; native `options` are its members.
    pub options: Option<Arc<Value>>,
    /// Whether the answer is to be a stream, the route's default applied.
    pub stream: bool,
    /// The demanded output format.
    pub format: Option<Arc<Value>>,
    /// Text after the completion.
    pub suffix: Option<Arc<str>>,
    /// A prompt template that the caller brings.
    pub template: Option<Arc<str>>,
    /// Context tokens of an earlier generate.
    pub context: Option<Arc<Value>>,
    /// The approval in native `options.hook_approval`; it is also among the options.
    pub approval: Option<Arc<str>>,
}

impl RequestView {
    /// Puts it into the payload of a `pre_inference` or `post_inference`; the model as `model_id`.
    pub fn fill(&self, input: &mut Input) {
        input.model_id.clone_from(&self.model);
        input.messages = Some(self.messages.clone());
        input.tools.clone_from(&self.tools);
        input.options.clone_from(&self.options);
        input.stream = Some(self.stream);
        input.format.clone_from(&self.format);
        input.suffix.clone_from(&self.suffix);
        input.template.clone_from(&self.template);
        input.context.clone_from(&self.context);
        input.approval.clone_from(&self.approval);
    }
}

/// Whether a body, which has not been read, may hold an approval for [`Request::unchanged`] to take out.
pub fn may_hold_approval(body: &[u8]) -> bool {
    // The name itself, or the escape of a letter of it.
    ["hook_approval", "\\u00"].iter().any(|sign| memmem::find(body, sign.as_bytes()).is_some())
}

/// A request body that was read: the bytes as they came, and the view of them.
#[derive(Debug, Clone)]
pub struct Request {
    path: Path,
    document: Document,
    view: RequestView,
    chat: Chat,
    /// The options, and the approval in them.
    approval: Option<(At, At)>,
}

impl Request {
    /// Reads the body of a request to `path` (a [`Route`] or a [`TextRoute`]). Costs about one pass over the bytes and
    /// one copy of the texts.
    pub fn read(path: impl Into<Path>, body: Bytes) -> Result<Self, ReadError> {
        let path = path.into();
        let document = Document::read(body)?;
        let mut view = RequestView::default();
        let top = fields::read(path, &document, &mut view)?;
        let approval = top.approval;
        let mut chat = match path {
            Path::Route(Route::Chat) => chat::read(&top, &chat::NATIVE)?,
            Path::Route(Route::ChatCompletions) => chat::read(&top, &chat::COMPLETIONS)?,
            Path::Route(Route::Generate) => prompt::generate(&top)?,
            Path::Route(Route::Completions) => prompt::texts(&top, "prompt")?,
            Path::Route(Route::Responses) => responses::read(&top)?,
            Path::Route(Route::Messages) | Path::Text(TextRoute::CountTokens) => messages::read(&top)?,
            Path::Text(TextRoute::Embeddings) => prompt::texts(&top, "prompt")?,
            Path::Text(TextRoute::Embed | TextRoute::OpenAiEmbeddings) => prompt::texts(&top, "input")?,
        };
        if chat.messages.len() > MAX_MESSAGES {
            return Err(document.shape(Document::ROOT, format!("it holds more than {MAX_MESSAGES} messages")));
        }
        // Shared from here on, by the view and the way back.
        view.messages = std::mem::take(&mut chat.messages).into();
        Ok(Self { path, document, view, chat, approval })
    }

    /// Where it was sent to.
    pub fn path(&self) -> Path {
        self.path
    }

    /// The bytes as they came.
    pub fn body(&self) -> &Bytes {
        self.document.bytes()
    }

    /// What a hook sees.
    pub fn view(&self) -> &RequestView {
        &self.view
    }

    /// The messages with each image's `data` filled in, for hooks with `include_images: true`.
    pub fn messages_with_images(&self) -> Arc<[Message]> {
        if self.view.messages.iter().all(|message| message.images.is_none()) {
            return self.view.messages.clone();
        }
        let mut messages = self.view.messages.to_vec();
        for (message, slot) in messages.iter_mut().zip(&self.chat.slots) {
            for (image, at) in message.images.iter_mut().flatten().zip(slot.images.data()) {
                image.data = self.document.text(*at).map(Arc::from);
            }
        }
        messages.into()
    }

    /// The bytes for the upstream: as they came (the very same [`Bytes`]), without native `options.hook_approval`.
    pub fn unchanged(&self) -> Bytes {
        self.edits().apply(&self.document)
    }

    /// The bytes for the upstream with `messages` in place of the shown ones, without `options.hook_approval`.
    ///
    /// As many messages of the same roles are written back by position, each text into the slot it came from. Other
    /// lists keep the bytes of the messages that they repeat; the others are built anew. A field that a message does
    /// not name stays.
    pub fn rewrite(&self, messages: &[Message]) -> Result<Bytes, Unheld> {
        let mut edits = self.edits();
        rewrite::rewrite(&self.document, &self.chat, &self.view.messages, messages, &mut edits)?;
        Ok(edits.apply(&self.document))
    }

    /// What an approval is bound to: SHA-256 (lower-case hex) over route, `key` and the client's body in canonical
    /// form, without `options.hook_approval`.
    pub fn fingerprint(&self, key: &str) -> String {
        fingerprint::fingerprint(self.path.as_str(), key, &self.document, self.approval)
    }

    fn edits(&self) -> Edits {
        let mut edits = Edits::default();
        if let Some((options, approval)) = self.approval {
            edits.remove(options, approval);
        }
        edits
    }
}
