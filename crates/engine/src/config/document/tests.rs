use proptest::prelude::*;
use serde_json::json;

use super::*;

const FORMATS: [Format; 3] = [Format::Yaml, Format::Json, Format::Toml];

fn read(text: &str, format: Format) -> Result<Document, ConfigError> {
    Document::parse("f", text, format)
}

fn yaml(text: &str) -> serde_json::Value {
    read(text, Format::Yaml).unwrap_or_else(|error| panic!("{text}: {error}")).root.to_json()
}

fn kind(text: &str, format: Format) -> DiagnosticKind {
    read(text, format).map_or_else(|error| error.kind().unwrap(), |document| panic!("{text}: {:?}", document.root))
}

#[test]
fn plain_scalars_are_of_the_core_schema() {
    for (text, value) in [
        ("~", json!(null)),
        ("", json!(null)),
        ("True", json!(true)),
        ("yes", json!("yes")),
        ("-17", json!(-17)),
        ("+17", json!(17)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("017", json!(17)),
        ("1.50", json!(1.5)),
        ("1e3", json!(1000.0)),
        (".5", json!(0.5)),
        ("1_000", json!("1_000")),
        ("0x", json!("0x")),
        ("1.2.3", json!("1.2.3")),
        ("infinity", json!("infinity")),
        ("nan", json!("nan")),
        ("e5", json!("e5")),
        ("+", json!("+")),
        (".", json!(".")),
        ("2026-01-02", json!("2026-01-02")),
        ("'17'", json!("17")),
        ("!!str 17", json!("17")),
        ("! 17", json!("17")),
        ("!!float 17", json!(17)),
    ] {
        assert_eq!(yaml(&format!("a: {text}\n")), json!({ "a": value }), "{text}");
    }
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    let text = "base: &base {type: command, timeout: 1}\nother: &other {name: o}\nlist:\n  - *base\n  \
                - {<<: *base, timeout: 2}\n  - {<<: [*other, *base], type: builtin}\n  - {'<<': 1}\n";
    let base = json!({ "type": "command", "timeout": 1 });
    let second = json!({ "type": "command", "timeout": 2 });
    let third = json!({ "type": "builtin", "name": "o", "timeout": 1 });
    assert_eq!(yaml(text)["list"], json!([base, second, third, { "<<": 1 }]));
}

#[test]
fn what_configuration_has_no_use_for_is_refused() {
    for text in [
        "a: 1\n---\nb: 2\n",
        "? [a]\n: b\n",
        "a: !secret x\n",
        "&a [*a]\n",
        "a: !!int x\n",
        "<<: 1\n",
        "&k a: 1\n",
        "&a b: *a\n*a : 1\n",
    ] {
        assert_eq!(kind(text, Format::Yaml), DiagnosticKind::UnsupportedSyntax, "{text}");
    }
}

#[test]
fn a_key_that_stands_twice_is_refused_with_both_places() {
    for (text, format, places) in [
        ("a: 1\nb: {c: 1, c: 2}\na: 3\n", Format::Yaml, vec![(15, 9), (21, 0)]),
        (r#"{"a": 1, "\u0061": 2}"#, Format::Json, vec![(9, 1)]),
        ("a = 1\na = 2\n", Format::Toml, vec![(6, 0)]),
    ] {
        let error = read(text, format).unwrap_err();
        let found: Vec<(usize, usize)> = error
            .diagnostics
            .iter()
            .inspect(|problem| assert_eq!(problem.kind, DiagnosticKind::DuplicateKey))
            .map(|problem| (problem.span.clone().unwrap().start, problem.related[0].0.start))
            .collect();
        assert_eq!(found, places, "{text}");
    }
}

#[test]
fn places_are_bytes_of_the_text() {
    for (text, format) in [
        ("\u{feff}é: [ü, \"ö\"]\nb:\n  - 'ß'\n", Format::Yaml),
        ("\u{feff}{\"é\": [\"ü\",\t\"ö\"], \"b\": [\"ß\"]}", Format::Json),
        ("\u{feff}'é' = [\"ü\", 'ö']\nb = ['ß']\n", Format::Toml),
    ] {
        let document = read(text, format).unwrap();
        let mut found = Vec::new();
        for (key, list) in document.root.entries() {
            let Value::Seq(items) = &list.value else { panic!("{list:?}") };
            let unquoted = |span| document.text_at(span).trim_matches(['"', '\'']);
            found.push(unquoted(&key.span));
            found.extend(items.iter().map(|item| unquoted(&item.span)));
        }
        assert_eq!(found, ["é", "ü", "ö", "b", "ß"], "{text}");
    }
}

#[test]
fn json_is_the_standard_and_no_more() {
    for text in [
        "{a: 1}",
        "[1,]",
        "{\"a\":1,}",
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e999",
        "'a'",
        "nul",
        "NaN",
        "\"\t\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "1 2",
        "{\"a\" 1}",
        "[1 2]",
        "// a\n1",
        "\"a",
        "[",
        "{",
        "\u{a0}1",
    ] {
        assert_eq!(kind(text, Format::Json), DiagnosticKind::Syntax, "{text}");
    }
}

#[test]
fn bombs_are_refused() {
    let laughs: String =
        (1..20).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","))).collect();
    let merges: String = (1..40).map(|n| format!("a{n}: &a{n} {{b{n}: *a{0}, c{n}: *a{0}}}\n", n - 1)).collect();
    let anchors = (0..60).map(|n| format!("&a{n} [")).collect::<String>() + &"1,".repeat(5_000) + &"]".repeat(60);
    let deep = 200_000;
    for (name, text, format) in [
        ("laughs", format!("a0: &a0 [x]\n{laughs}"), Format::Yaml),
        ("merges", format!("a0: &a0 {{x: 1}}\n{merges}"), Format::Yaml),
        ("anchors", anchors, Format::Yaml),
        ("block lists", "- ".repeat(deep), Format::Yaml),
        ("items", "- a\n".repeat(MAX_NODES + 1), Format::Yaml),
        ("mappings", (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect(), Format::Yaml),
        ("json lists", "[".repeat(deep), Format::Json),
        ("json items", format!("[{}1]", "1,".repeat(MAX_NODES)), Format::Json),
        ("json mappings", "{\"a\":".repeat(deep), Format::Json),
        ("toml dots", format!("{}a = 1", "a.".repeat(70)), Format::Toml),
        ("bytes", " ".repeat(MAX_BYTES + 1), Format::Json),
    ] {
        assert_eq!(kind(&text, format), DiagnosticKind::TooLarge, "{name}");
    }
    // Refused by their parsers, within the same bounds.
    for (text, format) in [
        ("[".repeat(deep), Format::Yaml),
        (format!("a={}", "[".repeat(deep)), Format::Toml),
        (format!("{}a = 1", "a.".repeat(deep)), Format::Toml),
    ] {
        assert_eq!(kind(&text, format), DiagnosticKind::Syntax);
    }
}

