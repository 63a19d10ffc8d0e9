use super::*;
use crate::handlers::webhook::CONTRACTS;

fn problems(hook: &str) -> Vec<(&'static str, String, Option<String>)> {
    let text = format!("hooks:\n  {hook}\n");
    let found = read(&text).map(|_| Vec::new()).unwrap_or_else(|error| error.diagnostics);
    found.into_iter().map(|problem| (problem.kind.name(), problem.message, problem.help)).collect()
}

#[test]
fn a_contract_on_an_event_that_it_does_not_know_says_which_it_knows() {
    for (hook, message, help) in [
        (
            "pre_tool_use: {type: webhook, url: 'http://h', contract: ollama}",
            "the contract `ollama` has no `pre_tool_use`",
            "it knows `pre_inference` and `post_inference`",
        ),
        (
            "post_inference: {type: webhook, url: 'http://h', contract: anthropic-inference}",
            "the contract `anthropic-inference` has no `post_inference`",
            "it knows `pre_inference`, `before_llm_call` and `user_prompt_submit`",
        ),
        (
            "tool_response_transform: {type: webhook, url: 'http://h', contract: lakera}",
            "the contract `lakera` has no `tool_response_transform`",
            "it knows `pre_inference`, `before_llm_call`, `user_prompt_submit`, `post_inference`, `after_llm_call` and \
             `post_tool_use`",
        ),
    ] {
        assert_eq!(problems(hook), [("contract_unsupported", message.to_owned(), Some(help.to_owned()))], "{hook}");
    }
    for (name, contract) in Contract::ALL.into_iter().filter(|(_, contract)| *contract != Contract::Mapped) {
        let terms = CONTRACTS.iter().find(|terms| terms.contract == contract).unwrap();
        for event in Event::all() {
            let hook = format!("{}: {{type: webhook, url: 'http://h', contract: {name}}}", event.name());
            assert_eq!(problems(&hook).is_empty(), terms.knows(event), "{hook}");
        }
    }
}

#[test]
fn parameters_are_those_of_the_contract() {
    let hook = |contract: &str, parameters: &str| {
        let hook = format!("{{type: webhook, url: 'http://h', contract: {contract}, parameters: {parameters}}}");
        problems(&format!("pre_inference: {hook}")).into_iter().map(|(kind, ..)| kind).collect::<Vec<_>>()
    };
    for (contract, parameters, want) in [
        ("lakera", "{project_id: p, metadata: {a: 1}}", vec![]),
        ("nemo", "{config_ids: [a, b], model: m}", vec![]),
        ("openai-moderation", "{thresholds: {violence: 0.5, hate: 1}}", vec![]),
        ("lakera", "{projct_id: p}", vec!["unknown_field"]),
        ("lakera", "{project_id: 5, metadata: x}", vec!["wrong_type", "wrong_type"]),
        ("llm-guard", "{mask: Anonymize}", vec!["wrong_type"]),
        ("openai-moderation", "{thresholds: {violence: high}}", vec!["wrong_type"]),
        ("agentgateway", "{a: 1}", vec!["misplaced_field"]),
        ("native", "{a: 1}", vec!["misplaced_field"]),
        ("lakera", "p", vec!["wrong_type"]),
    ] {
        assert_eq!(hook(contract, parameters), want, "{contract} {parameters}");
    }
}

