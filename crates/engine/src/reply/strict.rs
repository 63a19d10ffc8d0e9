//! `strict_output`: an answer that its event does not honour is a failure.

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Capabilities, Decides, Event, FailureKind, Output, Profile, Rewrite};

use super::{Fault, WrongWords};

/// What an output is held to.
pub(super) struct Rules<'a> {
    pub(super) strict: bool,
    pub(super) profile: Profile,
    pub(super) able: &'a Capabilities,
}

impl Rules<'_> {
    /// Checks an output, one thing after another in the order that docker-agent has.
    pub(super) fn check(&self, output: &Output, wrong: WrongWords, event: Event) -> Result<(), Fault> {
        let when_strict = |check: Result<(), Fault>| if self.strict { check } else { Ok(()) };
        let specific = output.hook_specific_output.as_ref();
        when_strict(self.suppression(output))?;
        wrong.decision.map_or(Ok(()), Err)?;
        when_strict(honoured(&blocks(output, self.able)))?;
        when_strict(event_name(specific, event))?;
        wrong.permission.map_or(Ok(()), Err)?;
        when_strict(honoured(&given_at_top(output, self.able)))?;
        when_strict(specific.map_or(Ok(()), |specific| honoured(&given_in_specific(specific, self.able))))
    }

    fn suppression(&self, output: &Output) -> Result<(), Fault> {
        if output.suppress_output && self.profile != Profile::Native {
            let message = "`suppress_output` has no effect";
            return Err(Fault::new(FailureKind::SuppressOutputUnsupported, message));
        }
        Ok(())
    }
}

fn event_name(specific: Option<&HookSpecificOutput>, event: Event) -> Result<(), Fault> {
    let named = specific.and_then(|specific| specific.hook_event_name.as_deref()).unwrap_or_default();
    if !named.is_empty() && named != event.public_name() {
        let message = "`hook_event_name` of its reply names another event";
        return Err(Fault::new(FailureKind::EventNameMismatch, message));
    }
    Ok(())
}

fn honoured(fields: &[Given]) -> Result<(), Fault> {
    match fields.iter().find(|(_, given, honoured)| *given && !honoured) {
        Some((field, ..)) => {
            Err(Fault::new(FailureKind::UnsupportedOutput, format!("this event does not honour `{field}`")))
        }
        None => Ok(()),
    }
}

/// Field, whether it is given, whether the event honours it.
type Given = (&'static str, bool, bool);

fn blocks(output: &Output, able: &Capabilities) -> [Given; 2] {
    [("continue", !output.should_continue(), able.blocks), ("decision", output.is_blocked(), able.blocks)]
}

fn given_at_top(output: &Output, able: &Capabilities) -> [Given; 6] {
    let rewrites = able.rewrites;
    [
        ("permission", output.permission.is_some(), able.decides != Decides::No),
        ("messages", output.messages.is_some(), rewrites == Some(Rewrite::Messages)),
        ("output_text", output.output_text.is_some(), rewrites == Some(Rewrite::Output)),
        ("output_thinking", output.output_thinking.is_some(), rewrites == Some(Rewrite::Output)),
        ("tool_calls", output.tool_calls.is_some(), rewrites == Some(Rewrite::Output)),
        ("holdback_chars", output.holdback_chars.is_some(), rewrites == Some(Rewrite::Output)),
    ]
}

fn given_in_specific(specific: &HookSpecificOutput, able: &Capabilities) -> [Given; 9] {
    let text = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let rewrites = |what: Rewrite| able.rewrites == Some(what);
    let decides = able.decides != Decides::No;
    let input = rewrites(Rewrite::ToolInput) || rewrites(Rewrite::SkillArgs);
    [
        ("permission_decision", specific.permission_decision.is_some(), decides),
        ("permission_decision_reason", text(&specific.permission_decision_reason), decides),
        ("updated_input", specific.updated_input.is_some(), input),
        ("updated_messages", specific.updated_messages.is_some(), rewrites(Rewrite::Messages)),
        ("updated_tool_response", specific.updated_tool_response.is_some(), rewrites(Rewrite::ToolResponse)),
        ("metadata", specific.metadata.is_some(), able.metadata),
        ("additional_context", text(&specific.additional_context), able.context),
        ("instruction_context", specific.instruction_context.is_some(), able.instructions),
        ("summary", text(&specific.summary), rewrites(Rewrite::Summary)),
    ]
}
