//! Which session an exchange belongs to.

use std::sync::Arc;

use gatehook_engine::events::Message;
use gatehook_inference::RequestView;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::call::Caller;

/// How much of a text goes into a fingerprint, in bytes: enough to tell conversations apart, at a cost that does not grow.
const SAMPLE: usize = 512;

/// The longest name of a session, in characters; longer ones are not taken.
const LONGEST: usize = 128;

/// The session of a request: the one that its header names, the one that Claude Code and Codex put into the body, or a
/// fingerprint of key, system prompt and first user message, which stay the same while a conversation grows.
pub fn session_of(caller: &Caller, view: &RequestView) -> Arc<str> {
    let named = caller.session.as_deref().filter(|name| is_name(name));
    named.or_else(|| in_body(view.options.as_deref()?)).map_or_else(|| fingerprint(caller, view), Into::into)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn in_body(options: &Value) -> Option<&str> {
    let at = |way: &[&str]| way.iter().try_fold(options, |value, key| value.get(key)).and_then(Value::as_str);
    // Claude Code: `user_…_account_…_session_UUID`.
    let session = at(&["metadata", "user_id"]).and_then(|user| user.rsplit_once("_session_")).map(|(_, id)| id);
    let fields: [&[&str]; 3] = [&["metadata", "session_id"], &["session_id"], &["prompt_cache_key"]];
    session.or_else(|| fields.into_iter().find_map(at)).filter(|name| is_name(name))
}

fn fingerprint(caller: &Caller, view: &RequestView) -> Arc<str> {
    let first = |roles: &[&str]| view.messages.iter().find(|message| roles.contains(&&*message.role));
    let text = |message: Option<&Message>| message.and_then(|message| message.content.clone()).unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [
        caller.key_name.as_deref().unwrap_or_default(),
        &*text(first(&["system", "developer"])),
        &*text(first(&["user"])),
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes().get(..SAMPLE).unwrap_or(part.as_bytes()));
    }
    let half = hash.finalize().iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    format!("{half:032x}").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(options: Value, texts: &[(&str, &str)]) -> RequestView {
        RequestView {
            options: Some(Arc::new(options)),
            messages: texts.iter().map(|(role, text)| Message::new(role, text)).collect(),
            ..RequestView::default()
        }
    }

    #[test]
    fn the_header_comes_first_then_what_the_body_names() {
        let view = view(json!({"metadata": {"user_id": "user_1_account_2_session_abc"}, "prompt_cache_key": "k"}), &[]);
        let named = Caller { session: Some("mine".into()), ..Caller::default() };
        assert_eq!(&*session_of(&named, &view), "mine");
        assert_eq!(&*session_of(&Caller::default(), &view), "abc");
    }

    #[test]
    fn codex_names_its_session_by_the_prompt_cache_key() {
        assert_eq!(&*session_of(&Caller::default(), &view(json!({"prompt_cache_key": "c-1"}), &[])), "c-1");
    }

    #[test]
    fn a_conversation_keeps_its_fingerprint_while_it_grows() {
        let session = |texts: &[(&str, &str)]| session_of(&Caller::default(), &view(json!({}), texts));
        let short = session(&[("system", "s"), ("user", "u")]);
        assert_eq!(short, session(&[("system", "s"), ("user", "u"), ("assistant", "a"), ("user", "v")]));
        assert_ne!(short, session(&[("system", "s"), ("user", "w")]));
        assert_ne!(short, session(&[("system", "su"), ("user", "")]));
    }

    #[test]
    fn a_name_with_odd_characters_or_without_end_is_not_taken() {
        for name in ["a b", "a\nb", "", &"x".repeat(LONGEST + 1)] {
            let caller = Caller { session: Some(name.into()), ..Caller::default() };
            assert_eq!(session_of(&caller, &view(json!({}), &[])).len(), 32, "{name}");
        }
    }
}
