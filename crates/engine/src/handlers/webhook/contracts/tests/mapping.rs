use super::*;
use crate::definition::{Mapping, ReplyRules, RewriteFrom, Rule, Test};

pub(super) fn rule(path: &str, test: Test) -> Rule {
    Rule { path: path.to_owned(), optional: false, test }
}

pub(super) fn mapping(body: &Value, block_when: &[Rule]) -> Box<Mapping> {
    let reply = ReplyRules { block_when: block_when.to_vec(), ..ReplyRules::default() };
    Box::new(Mapping { body: body.clone(), reply })
}

fn with(body: &Value, reply: ReplyRules) -> Agreement {
    let mapping = Some(Box::new(Mapping { body: body.clone(), reply }));
    Agreement::of(&WebhookDefinition { mapping, ..WebhookDefinition::new("http://h", Contract::Mapped) }).unwrap()
}

fn read_as(rules: &ReplyRules, event: Event, status: u16, reply: &Value) -> String {
    let body = Bytes::from(reply.to_string());
    let read = with(&Value::Null, rules.clone()).read(event, &input(event), status, &body);
    told(read.map_err(|error| error.kind).map(|reply| match reply {
        Reply::Direct(output) => output.unwrap_or_default(),
        _ => panic!("{reply:?}"),
    }))
}

#[test]
fn a_body_is_filled_with_fields_and_with_what_is_made_of_them() {
    let body = json!({
        "input": "{{ .text }}", "parts": "{{ .texts }}", "history": "{{ .messages }}", "model": "m={{ .model_id }}",
        "event": "{{ .hook_event_name }}", "fixed": [1, null],
    });
    let agreement = with(&body, ReplyRules::default());
    let asked = agreement.question(PostInference, &input(PostInference), &Payload::default(), "").unwrap().unwrap();
    let asked: Value = serde_json::from_slice(&asked).unwrap();
    assert_eq!(asked["input"], "hm\n\nit is a@b.c\n\n{\"to\":\"a@b.c\"}");
    assert_eq!(asked["parts"], json!(["hm", "it is a@b.c", "{\"to\":\"a@b.c\"}"]));
    assert_eq!(asked["history"][0], json!({"role": "system", "content": "be brief"}));
    assert_eq!((&asked["model"], &asked["event"]), (&json!("m=m"), &json!("post_inference")));
    assert_eq!(asked["fixed"], json!([1, null]));
}

#[test]
fn rules_say_what_blocks_asks_and_passes() {
    let rules = ReplyRules {
        block_status: vec![403],
        block_when: vec![
            rule("/flagged", Test::Is(true.into())),
            Rule { optional: true, ..rule("/scores/*/value", Test::AtLeast(0.5)) },
        ],
        ask_when: vec![Rule { optional: true, ..rule("/verdict", Test::Matches("unsure|maybe.*".into())) }],
        allow_when: vec![rule("/verdict", Test::In(vec!["ok".into(), "fine".into()]))],
        reason: Some("/why".to_owned()),
        rewrite: None,
    };
    for (event, status, reply, want) in [
        (PreInference, 200, json!({"flagged": false, "verdict": "ok"}), "allow"),
        (PreInference, 204, json!({"flagged": false, "verdict": "fine", "scores": [{"value": 0.4}]}), "allow"),
        (PreInference, 200, json!({"flagged": true, "why": "no"}), "deny no"),
        (PreToolUse, 200, json!({"flagged": true, "why": "no"}), "deny no"),
        (
            PreInference,
            200,
            json!({"flagged": false, "scores": [{"value": 0}, {"value": 0.5}]}),
            "deny the guard refused it",
        ),
        // A denial is not lost because another rule cannot be asked.
        (PreInference, 200, json!({"scores": [{"value": 1}]}), "deny the guard refused it"),
        (PreInference, 200, json!({"flagged": false, "verdict": "maybe not", "why": "?"}), "ask ?"),
        (PreToolUse, 200, json!({"flagged": false, "verdict": "unsure", "why": "?"}), "ask ?"),
        // Nobody can be asked there.
        (UserPromptSubmit, 200, json!({"flagged": false, "verdict": "unsure", "why": "?"}), "deny ?"),
        (PreInference, 403, json!({"why": "no"}), "deny no"),
        (PreInference, 403, json!("Forbidden"), "deny the guard refused it"),
        (PreInference, 200, json!({"flagged": false, "verdict": "odd"}), "failed MalformedJson"),
        (PreInference, 200, json!({"flagged": false}), "failed MalformedJson"),
        (PreInference, 200, json!({"flagged": "true", "verdict": "ok"}), "failed MalformedJson"),
        (PreInference, 200, json!({"verdict": "ok"}), "failed MalformedJson"),
        (
            PreInference,
            200,
            json!({"flagged": false, "verdict": "ok", "scores": [{"value": "1"}]}),
            "failed MalformedJson",
        ),
        (PreInference, 200, json!([]), "failed MalformedJson"),
        (PreInference, 500, json!({"flagged": false, "verdict": "ok"}), "failed BadStatus"),
        (PreInference, 302, json!({"flagged": false, "verdict": "ok"}), "failed Redirected"),
    ] {
        assert_eq!(read_as(&rules, event, status, &reply), want, "{event:?} {status} {reply}");
    }
}

