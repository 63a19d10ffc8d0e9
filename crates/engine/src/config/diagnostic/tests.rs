use super::*;

fn error(text: &str, span: Range<usize>, secrets: &[Range<usize>]) -> ConfigError {
    let problem = Diagnostic::new(DiagnosticKind::InvalidValue, "a", "wrong").at(span);
    ConfigError::new("f.yaml", text, secrets, vec![problem])
}

#[test]
fn each_kind_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = DiagnosticKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), DiagnosticKind::ALL.len());
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_8".contains(&byte))));
}

#[test]
fn columns_are_characters() {
    assert_eq!(error("é: ü\nö: ß\n", 11..13, &[]).to_string(), "f.yaml:2:4: wrong [invalid_value]\n    ö: ß\n       ^",);
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let text = format!("{}here{}", "a".repeat(5000), "b".repeat(5000));
    let shown = error(&text, 5000..5004, &[]).to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "f.yaml:1:5001: wrong [invalid_value]");
    assert_eq!(lines[1].trim(), format!("{}here{}", "a".repeat(50), "b".repeat(46)));
    assert_eq!(lines[2].trim(), "^^^^");
    assert_eq!(lines[1].find("here"), lines[2].find('^'));
}

#[test]
fn a_place_outside_of_the_text_is_its_end() {
    for span in [2..2, 9..12, 1..usize::MAX] {
        assert!(error("ab", span.clone(), &[]).to_string().starts_with("f.yaml:1:"), "{span:?}");
    }
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
    let shown = error("a: \u{1b}[31m\u{7}\tx", 0..1, &[]).to_string();
    assert!(shown.chars().all(|character| character == '\n' || !character.is_control()), "{shown:?}");
}

#[test]
fn user_information_of_addresses_is_starred_wherever_it_stands() {
    for (text, masked) in [
        ("url: http://me:hunter2@h/x # http://h", "url: http://**********@h/x # http://h"),
        ("\"https://t\u{f6}ken@h\"", "\"https://******@h\""),
        ("http://a:p?q@h http://b@h", "http://*****@h http://*@h"),
        ("// a comment of me@h", "// a comment of me@h"),
        ("http://h/@me", "http://h/@me"),
    ] {
        let error = error(text, 0..1, &[]);
        assert_eq!(&*error.source_text, masked);
        assert_eq!(error.source_text.len(), text.len(), "{text}");
    }
}

#[test]
fn concealed_text_is_starred_and_keeps_its_lines() {
    let masked = error("a: [s\u{e9}\ncret, b]\nc", 0..1, &[4..12, 5..9]).source_text;
    assert_eq!(&*masked, "a: [***\n****, b]\nc");
}

#[test]
fn problems_beyond_the_bound_are_not_kept() {
    let found = Diagnostics::new();
    for number in 0..1000 {
        found.report(Diagnostic::new(DiagnosticKind::InvalidValue, "", number.to_string()));
    }
    let error = found.finish_text("f", "", ()).unwrap_err();
    assert_eq!(error.diagnostics.len(), MAX_PROBLEMS);
    assert!(error.to_string().ends_with("there may be more"));
}
