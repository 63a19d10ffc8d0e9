//! What was kept of a session, told once more to whoever comes to it.

use gatehook_agent::conversation::Conversation;
use gatehook_agent::report::Report;
use gatehook_events::Message;
use serde_json::{Map, Value};

/// Everything that was said, as if it were said now.
pub(crate) fn told(conversation: &Conversation) -> Vec<Report> {
    let mut reports: Vec<Report> = conversation.all().iter().flat_map(message).collect();
    let spent = conversation.spent();
    if spent.calls > 0 {
        reports.push(Report::Usage {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cost: spent.cost,
            context_used: spent.context,
            context_limit: 0,
        });
    }
    if conversation.is_interrupted() {
        reports.push(Report::Notice { level: "warning", text: "the last turn was interrupted".into() });
    }
    reports
}

fn message(message: &Message) -> Vec<Report> {
    let text = message.content.clone().unwrap_or_default();
    match &*message.role {
        "user" => vec![Report::User { text }],
        "assistant" => {
            let thinking = message.thinking.clone().map(|delta| Report::Thinking { delta });
            let calls = message.tool_calls.iter().flatten().map(|call| Report::ToolCall {
                id: call.id.clone().unwrap_or_default(),
                name: call.function.name.clone(),
                input: arguments(&call.function.arguments).into(),
            });
            thinking.into_iter().chain(std::iter::once(Report::Message { text })).chain(calls).collect()
        }
        "tool" => vec![Report::ToolResult {
            id: message.tool_call_id.clone().unwrap_or_default(),
            name: message.name.clone().unwrap_or_default(),
            output: text,
            error: None,
            diff: None,
            duration: 0.0,
        }],
        _ => Vec::new(),
    }
}

/// Arguments as the model wrote them; what is no object is shown under one name.
fn arguments(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_else(|_| Map::from_iter([("arguments".to_owned(), Value::from(text))]))
}