#[test]
fn a_place_may_be_there_or_not() {
    for (wanted, reply, want) in [
        (true, json!({"a": {"b/c": 0}}), "deny the guard refused it"),
        (true, json!({"a": {"b/c": null}}), "allow"),
        (true, json!({}), "allow"),
        (false, json!({}), "deny the guard refused it"),
        (false, json!({"a": {"b/c": []}}), "allow"),
    ] {
        let rules = mapping(&Value::Null, &[rule("/a/b~1c", Test::Exists(wanted))]).reply;
        assert_eq!(read_as(&rules, PreInference, 200, &reply), want, "{wanted} {reply}");
    }
}

#[test]
fn rewritten_text_goes_back_where_it_stood() {
    let base = mapping(&Value::Null, &[rule("/ok", Test::Is(false.into()))]).reply;
    let text = ReplyRules { rewrite: Some(RewriteFrom::Text("/new".into())), ..base.clone() };
    let texts = ReplyRules { rewrite: Some(RewriteFrom::Texts("/new".into())), ..base };
    for (rules, event, new, want) in [
        (&text, PostToolUse, json!("[x]"), r#"response "[x]""#),
        (&text, PostToolUse, json!("from a@b.c"), "allow"),
        (&text, PostToolUse, json!(null), "allow"),
        (&text, PostToolUse, json!(5), "failed MalformedJson"),
        (&text, PostInference, json!("hm\n\n[x]\n\n{}"), "text [x], call {}"),
        (&text, PostInference, json!("[x]"), "failed UnsupportedRewrite"),
        (&texts, PreToolUse, json!(["x", "y/z", "[m]"]), r#"input {"to":"[m]"}"#),
        (&texts, PreToolUse, json!(["[m]"]), "failed UnsupportedRewrite"),
        (&texts, PreToolUse, json!([1, 2, 3]), "failed MalformedJson"),
        (&texts, Event::Stop, json!(["x"]), "failed UnsupportedRewrite"),
    ] {
        assert_eq!(read_as(rules, event, 200, &json!({"ok": true, "new": new})), want, "{event:?} {new}");
    }
}

#[test]
fn a_mapping_that_cannot_be_read_is_refused() {
    let of = |mapping: Option<Box<Mapping>>| {
        let definition = WebhookDefinition { mapping, ..WebhookDefinition::new("http://h", Contract::Mapped) };
        Agreement::of(&definition).map(|_| ()).unwrap_err().field
    };
    assert_eq!(of(None), "request");
    assert_eq!(of(Some(mapping(&json!("{{ .nope }}"), &[]))), "request");
    assert_eq!(of(Some(mapping(&json!("x"), &[rule("flagged", Test::Exists(true))]))), "reply");
    assert_eq!(of(Some(mapping(&json!("x"), &[rule("/x", Test::Matches("(".into()))]))), "reply");
}
