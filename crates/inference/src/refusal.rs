//! Errors and refusals, as the caller's own SDK reads them.

use gatehook_events::Verb;
use serde::Serialize;
use serde_json::{Value, json};

use crate::route::Wire;

/// The longest text of an error, in characters.
const MESSAGE_LIMIT: usize = 256;

/// Where a hook stood that refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the upstream was asked.
    PreInference,
    /// After it answered.
    PostInference,
}

/// The `hook` object of a refusal. Absent fields are not written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HookNote {
    /// `deny`, `ask`, `modify` or `unavailable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// For the person who waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message: Option<String>,
    /// For the program or model that asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_message: Option<String>,
    /// Identity of the exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Where the hook stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The hook's display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_name: Option<String>,
    /// What an approval is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The approval that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

macro_rules! kinds {
    ($( $(#[$doc:meta])+ $kind:ident = $status:literal, $openai:literal, $code:literal, $anthropic:literal, $permission:expr, $sentence:literal; )+) => {
        /// What went wrong. One row of the table says how each wire tells it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $( $(#[$doc])+ $kind, )+ }

        impl ErrorKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$( Self::$kind, )+];

            /// The HTTP status.
            pub fn status(self) -> u16 {
                match self { $( Self::$kind => $status, )+ }
            }

            /// `type` on OpenAI's wire.
            pub fn openai_type(self) -> &'static str {
                match self { $( Self::$kind => $openai, )+ }
            }

            /// `code` on OpenAI's wire, and the word for logs and metrics.
            pub fn code(self) -> &'static str {
                match self { $( Self::$kind => $code, )+ }
            }

            /// `type` on Anthropic's wire.
            pub fn anthropic_type(self) -> &'static str {
                match self { $( Self::$kind => $anthropic, )+ }
            }

            /// `hook.permission`, where a hook is the cause.
            pub fn permission(self) -> Option<&'static str> {
                match self { $( Self::$kind => $permission, )+ }
            }

            /// What is said where nobody gave a text.
            pub fn sentence(self) -> &'static str {
                match self { $( Self::$kind => $sentence, )+ }
            }
        }
    };
}

kinds! {
    /// A hook refused.
    Denied = 400, "hook_denied", "hook_deny", "invalid_request_error", Some("deny"), "Refused by a policy hook.";
    /// A person has to decide.
    ApprovalRequired = 403, "hook_approval_required", "hook_ask", "permission_error", Some("ask"), "A policy hook asks for approval.";
    /// A hook demanded a change that the route cannot hold.
    ModifyUnsupported = 502, "hook_failed", "hook_modify_unsupported", "api_error", Some("modify"), "A policy hook demanded a change that this route cannot hold.";
    /// A guard could not judge.
    HookUnavailable = 503, "hook_failed", "hook_unavailable", "overloaded_error", Some("unavailable"), "A policy hook could not be asked.";
    /// The body is no JSON, or two readers could take it for two requests.
    Malformed = 400, "invalid_request_error", "invalid_body", "invalid_request_error", None, "The request body cannot be read.";
    /// No key, or an unknown one.
    Unauthorized = 401, "authentication_error", "invalid_api_key", "authentication_error", None, "A valid key is required.";
    /// The path, host, origin, model or key is not allowed.
    Forbidden = 403, "permission_error", "forbidden", "permission_error", None, "This is not allowed here.";
    /// No such path or approval.
    NotFound = 404, "not_found_error", "not_found", "not_found_error", None, "There is no such path.";
    /// The path knows another method.
    MethodNotAllowed = 405, "invalid_request_error", "method_not_allowed", "invalid_request_error", None, "This path has another method.";
    /// The body came too slowly.
    RequestTimeout = 408, "invalid_request_error", "request_timeout", "invalid_request_error", None, "The request came too slowly.";
    /// The body is over the limit.
    TooLarge = 413, "invalid_request_error", "request_too_large", "request_too_large", None, "The request body is too large.";
    /// The body is no JSON by its type, or compressed in an unknown way.
    UnsupportedMedia = 415, "invalid_request_error", "unsupported_media_type", "invalid_request_error", None, "The body's type or encoding is not supported.";
    /// Too many requests, or too many pending approvals.
    RateLimited = 429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error", None, "Too many requests.";
    /// A defect here.
    Internal = 500, "api_error", "internal_error", "api_error", None, "Internal error.";
    /// The upstream cannot be reached, broke off or answered unreadably.
    BadUpstream = 502, "api_error", "upstream_failed", "api_error", None, "The inference server failed to answer.";
    /// No room for more bodies, or the circuit is open.
    Overloaded = 503, "api_error", "overloaded", "overloaded_error", None, "The gateway is overloaded.";
    /// The upstream was too slow.
    UpstreamTimeout = 504, "api_error", "upstream_timeout", "timeout_error", None, "The inference server did not answer in time.";
    /// The request came back to its own gateway.
    Loop = 508, "api_error", "loop_detected", "api_error", None, "The request came back to this gateway.";
}

