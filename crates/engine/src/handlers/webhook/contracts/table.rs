use gatehook_events::{Event, FailureKind, Output};
use serde_json::{Map, Value};

use super::{Asked, agentgateway, anthropic_inference, lakera, litellm, llm_guard, nemo, openai_moderation, portkey};
use crate::config::{Field, Shape};
use crate::definition::Contract;
use crate::handler::HandlerError;

pub(super) const PROMPT: &[Event] = &[Event::PreInference, Event::BeforeLlmCall, Event::UserPromptSubmit];
pub(super) const ANSWER: &[Event] = &[Event::PostInference, Event::AfterLlmCall];
pub(super) const TOOL_CALL: &[Event] =
    &[Event::ToolInputTransform, Event::ToolGuard, Event::PreToolUse, Event::PreToolUsePreempt];
pub(super) const TOOL_RESULT: &[Event] = &[Event::PostToolUse];

/// Bytes of a reply.
const REPLY_LIMIT: usize = 4 << 20;

/// A contract: one row for each.
#[derive(Clone, Copy)]
pub struct Terms {
    /// The contract.
    pub contract: Contract,
    /// The events it has a form for, in groups; none is every event.
    pub events: &'static [&'static [Event]],
    /// Where requests go if the URL has no path: before the model, and after it.
    pub paths: [&'static str; 2],
    /// What requests may say besides the event.
    pub parameters: &'static [Field],
    /// What is sent, for people.
    pub request: &'static str,
    /// What a reply means, for people.
    pub reply: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// What the client says it is, where the contract says so.
    pub user_agent: Option<&'static str>,
    /// Only 200 is a verdict; otherwise every status from 200 to 299 is.
    pub only_ok: bool,
    /// Bytes of a reply.
    pub reply_limit: usize,
    pub(super) form: Form,
}

/// How a contract is spoken.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Native,
    Ollama,
    Mapped,
    Vendor {
        question: fn(&Asked<'_>) -> Option<Value>,
        answer: fn(&Asked<'_>, &Map<String, Value>) -> Result<Output, HandlerError>,
    },
}

impl Terms {
    const fn new(contract: Contract, events: &'static [&'static [Event]], form: Form) -> Self {
        Self {
            contract,
            events,
            paths: ["", ""],
            parameters: &[],
            request: "",
            reply: "",
            source: "",
            user_agent: None,
            only_ok: false,
            reply_limit: REPLY_LIMIT,
            form,
        }
    }

    const fn vendor(
        contract: Contract,
        events: &'static [&'static [Event]],
        question: fn(&Asked<'_>) -> Option<Value>,
        answer: fn(&Asked<'_>, &Map<String, Value>) -> Result<Output, HandlerError>,
    ) -> Self {
        Self::new(contract, events, Form::Vendor { question, answer })
    }

    /// Whether it has a form for this event.
    pub fn knows(&self, event: Event) -> bool {
        self.events.is_empty() || self.events.iter().any(|group| group.contains(&event))
    }

    /// Whether an event is after the model's call.
    pub(crate) fn is_after(event: Event) -> bool {
        ANSWER.contains(&event)
    }

    /// Whether a reply of this status may hold a verdict.
    pub(super) fn check(&self, status: u16) -> Result<(), HandlerError> {
        let is_good = if self.only_ok { status == 200 } else { (200..300).contains(&status) };
        match (is_good, status) {
            (true, _) => Ok(()),
            (_, 300..400) => Err(HandlerError::new(FailureKind::Redirected, format!("it redirects ({status})"))),
            _ => Err(HandlerError::new(FailureKind::BadStatus, format!("it answered {status}"))),
        }
    }
}

/// The row of a contract.
pub fn terms(contract: Contract) -> &'static Terms {
    let [native, others @ ..] = &CONTRACTS;
    others.iter().find(|terms| terms.contract == contract).unwrap_or(native)
}

