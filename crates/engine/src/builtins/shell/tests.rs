use proptest::prelude::*;

use super::*;

/// The words of each command; what is not known is `?`.
fn words(line: &str) -> Vec<Vec<String>> {
    let shown = |word: &Word| {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Glob(glob) => format!("<{glob}>"),
            Part::Variable(name) => format!("${name}"),
            Part::Unknown => "?".to_owned(),
        };
        word.parts.iter().map(part).collect::<String>()
    };
    parse(line).commands.iter().map(|command| command.words.iter().map(shown).collect()).collect()
}

#[test]
fn commands_are_found_wherever_they_stand() {
    for (line, want) in [
        ("ls -l", vec![vec!["ls", "-l"]]),
        (
            "a && b || c; d & e | f |& g\nh",
            vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"], vec!["g"], vec!["h"]],
        ),
        ("(cd x; rm y)", vec![vec!["cd", "x"], vec!["rm", "y"]]),
        ("{ a; b; }", vec![vec!["a"], vec!["b"]]),
        ("if a; then b; else c; fi", vec![vec!["a"], vec!["b"], vec!["c"]]),
        ("while ! a; do b; done < f", vec![vec!["a"], vec!["b"], vec![]]),
        ("echo $(rm x) `rm y`", vec![vec!["rm", "x"], vec!["rm", "y"], vec!["echo", "?", "?"]]),
        ("echo \"$(rm \"a b\")\"", vec![vec!["rm", "a b"], vec!["echo", "?"]]),
        ("diff <(rm a) >(rm b)", vec![vec!["rm", "a"], vec!["rm", "b"], vec!["diff", "?", "?"]]),
        ("A=1 B=$(rm x) c", vec![vec!["rm", "x"], vec!["c"]]),
        ("ls # rm x", vec![vec!["ls"]]),
        ("l\\\ns a\\ b", vec![vec!["ls", "a b"]]),
        ("cat <<EOF\n$(rm x)\nEOF\nls", vec![vec!["cat"], vec!["rm", "x"], vec!["ls"]]),
        ("cat <<'EOF'\n$(rm x)\nEOF\nls", vec![vec!["cat"], vec!["ls"]]),
        ("", vec![]),
    ] {
        assert_eq!(words(line), want, "{line}");
        assert!(parse(line).understood, "{line}");
    }
}

#[test]
fn quotes_are_taken_off_and_expansions_kept() {
    for (line, want) in [
        (r#"r"m" -'r'f"#, vec!["rm", "-rf"]),
        (r"\rm", vec!["rm"]),
        (r"$'\x72\155' $'\u0061\n'", vec!["rm", "a\n"]),
        (r#""a $B ${C} \$d '*'""#, vec!["a $B $C $d '*'"]),
        ("'$B' *.rs {a,b} a,b {}", vec!["$B", "<*>.rs", "<{>a<,>b<}>", "a,b", "{}"]),
        ("~/x ~u/x a~", vec!["$HOME/x", "?u/x", "a~"]),
        ("'' \"\"", vec!["", ""]),
        ("$1 $? ${#a} $", vec!["?", "?", "?", "$"]),
    ] {
        assert_eq!(words(line), vec![want.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()], "{line}");
        assert!(parse(line).understood, "{line}");
    }
}

#[test]
fn redirections_assignments_and_pipes_stand_beside_the_words() {
    let script = parse("A=1 PATH=. cmd x 2>&1 >out <in 2>>log &>all | sh");
    let [cmd, sh] = &script.commands[..] else { panic!("{script:?}") };
    let names: Vec<_> = cmd.assignments.iter().map(|(name, value)| (name.as_str(), value.fixed().unwrap())).collect();
    assert_eq!(names, [("A", "1".to_owned()), ("PATH", ".".to_owned())]);
    let redirects: Vec<_> = cmd.redirects.iter().map(|it| (it.writes, it.target.fixed().unwrap())).collect();
    let want = [(true, "out"), (false, "in"), (true, "log"), (true, "all")].map(|(writes, to)| (writes, to.to_owned()));
    assert_eq!((redirects, cmd.words.len()), (want.to_vec(), 2));
    assert_eq!(sh.reads, Some(0));
    let script = parse("sh <<X\nrm y\nX\nbash <<< 'rm z'");
    let stdins: Vec<_> = script.commands.iter().map(|command| command.stdin.as_deref()).collect();
    assert_eq!(stdins, [Some("rm y\n"), Some("rm z")]);
}

#[test]
fn what_a_shell_runs_is_seen_behind_lines_that_go_on_and_quotes_within_quotes() {
    for line in [
        // A carriage return is no blank, so no comment begins behind it.
        "echo a \r#; rm x",
        "cat <<EOF\r\nls\nEOF\r\nrm x",
        "cat <<EOF\nE\\\nOF\nrm x\nEOF",
        "cat <<EOF\n$(echo \" # \"; rm x\n)\nEOF",
        "cat <<EOF\n\" `rm x`\nEOF",
    ] {
        let found = words(line);
        assert!(found.iter().any(|words| words == &["rm", "x"]), "{line:?}: {found:?}");
    }
}

#[test]
fn what_is_not_read_is_not_understood() {
    for line in [
        "'open",
        "\"open",
        "$(open",
        "(open",
        "a)",
        "`open",
        "f() { rm x; }; f",
        "case x in a) rm y;; esac",
        "a=(1 2)",
        "echo $((1+1))",
        "echo $[ '$(rm y)' ]",
        "echo $(\\\n( 'x$(rm y)' ))",
        "(\\\n( 'x$(rm y)' ))",
        "echo \"$\\\n(rm y)\"",
        "cat <<\\\n-EOF\nEOF\nrm y\n-EOF",
        "echo $(cat <<EOF)\nrm y\nEOF",
        "echo \"`echo \\\" # \\\"; rm y\n`\"",
        "echo ${x:-$(rm y)}",
        "echo ${x:-y}",
        "cat <<EOF\nnever ends",
        "a >",
        &"(".repeat(100),
        &"$(".repeat(100),
        &"x".repeat(LENGTH + 1),
    ] {
        assert!(!parse(line).understood, "{line}");
    }
}

proptest! {
    #[test]
    fn any_line_is_read(line in r#"[a-c $(){}`'"\\|&;<>\n=~*#\[\],]{0,40}|.*"#) {
        parse(&line);
    }

    #[test]
    fn a_quoted_text_is_one_word(text in "[^']{0,20}") {
        let script = parse(&format!("echo '{text}'"));
        prop_assert!(script.understood);
        let words: Vec<_> = script.commands[0].words.iter().map(|word| word.fixed().unwrap()).collect();
        prop_assert_eq!(words, vec!["echo".to_owned(), text]);
    }
}
