use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tool(name: &str) -> Tool {
    Tool { name: name.into(), ..Tool::default() }
}

fn of(tool: &Tool, rules: &Rules, arguments: Value) -> Option<Ruling> {
    let arguments = arguments.as_object().unwrap();
    by_rules(&StandingRules::default(), rules, Subject { tool, arguments })
}

fn allow(rule: &str) -> Rules {
    Rules::parse([rule].as_slice().iter().copied(), [].iter().copied(), [].iter().copied()).unwrap()
}

fn is_allowed(rule: &str, name: &str, arguments: Value) -> bool {
    of(&tool(name), &allow(rule), arguments) == Some(Ruling::Allow(Source::SessionAllow))
}

fn is_granted(rule: &str, name: &str, arguments: Value) -> bool {
    let tool = tool(name);
    allow(rule).grant(Subject { tool: &tool, arguments: arguments.as_object().unwrap() })
}

#[test]
fn a_rule_fits_a_tool_by_its_name_and_its_arguments() {
    for (rule, name, arguments, fits) in [
        ("read_*", "read_file", json!({}), true),
        ("mcp:github:*", "mcp:github:create_issue", json!({}), true),
        ("mcp:github:create_issue:title=a*", "mcp:github:create_issue", json!({"title": "abc"}), true),
        ("write_file:path=/etc/*", "write_file", json!({"path": "/etc/ssh/config"}), true),
        ("write_file:path=/etc/*", "write_file", json!({"path": "/home/etc/"}), false),
        ("write_file:path=/etc/*", "write_file", json!({}), false),
        ("fetch:url=https://a.example:8080/*", "fetch", json!({"url": "https://a.example:8080/x"}), true),
        ("call:a=1:b=true", "call", json!({"a": 1, "b": true}), true),
        ("call:a=1:b=true", "call", json!({"a": 1}), false),
        ("call:a=*", "call", json!({"a": null}), true),
        ("fetch", "fetch_all", json!({}), false),
    ] {
        assert_eq!(is_allowed(rule, name, arguments.clone()), fits, "{rule} {name} {arguments}");
    }
}

#[test]
fn an_open_end_allows_no_second_command() {
    for (rule, line, allowed) in [
        ("shell:cmd=ls*", "ls", true),
        ("shell:cmd=ls*", "LS\t/tmp", true),
        ("shell:cmd=ls*", "lsof", false),
        ("shell:cmd=ls*", "ls; rm -rf ~", false),
        ("shell:cmd=ls*", "ls $(rm -rf ~)", false),
        ("shell:cmd=ls*", "ls\nrm -rf ~", false),
        ("shell:cmd=ls*", "ls > ~/.bashrc", false),
        ("shell:cmd=git *", "git status", true),
        ("shell:cmd=git * --dry-run", "git push --dry-run", true),
        ("shell:cmd=git * --dry-run", "git push; rm a --dry-run", false),
        ("shell:cmd=ls * | wc*", "ls a | wc -l", true),
        ("shell:cmd=*", "ls; pwd", true),
        ("shell", "ls; pwd", true),
        ("shell:cmd=ls; pwd", "ls; pwd", true),
    ] {
        assert_eq!(is_allowed(rule, "shell", json!({"cmd": line})), allowed, "{rule} {line}");
    }
    assert!(is_allowed("note:cmd=ls*", "note", json!({"cmd": "ls; rm"})), "a tool that runs nothing is not a shell");
    let of_category = Tool { name: "runner".into(), category: Some("shell".into()), ..Tool::default() };
    assert_eq!(of(&of_category, &allow("runner:cmd=ls*"), json!({"cmd": "ls; rm"})), None);
}

#[test]
fn an_open_end_denies_and_asks_about_all_that_it_fits() {
    let rules = |ask: &str, deny: &str| Rules {
        allow: vec![],
        ask: vec![ask.parse().unwrap()],
        deny: vec![deny.parse().unwrap()],
    };
    let rules = rules("shell:cmd=curl*", "shell:cmd=rm*");
    for line in ["rm a", "rmdir a", "rm a; ls"] {
        assert_eq!(of(&tool("shell"), &rules, json!({"cmd": line})), Some(Ruling::Deny(Source::SessionDeny)), "{line}");
    }
    assert_eq!(of(&tool("shell"), &rules, json!({"cmd": "curl a | sh"})), Some(Ruling::Ask));
}

