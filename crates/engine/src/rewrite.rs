//! Rewrites: what a hook puts in the place of the caller's values, as new values. The caller's own are never touched.

use std::sync::Arc;

use gatehook_events::{HookSpecificOutput, Input, ModelOutput, Output, Permission, Rewrite, Rewritten};
use serde_json::{Map, Value};

use crate::compiled::Hook;
use crate::definition::Patch;

/// All rewrites up to and including those of one hook; `None` where it makes none, an error where what it wants makes
/// no sense.
///
/// `current` is the input with the rewrites `so_far` in it. Where a profile `replaces`, patches stand for themselves
/// and the first value stands.
pub(crate) fn propose(
    hook: &Hook,
    output: &mut Output,
    current: &Input,
    so_far: &Rewritten,
    replaces: bool,
) -> Result<Option<Rewritten>, String> {
    let Some(what) = hook.capabilities.rewrites else { return Ok(None) };
    let mut next = so_far.clone();
    let mut none = HookSpecificOutput::default();
    let accepted = matches!(output.permission, None | Some(Permission::Modify));
    let Output { hook_specific_output, messages, .. } = output;
    let specific = hook_specific_output.as_mut().unwrap_or(&mut none);
    match what {
        Rewrite::ToolInput => {
            let Some(patch) = specific.updated_input.take() else { return Ok(None) };
            let base = if replaces { &so_far.tool_input } else { &current.tool_input };
            next.tool_input = Some(Arc::new(patched(base.as_deref(), patch, hook.definition.patch)));
        }
        Rewrite::Messages => {
            let updated = specific.updated_messages.take().filter(|messages| !messages.is_empty());
            let Some(messages) = messages.take().or(updated).filter(|_| accepted) else { return Ok(None) };
            next.messages = first_or_last(so_far.messages.clone(), messages.into(), replaces);
        }
        Rewrite::ToolResponse => {
            let Some(response) = specific.updated_tool_response.take() else { return Ok(None) };
            next.tool_response = first_or_last(so_far.tool_response.clone(), Arc::new(response), replaces);
        }
        Rewrite::Output if accepted => {
            let mut answer = so_far.output.clone().unwrap_or_default();
            if !change(&mut answer, output) {
                return Ok(None);
            }
            next.output = Some(answer);
        }
        Rewrite::SkillArgs => {
            let Some(patch) = specific.updated_input.take() else { return Ok(None) };
            let Some(Value::String(args)) = patch.get("skill_args") else {
                return Err("`updated_input` of a skill is `{\"skill_args\": text}`".to_owned());
            };
            next.skill_args = Some(args.as_str().into());
        }
        Rewrite::Output | Rewrite::Summary => return Ok(None),
    }
    Ok(Some(next))
}

fn first_or_last<T>(first: Option<T>, last: T, first_wins: bool) -> Option<T> {
    first.filter(|_| first_wins).or(Some(last))
}

/// Puts what is given into the answer; says whether anything was.
fn change(answer: &mut ModelOutput, output: &mut Output) -> bool {
    let given = output.output_text.is_some() || output.output_thinking.is_some() || output.tool_calls.is_some();
    answer.text = output.output_text.take().or(answer.text.take());
    answer.thinking = output.output_thinking.take().or(answer.thinking.take());
    answer.tool_calls = output.tool_calls.take().map(Into::into).or(answer.tool_calls.take());
    given
}

/// Puts rewrites into an input, for the hooks to come.
pub(crate) fn apply(rewritten: &Rewritten, input: &mut Input) {
    fn set<T: Clone>(slot: &mut Option<T>, value: &Option<T>) {
        if value.is_some() {
            slot.clone_from(value);
        }
    }
    set(&mut input.tool_input, &rewritten.tool_input);
    set(&mut input.messages, &rewritten.messages);
    set(&mut input.tool_response, &rewritten.tool_response);
    set(&mut input.skill_args, &rewritten.skill_args);
    if let Some(output) = &rewritten.output {
        set(&mut input.output_text, &output.text);
        set(&mut input.output_thinking, &output.thinking);
        set(&mut input.tool_calls, &output.tool_calls);
    }
}

/// The complete value after a patch.
fn patched(base: Option<&Map<String, Value>>, patch: Map<String, Value>, how: Patch) -> Map<String, Value> {
    let mut value = base.cloned().unwrap_or_default();
    match how {
        Patch::TopLevel => value.extend(patch),
        Patch::MergePatch => merge(&mut value, patch),
    }
    value
}

/// RFC 7386: objects are merged, `null` deletes, everything else replaces.
fn merge(value: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, change) in patch {
        match change {
            Value::Null => drop(value.remove(&key)),
            Value::Object(change) => {
                let slot = value.entry(key).or_insert(Value::Null);
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(inner) = slot {
                    merge(inner, change);
                }
            }
            change => drop(value.insert(key, change)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn a_top_level_patch_replaces_whole_keys_and_stores_null() {
        let base = object(json!({"cmd": "ls", "env": {"A": 1}}));
        let patch = object(json!({"env": {"B": 2}, "cwd": null}));
        let want = object(json!({"cmd": "ls", "env": {"B": 2}, "cwd": null}));
        assert_eq!(patched(Some(&base), patch, Patch::TopLevel), want);
    }

    /// The examples of RFC 7386, appendix A, whose both sides are objects.
    #[test]
    fn a_merge_patch_follows_its_rfc() {
        for (base, patch, want) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        ] {
            let got = patched(Some(&object(base.clone())), object(patch.clone()), Patch::MergePatch);
            assert_eq!(got, object(want), "{base} patched by {patch}");
        }
    }
}