/// All contracts.
pub static CONTRACTS: [Terms; 11] = [
    Terms {
        request: "the event as [protocol.md](protocol.md) has it",
        reply: "what a command hook would print; empty is no opinion",
        source: "protocol.md",
        ..Terms::new(Contract::Native, &[], Form::Native)
    },
    Terms {
        request: "`{schema_version, event, request_id, route, model, messages, tools, options, output_text, …}`",
        reply: "`permission` `allow`, `deny`, `ask`, `modify`; none or an unknown one denies. See \
                [ollama-webhooks.md](ollama-webhooks.md)",
        source: "https://github.com/ollama/ollama/pull/15630",
        user_agent: Some("ollama-hooks/1"),
        ..Terms::new(Contract::Ollama, &[&[Event::PreInference, Event::PostInference]], Form::Ollama)
    },
    Terms {
        paths: ["/request", "/response"],
        request: "`{body: {messages: [{role, content}]}}`; after the model `{body: {choices: [{message: …}]}}`, one \
                  message for each text",
        reply: "`action.body` text: deny with it; `action.body` messages or choices: rewrite, position by position; \
                neither `body` nor `status_code`: allow",
        source: "https://github.com/agentgateway/agentgateway/blob/main/crates/agentgateway/src/llm/policy/webhook.rs",
        ..Terms::vendor(Contract::AgentGateway, &[PROMPT, ANSWER], agentgateway::question, agentgateway::answer)
    },
    Terms {
        paths: ["/beta/litellm_basic_guardrail_api"; 2],
        parameters: &[Field::new(
            "additional_provider_specific_params",
            Shape::Any,
            "What the guardrail wants told besides.",
        )],
        request: "`{input_type: request or response, texts, tools, tool_calls, structured_messages, images, model, \
                  request_data, …}`; of a tool call the strings of its arguments, of a result its strings",
        reply: "`action` `NONE`: allow; `BLOCKED`: deny with `blocked_reason`; `GUARDRAIL_INTERVENED`: rewrite by \
                `texts`, position by position; `stream_holdback_chars` is held back",
        source: "https://docs.litellm.ai/docs/adding_provider/generic_guardrail_api",
        ..Terms::vendor(
            Contract::LiteLlm,
            &[PROMPT, ANSWER, TOOL_CALL, TOOL_RESULT],
            litellm::question,
            litellm::answer,
        )
    },
    Terms {
        parameters: &[
            Field::new("provider", Shape::Text, "The provider that is named.").default("the event's, else openai"),
            Field::new("metadata", Shape::Any, "Metadata of the request."),
        ],
        request: "`{request: {json, text}, response: {json, text}, provider, requestType, metadata, eventType}`; \
                  `json` as chat completions has it",
        reply: "`verdict` true: allow; false: deny; `transformedData`: rewrite by the messages, or by the choice's \
                message, and nothing else of `json`",
        source: "https://portkey.ai/docs/integrations/guardrails/bring-your-own-guardrails",
        ..Terms::vendor(Contract::Portkey, &[PROMPT, ANSWER], portkey::question, portkey::answer)
    },
    Terms {
        paths: ["/v2/guard"; 2],
        parameters: &[
            Field::new("project_id", Shape::Text, "The project whose policy decides.").default("the account's policy"),
            Field::new("metadata", Shape::Any, "Tags of the request."),
        ],
        request: "`{messages: [{role, content}], payload: true, breakdown: true, project_id, metadata}`",
        reply: "`flagged` false: allow; true: deny with the detectors' names; where only `pii` was detected: rewrite \
                the places of `payload` to `[MASKED TYPE]`",
        source: "https://docs.lakera.ai/docs/api/guard",
        ..Terms::vendor(Contract::Lakera, &[PROMPT, ANSWER, TOOL_RESULT], lakera::question, lakera::answer)
    },
    Terms {
        paths: ["/v1/checks"; 2],
        parameters: &[
            Field::new("config_id", Shape::Text, "The guardrails configuration.").default("the server's"),
            Field::new("config_ids", Shape::Texts, "Several of them, combined."),
            Field::new("model", Shape::Text, "The model that the rails name.").default("the event's"),
        ],
        request: "`{model, messages: [{role, content}], guardrails: {config_id, rail_types: [input] or [output]}}`; \
                  neighbours of one role are one message",
        reply: "`status` `passed`: allow; `blocked`: deny, and name `rail`; `modified`: rewrite the last user's or \
                the assistant's message to `content`",
        source: "https://github.com/NVIDIA-NeMo/Guardrails/blob/develop/nemoguardrails/server/api.py",
        ..Terms::vendor(Contract::Nemo, &[PROMPT, ANSWER], nemo::question, nemo::answer)
    },
    Terms {
        paths: ["/analyze/prompt", "/analyze/output"],
        parameters: &[
            Field::new("scanners_suppress", Shape::Texts, "Scanners that are left out."),
            Field::new("mask", Shape::Texts, "Scanners whose finding masks the text instead of refusing it.")
                .default("none"),
        ],
        request: "`{prompt, scanners_suppress}`; after the model `{prompt, output, scanners_suppress}`; all texts as \
                  one",
        reply: "`is_valid` false: deny, and name the scanners above 0, unless `mask` names all of them; a \
                `sanitized_prompt` or `sanitized_output` that differs: rewrite",
        source: "https://github.com/protectai/llm-guard/blob/main/llm_guard_api/app/schemas.py",
        ..Terms::vendor(Contract::LlmGuard, &[PROMPT, ANSWER], llm_guard::question, llm_guard::answer)
    },
    Terms {
        paths: ["/v1/moderations"; 2],
        parameters: &[
            Field::new("model", Shape::Text, "The moderation model.").default("omni-moderation-latest"),
            Field::new("thresholds", Shape::NumberMap, "Categories and the scores that deny."),
        ],
        request: "`{model, input: [text, …]}`",
        reply: "any of `results` `flagged`, or a score of `thresholds` reached: deny with the categories; else allow",
        source: "https://platform.openai.com/docs/api-reference/moderations",
        ..Terms::vendor(
            Contract::OpenAiModeration,
            &[PROMPT, ANSWER],
            openai_moderation::question,
            openai_moderation::answer,
        )
    },
    Terms {
        parameters: &[
            Field::new("tenant_id", Shape::Text, "The organization."),
            Field::new("application", Shape::Text, "Where the request comes from.").default("gatehook"),
        ],
        request: "`{type: prompt, request_id, tenant_id, actor, source, session_id, model, messages, metadata}`; \
                  messages of blocks `text`, `tool_use`, `tool_result`, `attachment`, no system prompt, no thinking",
        reply: "`action` `allow`; `deny` with `deny_reason`, and `reference_id` in the metadata; any status but 200, \
                and more than 64 KiB, is a failure",
        source: "https://platform.claude.com/docs/en/manage-claude/inference-hooks-endpoint",
        user_agent: Some("anthropic-dlp/1"),
        only_ok: true,
        reply_limit: 64 << 10,
        ..Terms::vendor(
            Contract::AnthropicInference,
            &[PROMPT],
            anthropic_inference::question,
            anthropic_inference::answer,
        )
    },
    Terms {
        request: "`request.body`, its templates filled in",
        reply: "`reply`'s rules",
        source: "webhooks.md#mapped",
        ..Terms::new(Contract::Mapped, &[], Form::Mapped)
    },
];
