use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Document, ReadError> {
    Document::read(Bytes::copy_from_slice(text.as_bytes()))
}

fn refused(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

#[test]
fn values_are_read_as_they_are() {
    let text = r#" {"a" : [1E+2, -0.5e-1, 12345678901234567890123, true, null], "\u0062\"": "\ud83d\ude00\n/\/"} "#;
    let document = read(text).unwrap();
    assert_eq!(document.value(Document::ROOT), serde_json::from_str::<Value>(text).unwrap());
    let numbers = document.get(Document::ROOT, "a").unwrap();
    assert_eq!(document.raw(document.elements(numbers).next().unwrap()), "1E+2");
    assert_eq!(document.string(Document::ROOT, "b\"").unwrap(), "\u{1f600}\n//");
}

#[test]
fn a_number_out_of_range_is_shown_as_it_is_spelled() {
    assert_eq!(read("[1e400]").unwrap().value(Document::ROOT), json!(["1e400"]));
}

#[test]
fn duplicate_keys_are_refused_at_any_depth() {
    for text in
        [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"[[{"x":{"b":[{"c":1,"d":2,"c":3}]}}]]"#, r#"{"":1,"":2}"#]
    {
        assert!(refused(text).contains("the key stands twice"), "{text}");
    }
    let many: Vec<String> = (0..100).chain([57]).map(|n| format!("\"k{n}\":{n}")).collect();
    assert_eq!(
        read(&format!("{{\"o\":{{{}}}}}", many.join(","))).unwrap_err(),
        ReadError::Ambiguous { place: "o.k57".into(), what: "the key stands twice".into() }
    );
}

#[test]
fn keys_that_look_alike_are_told_apart() {
    let alike = r#""content":1,"context":2,"abcde":3,"aXcYe":4"#;
    assert!(read(&format!("{{{alike}}}")).is_ok());
    assert!(refused(&format!("{{{alike},\"context\":5}}")).contains("the key stands twice"));
}

#[test]
fn deep_nesting_is_refused_not_overflowed() {
    for open in ["[", "{\"a\":"] {
        assert!(refused(&open.repeat(100_000)).contains("nests more than 128 levels"));
    }
    let depth = reader::MAX_DEPTH;
    assert!(read(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).is_ok());
    assert!(read(&format!("{}{}", "[".repeat(depth + 1), "]".repeat(depth + 1))).is_err());
}

#[test]
fn a_table_larger_than_any_chat_is_refused() {
    let many = format!("[{}0]", "0,".repeat(reader::MAX_NODES));
    assert!(refused(&many).contains("two million values"));
}

#[test]
fn what_is_no_single_value_is_refused() {
    for (text, what) in [
        ("", "ends where a value"),
        ("{} {}", "something follows"),
        ("{}x", "something follows"),
        ("\u{feff}{}", "byte order mark"),
        ("[1,]", "a value is expected"),
        ("{\"a\":1,}", "a key is expected"),
        ("{a:1}", "a key is expected"),
        ("{\"a\" 1}", "a colon"),
        ("[1", "inside of an object or array"),
        ("[1}", "a comma or the end"),
        ("01", "something follows"),
        ("-", "a digit"),
        ("1.", "a digit"),
        ("1e", "a digit"),
        ("nul", "a value is expected"),
        ("\"a", "no end"),
        ("\"a\nb\"", "control character"),
        (r#""\x""#, "an escape is unknown"),
        (r#""\ud800""#, "no character"),
        (r#""\ud800\u0041""#, "no character"),
        (r#""\udc00""#, "no character"),
        (r#""\u12g4""#, "no character"),
        ("NaN", "a value is expected"),
    ] {
        assert!(refused(text).contains(what), "{text}: {}", refused(text));
    }
    let latin = Document::read(Bytes::from_static(b"\"\xe9\"")).unwrap_err();
    assert_eq!(latin, ReadError::Malformed { offset: 1, what: "it is not UTF-8" });
}

#[test]
fn a_place_is_named_by_its_way() {
    let document = read(r#"{"a":[{"b":1},{"c":[2,3]}]}"#).unwrap();
    let second = document.elements(document.get(Document::ROOT, "a").unwrap()).nth(1).unwrap();
    let three = document.elements(document.get(second, "c").unwrap()).nth(1).unwrap();
    assert_eq!(document.place(three), "a[1].c[1]");
    assert_eq!(document.place(Document::ROOT), "");
}

#[test]
fn keys_are_mistaken_for_known_ones_by_any_folding() {
    let known = &["messages", "stop_k", "prefix"];
    for word in [
        "Messages",
        "MESSAGES",
        "me\u{17f}\u{17f}ages",
        "stop_\u{212a}",
        "me\u{df}ages",
        "pre\u{fb01}x",
        "pref\u{131}x",
    ] {
        assert!(mistaken(word, known).is_some(), "{word}");
    }
    for word in ["messages", "message", "Message", "mässages"] {
        assert_eq!(mistaken(word, known), None, "{word}");
    }
}

#[test]
fn taking_out_and_putting_in_leaves_the_rest() {
    let text = r#"{ "list" : [ 1 , 2,3 ], "k" : "v" }"#;
    let document = read(text).unwrap();
    let list = document.get(Document::ROOT, "list").unwrap();
    let elements: Vec<At> = document.elements(list).collect();
    let edited = |change: &dyn Fn(&mut Edits)| {
        let mut edits = Edits::default();
        change(&mut edits);
        String::from_utf8(edits.apply(&document).to_vec()).unwrap()
    };
    assert_eq!(edited(&|_| ()), text);
    assert_eq!(edited(&|e| e.remove(list, elements[0])), r#"{ "list" : [2,3 ], "k" : "v" }"#);
    assert_eq!(edited(&|e| e.remove(list, elements[1])), r#"{ "list" : [ 1,3 ], "k" : "v" }"#);
    assert_eq!(edited(&|e| e.remove(list, elements[2])), r#"{ "list" : [ 1 , 2], "k" : "v" }"#);
    assert_eq!(edited(&|e| e.insert(list, None, "0".into())), r#"{ "list" : [0,1 , 2,3 ], "k" : "v" }"#);
    assert_eq!(edited(&|e| e.insert(list, Some(elements[2]), "4".into())), r#"{ "list" : [ 1 , 2,3,4], "k" : "v" }"#);
    let all = |e: &mut Edits| elements.iter().for_each(|at| e.remove(list, *at));
    assert_eq!(edited(&all), r#"{ "list" : [], "k" : "v" }"#);
    assert_eq!(
        edited(&|e| {
            all(e);
            e.insert(list, Some(elements[1]), "9".into());
            e.add_member(&document, Document::ROOT, "n", "null");
        }),
        r#"{ "list" : [9], "k" : "v","n":null}"#
    );
    assert_eq!(
        edited(&|e| {
            e.remove(Document::ROOT, list);
            e.set_text(elements[0], "dropped with its list");
        }),
        r#"{"k" : "v" }"#
    );
}

proptest! {
    #[test]
    fn the_reader_agrees_with_serde_json(text in "[\\[\\]{}\",:0-9a-c\\\\u. eE+-]{0,24}") {
        let ours = read(&text);
        match (serde_json::from_str::<Value>(&text), &ours) {
            (Ok(value), Ok(document)) => prop_assert_eq!(document.value(Document::ROOT), value),
            (Err(error), Ok(document)) => prop_assert!(error.to_string().contains("out of range"), "{}: {}", document.raw(Document::ROOT), error),
            (Ok(_), Err(error)) => prop_assert!(error.to_string().contains("twice"), "{error}"),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Document::read(bytes.into());
    }

    #[test]
    fn any_text_survives_quoting(text in any::<String>()) {
        let quoted = quote(&text);
        prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text.clone());
        let document = read(&quoted).unwrap();
        prop_assert_eq!(document.text(Document::ROOT).unwrap(), text);
    }

    #[test]
    fn any_string_reads_as_serde_json_reads_it(text in any::<String>()) {
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        let document = read(&format!("\"{escaped}\"")).unwrap();
        prop_assert_eq!(document.text(Document::ROOT).unwrap(), text);
    }
}
