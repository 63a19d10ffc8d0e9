use proptest::prelude::*;
use serde_json::json;

use super::*;

fn input() -> Value {
    json!({
        "session_id": "s1", "cwd": "/work", "tool_name": "shell", "tool_use_id": "t1",
        "tool_input": {"cmd": "ls -l && echo <ok>", "n": 3, "flags": ["a", "b"], "deep": {"x": null}, "tool_use_id": 7},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
        "usage": {"input_tokens": 12}, "of_its_own": true,
    })
}

fn rendered(template: &str) -> String {
    match Template::parse(template).and_then(|parsed| parsed.render(&input(), Missing::Zero)) {
        Ok(text) => text,
        Err(error) => format!("{}: {}", error.offset, error.message),
    }
}

#[test]
fn fields_have_docker_agents_names_and_their_own() {
    for (template, text) in [
        ("plain", "plain"),
        ("{{ .ToolName }}", "shell"),
        ("{{.ToolName}} in {{.Cwd}}", "shell in /work"),
        ("{{ .tool_name }}", "shell"),
        ("{{ tool_name }}", "shell"),
        ("{{ $.ToolName }}", "shell"),
        ("{{ .SessionID }} {{ .ToolUseID }}", "s1 t1"),
        ("{{ .ToolInput.cmd }}", "ls -l && echo <ok>"),
        ("{{ tool_input.cmd }}", "ls -l && echo <ok>"),
        ("{{ .Usage.InputTokens }}", "12"),
        ("{{ .of_its_own }}", "true"),
        ("{{ .ToolInput.flags }} {{ .ToolInput.deep }}", "[a b] map[x:<nil>]"),
    ] {
        assert_eq!(rendered(template), text, "{template}");
    }
}

#[test]
fn a_field_that_is_not_filled_is_empty_and_one_that_no_payload_has_is_an_error() {
    for missing in [Missing::Zero, Missing::Error] {
        let render = |template: &str| Template::parse(template).unwrap().render(&json!({}), missing);
        assert_eq!(render("[{{ .Source }}{{ .Iteration }} {{ .ToolInput }}]").unwrap(), "[0 map[]]", "{missing:?}");
        assert_eq!(render("{{ .Cost }}").unwrap(), "<no value>", "{missing:?}");
        for template in ["{{ .NoSuchField }}", "x {{ .SessionId }}", "{{ $.nope }}"] {
            assert!(render(template).is_err(), "{template} {missing:?}");
        }
        assert!(render("{{ .ToolName.x }}").is_err(), "{missing:?}");
    }
}

#[test]
fn a_key_that_a_map_does_not_have_is_written_as_no_value_or_is_an_error() {
    for template in ["{{ .ToolInput.no }}", "{{ .ToolInput.no.deeper }}", "{{ index .ToolInput \"no\" }}"] {
        let template = Template::parse(template).unwrap();
        assert_eq!(template.render(&input(), Missing::Zero).unwrap(), "<no value>");
        assert!(template.render(&input(), Missing::Error).is_err());
    }
    let guarded = Template::parse("{{ if .ToolInput }}{{ .ToolInput.cmd }}{{ end }}").unwrap();
    assert_eq!(guarded.render(&json!({}), Missing::Error).unwrap(), "");
}

