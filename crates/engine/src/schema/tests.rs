use gatehook_events::{HookSpecificOutput, Output};

use super::*;
use crate::config::{Document, Format, ReadOptions, parse};

/// Whether a value fits a schema, as far as this module uses JSON Schema; a word it does not use fails the test.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(rules) = schema else { return schema == &Value::Bool(true) };
    rules.iter().all(|(rule, wanted)| match rule.as_str() {
        "type" => types(wanted).iter().any(|wanted| is_type(value, wanted)),
        "enum" => wanted.as_array().unwrap().contains(value),
        "const" => wanted == value,
        "required" => wanted.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
        "properties" => {
            fields(value).all(|(key, value)| wanted.get(key).is_none_or(|schema| fits(root, schema, value)))
        }
        "additionalProperties" => {
            let known = rules.get("properties");
            let mut others = fields(value).filter(|(key, _)| known.is_none_or(|known| known.get(key).is_none()));
            others.all(|(_, value)| fits(root, wanted, value))
        }
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(root, wanted, item))),
        "anyOf" => wanted.as_array().unwrap().iter().any(|schema| fits(root, schema, value)),
        "allOf" => wanted.as_array().unwrap().iter().all(|schema| fits(root, schema, value)),
        "if" => !fits(root, wanted, value) || fits(root, &rules["then"], value),
        "$ref" => fits(root, root.pointer(wanted.as_str().unwrap().trim_start_matches('#')).unwrap(), value),
        "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
        "exclusiveMinimum" => value.as_f64().is_none_or(|number| number > wanted.as_f64().unwrap()),
        "pattern" => {
            value.as_str().is_none_or(|text| regex::Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text))
        }
        "then" | "$schema" | "$defs" | "title" | "description" | "format" => true,
        other => panic!("{other}"),
    })
}

fn types(wanted: &Value) -> Vec<&str> {
    wanted
        .as_array()
        .map_or_else(|| vec![wanted.as_str().unwrap()], |all| all.iter().filter_map(Value::as_str).collect())
}

fn is_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("{other}"),
    }
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn both_accept(text: &str) -> (bool, bool) {
    let document = Document::parse("f", text, Format::Yaml).unwrap();
    let schema = configuration();
    let read = parse("f", text, Format::Yaml, &ReadOptions::default());
    (fits(&schema, &schema, &document.root.to_json()), read.is_ok())
}

#[test]
fn every_event_and_field_is_named() {
    let schema = configuration();
    for event in Event::all() {
        let described = schema.pointer(&format!("/properties/hooks/properties/{}/description", event.name()));
        assert_eq!(described.and_then(Value::as_str), Some(event.spec().doc.trim()), "{}", event.name());
    }
    for field in HOOK {
        assert!(
            schema.pointer(&format!("/$defs/hook/properties/{}/description", field.name)).is_some(),
            "{}",
            field.name
        );
    }
    assert!(schema.pointer("/properties/hooks/properties/pre_tool_use_pre_yolo").is_none());
}

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    for text in [
        "hooks: {}",
        "dialect: native\nmax_concurrent_hooks: 4\ndefaults: {timeout: 1m30s, on_error: warn, env_policy: {only: [A]}}",
        "hooks: {stop: {type: command, command: x, timeout: 1.5, env: {A: 1}, async: true}}",
        "hooks: {pre_tool_use: [{matcher: a, preempt_yolo: true, hooks: {type: builtin, command: x, args: [1, b]}}]}",
        "hooks: {stop: {type: worker, command: x, workers: 2, max_in_flight: 8, idle_timeout: 5m}}",
        "hooks: {stop: {type: python, module: guard, function: check, python: python3, workers: 1, idle_timeout: 30}}",
        "hooks: {stop: {type: command, command: x, max_memory: 64MiB, max_cpu_seconds: 1, max_file_size: 0, user: 1000, sandbox: {network: none, write: [a], required: false}}}",
        "hooks: {pre_tool_use: [{type: model, model: m, prompt: p, schema: s}], turn_start: [{hooks: []}, {type: command, command: x}]}",
        "hooks: {post_inference: {type: webhook, url: 'http://h', headers: {A: b}, contract: ollama, stream: {mode: window, size: 8}}}",
        "hooks: {pre_inference: {type: webhook, url: 'http://h', contract: lakera, parameters: {project_id: p}}}",
        "hooks: {pre_inference: {type: webhook, url: 'http://h', contract: mapped, request: {body: {a: 1}}, reply: {block_when: [{path: /a, is: 1}, {path: /b, at_least: 0.5}], block_status: [403], rewrite: {text: /t}}}}",
        "hooks: {stop: {type: webhook, url: 'http://h', secret: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw]}}",
    ] {
        let (schema, reader) = both_accept(text);
        assert!(schema, "{text}");
        // An empty group is no matter of its shape.
        assert!(reader || text.contains("hooks: []"), "{text}");
    }
}