#[test]
fn a_mapping_is_judged_at_load() {
    let hook = |event: &str, rest: &str| {
        problems(&format!("{event}: {{type: webhook, url: 'http://h', contract: mapped, {rest}}}"))
            .into_iter()
            .map(|(kind, ..)| kind)
            .collect::<Vec<_>>()
    };
    let request = "request: {body: {a: '{{ .text }}'}}";
    for (event, reply, want) in [
        ("pre_inference", "{block_when: [{path: /a, is: true}]}", vec![]),
        ("pre_inference", "{allow_when: [{path: '/a/*/b', in: [x, 1]}], block_status: [403, 422], reason: /r}", vec![]),
        ("pre_inference", "{block_when: [{path: /a, at_least: 0.5, optional: true}], rewrite: {text: /t}}", vec![]),
        ("pre_tool_use", "{block_when: [{path: /a, matches: 'b.*'}], ask_when: [{path: /a, exists: true}]}", vec![]),
        ("pre_inference", "{reason: /r}", vec!["field_required"]),
        ("pre_inference", "{block_when: [{path: /a}]}", vec!["field_required"]),
        ("pre_inference", "{block_when: [{path: /a, is: 1, exists: true}]}", vec!["field_required"]),
        ("pre_inference", "{block_when: [{is: true}]}", vec!["field_required"]),
        ("pre_inference", "{block_when: [{path: a, is: true}]}", vec!["invalid_value"]),
        ("pre_inference", "{block_when: [{path: /a, is: [1]}]}", vec!["wrong_type"]),
        ("pre_inference", "{block_when: [{path: /a, in: []}]}", vec!["wrong_type"]),
        ("pre_inference", "{block_when: [{path: /a, at_least: x}]}", vec!["wrong_type"]),
        ("pre_inference", "{block_when: [{path: /a, matches: '('}]}", vec!["invalid_pattern"]),
        ("pre_inference", "{block_when: [{path: /a, equals: 1}]}", vec!["unknown_field", "field_required"]),
        ("pre_inference", "{block_when: [{path: /a, is: 1}], block_status: [200]}", vec!["invalid_value"]),
        ("pre_inference", "{block_when: [{path: /a, is: 1}], rewrite: {}}", vec!["field_required"]),
        ("pre_inference", "{block_when: [{path: /a, is: 1}], rewrite: {text: /a, texts: /b}}", vec!["field_required"]),
        ("stop", "{block_when: [{path: /a, is: 1}], rewrite: {text: /a}}", vec!["misplaced_field"]),
        ("stop", "{ask_when: [{path: /a, is: 1}], block_when: [{path: /a, is: 1}]}", vec!["misplaced_field"]),
    ] {
        assert_eq!(hook(event, &format!("{request}, reply: {reply}")), want, "{event} {reply}");
    }
    let reply = "reply: {block_when: [{path: /a, is: 1}]}";
    for (request, want) in [
        ("", vec!["field_required"]),
        ("request: {}, ", vec!["field_required"]),
        ("request: {body: '{{ .promt }}'}, ", vec!["invalid_value"]),
        ("request: {body: {a: ['{{ if }}']}}, ", vec!["invalid_value"]),
    ] {
        assert_eq!(hook("pre_inference", &format!("{request}{reply}")), want, "{request}");
    }
    let other = "pre_inference: {type: webhook, url: 'http://h', contract: lakera, request: {body: 1}}";
    assert_eq!(problems(other)[0].0, "misplaced_field");
}

#[test]
fn secrets_are_resolved_and_never_shown() {
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.key");
    std::fs::write(&path, format!("{SECRET}\n")).unwrap();
    let env = BTreeMap::from([("KEY".to_owned(), SECRET.to_owned()), ("BAD".to_owned(), "hunter2".to_owned())]);
    let options = ReadOptions { env: &env, ..ReadOptions::default() };
    let hook = |secret: &str| format!("hooks: {{stop: {{type: webhook, url: 'http://h', secret: {secret}}}}}");
    let read = |secret: &str| parse("f", &hook(secret), Format::Yaml, &options);
    for (secret, count) in [
        ("'${env.KEY}'".to_owned(), 1),
        (SECRET.to_owned(), 1),
        (format!("{{file: '{}'}}", path.display()), 1),
        (format!("['${{env.KEY}}', {{file: '{}'}}]", path.display()), 2),
    ] {
        let config = read(&secret).unwrap();
        let HandlerDefinition::Webhook(webhook) = &config.hooks.groups[0].hooks[0].handler else { panic!("{secret}") };
        assert_eq!(webhook.secrets, vec![SECRET; count], "{secret}");
        assert!(!format!("{webhook:?}").contains(SECRET));
    }
    for (secret, kind) in [
        ("'${env.BAD}'", "invalid_value"),
        ("whsec_hunter2", "invalid_value"),
        ("[hunter2]", "invalid_value"),
        ("'${env.NONE}'", "missing_variable"),
        ("{file: /nowhere}", "missing_file"),
        ("5", "wrong_type"),
    ] {
        let error = read(secret).unwrap_err();
        assert_eq!(error.kind().map(DiagnosticKind::name), Some(kind), "{secret}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