#[test]
fn a_grant_holds_against_an_asking_hook_where_it_surely_means_the_call() {
    for (rule, arguments, granted) in [
        ("shell", json!({"cmd": "mkdir x"}), true),
        ("shell", json!({"cmd": "mkdir x && rm -rf ~"}), false),
        ("shell:cmd=mkdir*", json!({"cmd": "mkdir -p x"}), true),
        ("shell:cmd=mkdir*", json!({"cmd": "mkdirs"}), false),
        ("shell:cmd=mkdir*", json!({"cmd": "mkdir x && rm -rf ~"}), false),
        ("shell:cmd=mkdir x", json!({"cmd": "MKDIR x"}), true),
        ("shell:cmd=*", json!({"cmd": "mkdir x"}), false),
        ("shell:cmd=mk*r*", json!({"cmd": "mkdir x"}), false),
        ("shell:cmd=mkdir*:cwd=/tmp", json!({"cmd": "mkdir x", "cwd": "/tmp"}), false),
        ("sh*", json!({"cmd": "mkdir x"}), false),
        ("shell", json!({"cmd": "mkdir x", "script": "rm a"}), false),
        ("shell", json!({"argv": ["mkdir", "x"]}), false),
    ] {
        assert_eq!(is_granted(rule, "shell", arguments.clone()), granted, "{rule} {arguments}");
    }
    assert!(is_granted("write_*", "write_file", json!({"path": "a"})));
}

#[test]
fn the_tiers_are_heard_in_order_and_within_one_a_deny_comes_first() {
    let one = |rule: &str| vec![rule.parse().unwrap()];
    let allows = || Rules { allow: one("t"), ..Rules::default() };
    let asks = || Rules { ask: one("t"), ..Rules::default() };
    let denies = || Rules { deny: one("t"), ..Rules::default() };
    let both = Rules { allow: one("t"), ask: one("t"), deny: one("t") };
    let none = Rules::default;
    let tool = tool("t");
    for (managed, session, user, workspace, ruling) in [
        (denies(), allows(), allows(), allows(), Some(Ruling::Deny(Source::ManagedDeny))),
        (asks(), allows(), none(), none(), Some(Ruling::Ask)),
        (none(), allows(), denies(), none(), Some(Ruling::Allow(Source::SessionAllow))),
        (none(), asks(), allows(), none(), Some(Ruling::Ask)),
        (none(), none(), allows(), denies(), Some(Ruling::Deny(Source::TeamDeny))),
        (none(), none(), denies(), allows(), Some(Ruling::Deny(Source::TeamDeny))),
        (none(), none(), none(), allows(), Some(Ruling::Allow(Source::TeamAllow))),
        (none(), none(), asks(), asks(), None),
        (none(), both, none(), none(), Some(Ruling::Deny(Source::SessionDeny))),
    ] {
        let standing = StandingRules { managed, user, workspace };
        let subject = Subject { tool: &tool, arguments: &Map::new() };
        assert_eq!(by_rules(&standing, &session, subject), ruling, "{standing:?} {session:?}");
    }
}

#[test]
fn a_text_that_is_no_rule_says_why() {
    for (text, problem) in [
        ("", "it begins with the name of a tool, or `*`"),
        (":cmd=ls", "it begins with the name of a tool, or `*`"),
        ("shell:cmd=[]", "`[]` fits nothing"),
        ("[z-a]", "a range in `[…]` ends before it begins"),
    ] {
        let error = text.parse::<Rule>().unwrap_err();
        assert_eq!((error.rule.as_str(), error.problem.as_str()), (text, problem));
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_rule_panic(rule in "\\PC*", name in "\\PC*", line in "\\PC*") {
        if let Ok(rule) = rule.parse::<Rule>() {
            let tool = Tool { name: name.into(), category: Some("shell".into()), ..Tool::default() };
            let arguments = Map::from_iter([("cmd".to_owned(), line.into())]);
            let subject = Subject { tool: &tool, arguments: &arguments };
            let rules = Rules { allow: vec![rule], ..Rules::default() };
            let allowed = opinion(&[&rules], subject) == Some(Opinion::Allow);
            prop_assert!(allowed || !rules.grant(subject));
        }
    }

    #[test]
    fn an_open_end_never_allows_what_joins_commands(head in "[a-z]{1,4}", tail in ".{0,6}[;&|<>()$`\\\\\n].{0,6}") {
        let line = json!({"cmd": format!("{head} {tail}")});
        let rule = format!("shell:cmd={head}*");
        prop_assert!(!is_allowed(&rule, "shell", line.clone()));
        prop_assert!(!is_granted(&rule, "shell", line));
    }
}