#[test]
fn the_schema_refuses_what_has_a_wrong_shape() {
    for text in [
        "hoks: {}",
        "dialect: other",
        "defaults: {timeout: 0}",
        "defaults: {env_policy: some}",
        "hooks: {stopp: []}",
        "hooks: {stop: exit 0}",
        "hooks: {stop: [{command: x}]}",
        "hooks: {stop: [{type: webhok, command: x}]}",
        "hooks: {stop: [{type: command}]}",
        "hooks: {stop: [{type: worker}]}",
        "hooks: {stop: [{type: worker, command: x, module: y}]}",
        "hooks: {stop: [{type: worker, command: x, workers: two}]}",
        "hooks: {stop: [{type: python, function: x}]}",
        "hooks: {stop: [{type: python, module: x, max_in_flight: 2}]}",
        "hooks: {stop: [{type: command, command: x, workers: 2}]}",
        "hooks: {stop: [{type: webhook, url: 'http://h', command: x}]}",
        "hooks: {stop: [{type: command, command: x, timeout: soon}]}",
        "hooks: {stop: [{matcher: a, hooks: [{type: command, command: x}]}]}",
        "hooks: {pre_tool_use: [{matcher: 1, hooks: [{type: command, command: x}]}]}",
        "hooks: {post_inference: {type: webhook, url: 'http://h', stream: {mode: all}}}",
        "hooks: {pre_inference: {type: webhook, url: 'http://h', contract: other}}",
        "hooks: {pre_inference: {type: webhook, url: 'http://h', contract: mapped, request: {body: 1}, reply: {block_when: {path: /a, is: 1}}}}",
        "hooks: {stop: {type: webhook, url: 'http://h', secret: 5}}",
        "hooks: {stop: {type: command, command: x, secret: x}}",
        "hooks: {stop: {type: command, command: x, max_memory: 64M}}",
        "hooks: {stop: {type: command, command: x, user: [a]}}",
        "hooks: {stop: {type: command, command: x, sandbox: none}}",
        "hooks: {stop: {type: command, command: x, sandbox: {network: all}}}",
        "hooks: {stop: {type: webhook, url: 'http://h', max_memory: 64MiB}}",
    ] {
        assert_eq!(both_accept(text), (false, false), "{text}");
    }
}

#[test]
fn a_payload_has_the_events_fields_and_no_other_events() {
    let schema = payload(Event::PreToolUsePreempt, Profile::DockerAgent);
    let names: Vec<&str> = fields(&schema["properties"]).map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"tool_input") && !names.contains(&"plane") && !names.contains(&"prompt"), "{names:?}");
    assert_eq!(schema["properties"]["hook_event_name"]["const"], "pre_tool_use");
    let schema = payload(Event::PreInference, Profile::Native);
    assert_eq!(schema["required"], json!(["schema_version", "session_id", "cwd", "hook_event_name", "timestamp"]));
    let mut sample = json!({ "schema_version": 1, "session_id": "s", "cwd": "/", "hook_event_name": "pre_inference", "timestamp": "t", "stream": true });
    assert!(fits(&schema, &schema, &sample));
    sample["stream"] = json!("yes");
    assert!(!fits(&schema, &schema, &sample));
}

#[test]
fn the_output_schema_knows_every_field_of_an_output() {
    let text = "t";
    let specific = json!({
        "hook_event_name": text, "permission_decision": "ask", "permission_decision_reason": text, "updated_input": {},
        "additional_context": text, "instruction_context": [], "summary": text, "updated_messages": [],
        "updated_tool_response": 1, "metadata": {},
    });
    let all = json!({
        "continue": false, "stop_reason": text, "suppress_output": true, "system_message": text, "decision": "block",
        "reason": text, "hook_specific_output": specific, "user_message": text, "agent_message": text,
        "permission": "modify", "messages": [], "output_text": text, "output_thinking": text, "tool_calls": [],
        "holdback_chars": 3,
    });
    let output: Output = serde_json::from_value(all.clone()).unwrap();
    let Output {
        hook_specific_output: Some(HookSpecificOutput { metadata: Some(_), .. }), tool_calls: Some(_), ..
    } = &output
    else {
        panic!("{output:?}")
    };
    let mut schema = output_schema_closed();
    assert!(fits(&schema, &schema, &serde_json::to_value(&output).unwrap()));
    assert_eq!(fields(&schema["properties"]).count(), fields(&all).count());
    schema["additionalProperties"] = json!(false);
    assert!(!fits(&schema, &schema, &json!({ "decision": "allow" })));
}

fn output_schema_closed() -> Value {
    let mut schema = output();
    schema["additionalProperties"] = json!(false);
    schema["properties"]["hook_specific_output"]["additionalProperties"] = json!(false);
    schema
}