impl ErrorKind {
    /// The one for a verdict that does not go on; none for `allow` and `modify`.
    pub fn of(verb: Verb) -> Option<Self> {
        match verb {
            Verb::Allow | Verb::Modify => None,
            Verb::Ask => Some(Self::ApprovalRequired),
            Verb::ModifyUnsupported => Some(Self::ModifyUnsupported),
            Verb::Unavailable => Some(Self::HookUnavailable),
            Verb::Deny => Some(Self::Denied),
        }
    }
}

/// The body of an error of `kind`, in the shape of `wire`.
///
/// `message` is what is said (the kind's own sentence where it is empty); where a hook is the cause, `hook` goes along
/// as a field that the wire's SDKs leave readable, its `permission` filled from the kind where it is absent. Texts are
/// cut to 256 characters and freed of control characters.
pub fn refusal_body(wire: Wire, kind: ErrorKind, message: &str, request_id: &str, hook: Option<&HookNote>) -> Vec<u8> {
    let message = match plain(message) {
        text if text.trim().is_empty() => kind.sentence().to_owned(),
        text => text,
    };
    let hook = hook.map(|note| note.told(kind));
    let mut body = match wire {
        Wire::Ollama => json!({ "error": message }),
        Wire::OpenAi => {
            let mut error =
                json!({ "message": message, "type": kind.openai_type(), "param": null, "code": kind.code() });
            insert(&mut error, "hook", hook.clone());
            json!({ "error": error })
        }
        Wire::Anthropic => json!({
            "type": "error",
            "error": { "type": kind.anthropic_type(), "message": message },
            "request_id": request_id,
        }),
    };
    insert(&mut body, "hook", hook);
    body.to_string().into_bytes()
}

impl HookNote {
    /// The object as it goes out.
    pub(crate) fn told(&self, kind: ErrorKind) -> Value {
        let mut note = self.clone();
        note.permission = note.permission.or_else(|| kind.permission().map(str::to_owned));
        note.user_message = note.user_message.as_deref().map(plain);
        note.agent_message = note.agent_message.as_deref().map(plain);
        serde_json::to_value(note).unwrap_or_default()
    }
}

fn insert(object: &mut Value, key: &str, value: Option<Value>) {
    if let (Value::Object(map), Some(value)) = (object, value) {
        map.insert(key.to_owned(), value);
    }
}

/// At most 256 characters, without control characters; line ends and tabs become spaces.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c })
        .filter(|c| !c.is_control())
        .take(MESSAGE_LIMIT)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> HookNote {
        HookNote {
            user_message: Some("No secrets.\u{7}".into()),
            phase: Some(Phase::PreInference),
            ..HookNote::default()
        }
    }

    fn body(wire: Wire, kind: ErrorKind, message: &str, hook: Option<&HookNote>) -> Value {
        serde_json::from_slice(&refusal_body(wire, kind, message, "r1", hook)).unwrap()
    }

    #[test]
    fn each_wire_has_its_own_envelope() {
        let hook = json!({"permission": "deny", "user_message": "No secrets.", "phase": "pre_inference"});
        assert_eq!(
            body(Wire::Ollama, ErrorKind::Denied, "No secrets.", Some(&note())),
            json!({"error": "No secrets.", "hook": hook})
        );
        assert_eq!(
            body(Wire::OpenAi, ErrorKind::Denied, "No secrets.", Some(&note())),
            json!({"error": {"message": "No secrets.", "type": "hook_denied", "param": null, "code": "hook_deny", "hook": hook}, "hook": hook})
        );
        assert_eq!(
            body(Wire::Anthropic, ErrorKind::Denied, "No secrets.", Some(&note())),
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "No secrets."}, "request_id": "r1", "hook": hook})
        );
    }

    #[test]
    fn an_error_without_a_hook_has_no_hook_object() {
        for wire in [Wire::Ollama, Wire::OpenAi, Wire::Anthropic] {
            let body = body(wire, ErrorKind::TooLarge, "", None);
            assert!(body.get("hook").is_none(), "{body}");
            assert!(body.to_string().contains("The request body is too large."), "{body}");
        }
    }

    #[test]
    fn a_text_is_cut_at_characters_never_inside_of_one() {
        let long = "é🙂".repeat(300);
        let body = body(Wire::Ollama, ErrorKind::Denied, &long, None);
        assert_eq!(body["error"].as_str().unwrap().chars().count(), MESSAGE_LIMIT);
    }

    #[test]
    fn every_refusing_verb_has_its_kind() {
        assert_eq!(ErrorKind::of(Verb::Allow), None);
        assert_eq!(ErrorKind::of(Verb::Modify), None);
        for (verb, status) in
            [(Verb::Ask, 403), (Verb::Deny, 400), (Verb::Unavailable, 503), (Verb::ModifyUnsupported, 502)]
        {
            let kind = ErrorKind::of(verb).unwrap();
            assert_eq!(kind.status(), status, "{verb:?}");
            assert!(kind.permission().is_some(), "{verb:?}");
        }
    }
}
