use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::tools::tests::Stage;

#[tokio::test]
async fn a_text_that_is_there_once_is_replaced() {
    let stage = Stage::new();
    stage.write("a.rs", "fn one() {}\nfn two() {}\n");
    let edit = json!({"path": "a.rs", "old_string": "two() {}", "new_string": "three() {\n}"});
    let output = stage.call("edit", edit).await;
    assert_eq!((output.text.as_str(), output.error), ("edited a.rs at line 2", None));
    assert_eq!(stage.read("a.rs"), "fn one() {}\nfn three() {\n}\n");
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,3 @@\n fn one() {}\n-fn two() {}\n+fn three() {\n+}\n";
    assert_eq!(output.diff.as_deref(), Some(diff));
    assert_eq!((output.changes.len(), output.changes[0].size), (1, 27));
}

#[tokio::test]
async fn all_of_them_are_replaced_where_that_is_asked_for() {
    let stage = Stage::new();
    stage.write("a.txt", "x x\nx\n");
    let text =
        stage.done("edit", json!({"path": "a.txt", "old_string": "x", "new_string": "yy", "replace_all": true})).await;
    assert_eq!(
        (text.as_str(), stage.read("a.txt").as_str()),
        ("edited a.txt at 3 places: lines 1, 1, 2", "yy yy\nyy\n")
    );
}

#[tokio::test]
async fn why_there_is_no_edit_is_said_so_that_the_next_one_fits() {
    let stage = Stage::new();
    let file = "fn main() {\n    let total = sum(&items);\n    print(total);\n    print(total);\n}\n";
    stage.write("a.rs", file);
    for (old, says) in [
        ("", "`old_string` is empty"),
        ("print(total);", "more than once, at lines 3, 4: take in lines around it, or set `replace_all`"),
        ("let total = sum(items);", "The closest is line 2:\n     2\t    let total = sum(&items);"),
        ("  let total = sum(&items);\n  print(total);", "The closest is line 2 (only white space differs):\n     2\t"),
        ("    print(total);\n    print(sum);", "The closest is line 4:\n     4\t"),
        ("    print(total);\n}\nmore", "The closest begins at line 4, but the file ends before it does."),
        ("nothing of the kind", "No line is like its first one"),
        ("\t\t\n\n", "It is white space alone"),
    ] {
        let (kind, text) = stage.refused("edit", json!({"path": "a.rs", "old_string": old, "new_string": "new"})).await;
        assert_eq!((kind, text.contains(says)), (ToolErrorKind::InvalidInput, true), "{old:?}: {text}");
    }
    let same = json!({"path": "a.rs", "old_string": "main", "new_string": "main"});
    assert!(stage.refused("edit", same).await.1.contains("are the same"));
    assert_eq!(stage.read("a.rs"), file);
    for (path, kind) in [("b.rs", ToolErrorKind::NotFound), ("new/b.rs", ToolErrorKind::NotFound)] {
        let edit = json!({"path": path, "old_string": "a", "new_string": "b"});
        assert_eq!(stage.refused("edit", edit).await.0, kind);
    }
    assert!(!stage.path("new").exists());
}

#[tokio::test]
async fn other_bytes_and_line_ends_stay_as_they_are() {
    let stage = Stage::new();
    stage.write("latin.txt", b"caf\xe9 one\r\ntwo\r\nthree");
    stage.done("edit", json!({"path": "latin.txt", "old_string": "one\ntwo\n", "new_string": "1\n2\n"})).await;
    assert_eq!(std::fs::read(stage.path("latin.txt")).unwrap(), b"caf\xe9 1\r\n2\r\nthree");
    stage.write("binary", b"one\0two");
    let edit = json!({"path": "binary", "old_string": "one", "new_string": "x"});
    assert!(stage.refused("edit", edit).await.1.contains("binary data"));
}

fn edited(content: &str, old: &str, new: &str, all: bool) -> Result<String, Wrong> {
    replaced(content.as_bytes(), old, new, all).map(|edited| String::from_utf8(edited.content).unwrap())
}

#[test]
fn one_that_overlaps_the_next_is_not_there_once() {
    assert_eq!(edited("aaa", "aa", "b", false), Err(Wrong::Many(vec![1, 1])));
    assert_eq!(edited("aaa", "aa", "b", true).as_deref(), Ok("ba"));
}

proptest! {
    #[test]
    fn an_edit_is_made_where_it_is_meant(before in "[ab\n]{0,12}", old in "[abc\n]{1,4}", new in "[abc\n]{0,4}", after in "[ab\n]{0,12}") {
        let content = format!("{before}{old}{after}");
        let places = (0..content.len()).filter(|at| content[*at..].starts_with(&old)).count();
        match edited(&content, &old, &new, false) {
            Ok(text) => {
                prop_assert_eq!(places, 1);
                prop_assert_eq!(text, format!("{before}{new}{after}"));
            }
            Err(Wrong::Same) => prop_assert_eq!(&old, &new),
            Err(Wrong::Many(lines)) => prop_assert!(places > 1 && lines.len() > 1),
            Err(wrong) => prop_assert!(false, "{:?}", wrong),
        }
        if old != new {
            prop_assert_eq!(edited(&content, &old, &new, true).unwrap(), content.replace(&old, &new));
        }
    }

    #[test]
    fn what_is_not_there_is_told_for_any_text(content in "[ab \n\r]{0,30}", old in "[abc \n]{1,10}") {
        if let Err(wrong) = replaced(content.as_bytes(), &old, "new", false) {
            prop_assert!(!wrong.told("file", content.as_bytes(), &old).is_empty());
        }
    }
}
