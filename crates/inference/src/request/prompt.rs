//! Texts without a conversation: `/api/generate`, `/v1/completions` and the embeddings.
//! (<https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-completion>,
//! <https://platform.openai.com/docs/api-reference/completions/create>)

use super::chat::text_part;
use super::fields::Top;
use crate::error::{ReadError, Unheld};
use crate::json::{Document, Kind};
use crate::view::{Chat, Draft, Form, Place};

/// What only an edit of the one text reaches is never built anew.
fn build(_: &[&gatehook_events::Message], _: crate::view::Pictures<'_>) -> Result<Vec<String>, Unheld> {
    Err(Unheld::new("this route holds no more than one system and one user message"))
}

const SYSTEM: Form = Form {
    takes: |role| role == "system",
    lone: "system",
    wrap: None,
    text_part,
    build,
    fixed: false,
    required: false,
};
const PROMPT: Form =
    Form { takes: |role| role == "user", lone: "user", wrap: None, text_part, build, fixed: false, required: true };
const PROMPTS: Form =
    Form { takes: |role| role == "user", lone: "user", wrap: None, text_part, build, fixed: true, required: true };

/// Native generate: `system` and `prompt`, the images with the prompt.
pub(super) fn generate(top: &Top<'_>) -> Result<Chat, ReadError> {
    let document = top.document;
    let mut chat = Chat::default();
    let (system, prompt, images) = (top.get("system"), top.get("prompt"), top.get("images"));
    chat.region("system", system, &SYSTEM);
    if let Some(at) = system {
        let mut draft = Draft::new("system", &[]);
        draft.content(document, at)?;
        chat.push(draft);
    }
    chat.region("prompt", prompt, &PROMPT);
    if prompt.is_some() || images.is_some() {
        let mut draft = Draft::new("user", &[]);
        draft.slot.content = Place::Under(Document::ROOT, "prompt");
        if let Some(at) = prompt {
            draft.content(document, at)?;
        }
        if let Some(at) = images {
            draft.images(document, Document::ROOT, at)?;
        }
        chat.push(draft);
    }
    Ok(chat)
}

/// A text or a list of texts under `key`, each a user message.
pub(super) fn texts(top: &Top<'_>, key: &'static str) -> Result<Chat, ReadError> {
    let document = top.document;
    let mut chat = Chat::default();
    let found = top.get(key);
    let list = found.filter(|at| document.kind(*at) == Kind::Array);
    chat.region(key, found, if list.is_some() { &PROMPTS } else { &PROMPT });
    let texts = match (list, found) {
        (Some(list), _) => document.elements(list).map(|text| (vec![(list, text)], text)).collect(),
        (None, Some(text)) => vec![(Vec::new(), text)],
        (None, None) => Vec::new(),
    };
    for (path, at) in texts {
        if matches!(document.kind(at), Kind::Number | Kind::Array) {
            let what = "text in token numbers cannot be read".to_owned();
            return Err(ReadError::Opaque { place: document.place(at), what });
        }
        if document.kind(at) != Kind::String {
            return Err(document.shape(at, "a string is expected"));
        }
        let mut draft = Draft::new("user", &path);
        draft.content(document, at)?;
        chat.push(draft);
    }
    Ok(chat)
}