#[test]
fn a_file_that_is_not_utf8_says_where() {
    let error = Document::from_bytes("f.yaml", b"a: b\nc: \xff\n", None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f.yaml:2:4: byte 8 is not UTF-8 [not_utf8]\n    c:\n       ^\n  help: save the file as UTF-8"
    );
}

#[test]
fn the_format_is_the_extensions_else_the_contents() {
    for (name, format) in [
        ("a.yaml", Some(Format::Yaml)),
        ("a.YML", Some(Format::Yaml)),
        ("a.json", Some(Format::Json)),
        ("a.toml", Some(Format::Toml)),
        ("a", None),
    ] {
        assert_eq!(Format::of_path(Path::new(name)), format, "{name}");
    }
    for (text, format) in [
        ("# c\n{\"a\": 1}", Format::Json),
        ("[hooks]\n", Format::Toml),
        ("dialect = \"native\"\n", Format::Toml),
        ("hooks:\n  a: b = c\n", Format::Yaml),
        ("a: b=c\n", Format::Yaml),
        ("", Format::Yaml),
    ] {
        assert_eq!(Format::of_text(text), format, "{text}");
    }
}

/// Text made of what the three grammars are made of.
fn grammar() -> impl Strategy<Value = String> {
    let tokens: &[&str] = &[
        "a",
        "é",
        "b: ",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ":",
        ", ",
        "&a ",
        "*a",
        "<<: ",
        "\"",
        "'",
        "|\n",
        ">-\n",
        "!!str ",
        "---\n",
        "...\n",
        "# c\n",
        "? ",
        "\t",
        " = ",
        "[[a]]\n",
        "[a.b]\n",
        "1",
        "-1.5e3",
        "true",
        "null",
        "\\u00e9",
        "\\",
        "\u{feff}",
        "\r\n",
        "%TAG ! x\n",
        "\u{85}",
        "\u{2028}",
        "'''",
        "\"\"\"",
        "2020-01-01",
    ];
    proptest::collection::vec(proptest::sample::select(tokens), 0..40).prop_map(|tokens| tokens.concat())
}

fn json_text() -> impl Strategy<Value = String> {
    let tokens: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"a\"",
        "\"b\"",
        "\"",
        "1",
        "-",
        "0",
        ".5",
        "e1",
        "true",
        "null",
        " ",
        "\n",
        "\\n",
        "\\u12",
        "\\ud83d\\ude00",
        "é",
    ];
    proptest::collection::vec(proptest::sample::select(tokens), 0..12).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn no_text_brings_a_reader_down(text in grammar()) {
        for format in FORMATS {
            if let Err(error) = read(&text, format) {
                prop_assert!(!error.diagnostics.is_empty());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn no_bytes_bring_a_reader_down(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in [None, Some(Format::Yaml), Some(Format::Json), Some(Format::Toml)] {
            let _ = Document::from_bytes("f", &bytes, format).map_err(|error| error.to_string());
        }
    }

    #[test]
    fn json_is_read_as_serde_reads_it(text in json_text()) {
        let theirs: Result<serde_json::Value, _> = serde_json::from_str(&text);
        match (read(&text, Format::Json), theirs) {
            (Ok(ours), Ok(theirs)) => prop_assert!(alike(&ours.root.to_json(), &theirs), "{text}"),
            // Only we refuse a key that stands twice; an empty text is an empty file to us.
            (Err(ours), Ok(_)) => prop_assert_eq!(ours.kind(), Some(DiagnosticKind::DuplicateKey), "{}", text),
            (Ok(ours), Err(error)) => prop_assert!(ours.root.value == Value::Null && error.is_eof(), "{text}"),
            (Err(_), Err(_)) => {}
        }
    }
}

/// Equal, where -0 is 0.
fn alike(ours: &serde_json::Value, theirs: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (ours, theirs) {
        (Number(ours), Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        (Array(ours), Array(theirs)) => ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| alike(a, b)),
        (Object(ours), Object(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| a.0 == b.0 && alike(a.1, b.1))
        }
        _ => ours == theirs,
    }
}