#[test]
fn functions_take_arguments_and_pipes() {
    for (template, text) in [
        ("{{ toJSON .ToolInput.flags }}", r#"["a","b"]"#),
        ("{{ .ToolInput.flags | toJSON | truncate 4 }}", r#"["a"…"#),
        ("{{ truncate 5 .Cwd }}", "/work"),
        ("{{ truncate 0 .Cwd }}{{ truncate -1 .Cwd }}", "/work/work"),
        ("{{ truncate 3 \"aéé\" }}|{{ truncate 2 \"aéé\" }}", "aé…|a…"),
        ("{{ default \"none\" .Source }} {{ .Cwd | default \"none\" }}", "none /work"),
        ("{{ printf \"%s:%d %q %v%%\" .ToolName 7 \"a\\\"b\" true }}", "shell:7 \"a\\\"b\" true%"),
        ("{{ len .Messages }} {{ index .ToolInput.flags 1 }} {{ index .ToolInput \"cmd\" | len }}", "2 b 18"),
        (
            "{{ eq .ToolName \"bash\" \"shell\" }} {{ ne 1 1.0 }} {{ lt 1 2 }} {{ ge \"b\" \"a\" }}",
            "true false true true",
        ),
        ("{{ and .Cwd .Source }}|{{ or .Source .Cwd }}|{{ not .Source }}", "|/work|true"),
        ("{{ (index .Messages 1).Content }}", "ho"),
        ("{{ len (toJSON (index .ToolInput.flags 0)) }}", "3"),
        ("{{ `raw \\ {{ text` }}", "raw \\ {{ text"),
        ("{{ print 1 \"x\" nil }}", "1x<no value>"),
    ] {
        assert_eq!(rendered(template), text, "{template}");
    }
}

#[test]
fn blocks_choose_and_repeat() {
    for (template, text) in [
        ("{{ if eq .ToolName \"shell\" }}yes{{ else }}no{{ end }}", "yes"),
        ("{{ if .Source }}a{{ else if .Cwd }}b{{ else }}c{{ end }}", "b"),
        ("{{ range .Messages }}{{ .Role }}={{ .Content }};{{ end }}", "user=hi;assistant=ho;"),
        ("{{ range .ToolInput.flags }}{{ . }}@{{ $.ToolName }},{{ end }}", "a@shell,b@shell,"),
        ("{{ range .Files }}x{{ else }}none{{ end }}", "none"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ with .ToolInput }}{{ .cmd }}{{ end }}{{ with .Source }}x{{ else }}-{{ end }}", "ls -l && echo <ok>-"),
        ("a {{- /* not shown */ -}} b", "ab"),
        ("a\n{{- if true }} b {{- end }}\n", "a b\n"),
    ] {
        assert_eq!(rendered(template), text, "{template}");
    }
}

#[test]
fn what_is_put_in_is_no_template() {
    let input = json!({"prompt": "{{ .SessionID }}", "session_id": "s"});
    let template = Template::parse("{{ .Prompt }}").unwrap();
    assert_eq!(template.render(&input, Missing::Error).unwrap(), "{{ .SessionID }}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (template, offset) in [
        ("{{ .ToolName ", 0),
        ("ab {{", 3),
        ("{{ }}", 2),
        ("{{ .A | }}", 7),
        ("{{ .A .B }}", 3),
        ("{{ \"a }}", 3),
        ("{{ (.A }}", 3),
        ("{{ .A ) }}", 6),
        ("{{ shout .A }}", 3),
        ("x {{ .A | shout }}", 10),
        ("{{ truncate .A }}", 3),
        ("{{ len len .A }}", 7),
        ("{{ if .A }}", 0),
        ("{{ end }}", 0),
        ("{{ if .A }}{{ else }}{{ else }}{{ end }}", 21),
        ("{{ template \"x\" }}", 0),
        ("{{ $x }}", 3),
        ("{{ 1..2 }}", 3),
        ("{{ ..A }}", 3),
        ("{{ # }}", 3),
        ("{{/* never", 0),
    ] {
        let error = Template::parse(template).unwrap_err();
        assert_eq!(error.offset, offset, "{template}: {error}");
    }
}

#[test]
fn a_template_cannot_grow_without_end() {
    let nested = |depth: usize| "{{ range 1000 }}".repeat(depth) + "x" + &"{{ end }}".repeat(depth);
    assert!(Template::parse(&nested(3)).unwrap().render(&json!({}), Missing::Zero).is_err());
    assert!(Template::parse(&nested(65)).is_err());
    assert!(Template::parse(&format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000))).is_err());
    let long = json!({"prompt": "x".repeat(MAX_RENDERED)});
    assert!(Template::parse("{{ .Prompt }}").unwrap().render(&long, Missing::Zero).is_ok());
    assert!(Template::parse("{{ .Prompt }}!").unwrap().render(&long, Missing::Zero).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = Template::parse(&text);
    }

    #[test]
    fn no_template_makes_the_renderer_panic(
        words in proptest::collection::vec(proptest::sample::select(vec![
            "{{", "}}", "{{-", " -}}", "if", "else", "end", "range", "with", " ", ".", ".ToolInput", ".flags", "$", "|",
            "(", ")", "toJSON", "truncate", "3", "-1", "0.5", "\"é\"", "index", "printf", "eq", "len", "é", "tool_input",
        ]), 0..24)
    ) {
        if let Ok(template) = Template::parse(&words.concat()) {
            for missing in [Missing::Zero, Missing::Error] {
                let _ = template.render(&input(), missing);
            }
        }
    }

    #[test]
    fn truncate_keeps_a_beginning_of_at_most_that_many_bytes(text in any::<String>(), length in 1..40_usize) {
        let template = Template::parse(&format!("{{{{ truncate {length} .Prompt }}}}")).unwrap();
        let cut = template.render(&json!({"prompt": text}), Missing::Error).unwrap();
        match cut.strip_suffix('…').filter(|_| text.len() > length) {
            Some(kept) => prop_assert!(kept.len() <= length && length - kept.len() < 4 && text.starts_with(kept)),
            None => prop_assert_eq!(cut, text),
        }
    }

    #[test]
    fn text_without_holes_is_itself(text in "[^{}]*") {
        prop_assert_eq!(Template::parse(&text).unwrap().render(&json!({}), Missing::Error).unwrap(), text);
    }
}
