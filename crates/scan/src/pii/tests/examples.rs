//! What is recognised, and what only looks like it.

use crate::pii::{KINDS, Kinds, find, redact};

/// Kind, and a value of it.
pub(super) const VALUES: &[(&str, &str)] = &[
    ("email", "jane.doe+news@mail.example.co.uk"),
    ("email", "o'brien@example.ie"),
    ("email", "JOHN_DOE99@Example.COM"),
    ("email", "12345@163.com"),
    ("email", "jörg@münchen.de"),
    ("email", "почта@пример.рф"),
    ("email", "x@xn--80ak6aa92e.com"),
    ("email", "a@mail.my-site.com"),
    ("email", "reply+AAAAB3NzaC1yc2EAAAADAQABAAABgQC7vbqajDhA6Bx5k8@reply.github.com"),
    ("card", "4111111111111111"),
    ("card", "4111 1111 1111 1111"),
    ("card", "4111-1111-1111-1111"),
    ("card", "4111\u{a0}1111\u{202f}1111\u{2011}1111"),
    ("card", "4222222222222"),
    ("card", "4222 2222 2222 2"),
    ("card", "5555555555554444"),
    ("card", "2223003122003222"),
    ("card", "3782 822463 10005"),
    ("card", "378282246310005"),
    ("card", "3056 930902 5904"),
    ("card", "38520000023237"),
    ("card", "6011 1111 1111 1117"),
    ("card", "3530111333300000"),
    ("card", "6200000000000005"),
    ("card", "6304000000000000"),
    ("card", "6205 5000 0000 0000 004"),
    ("iban", "DE89370400440532013000"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "de89 3704 0044 0532 0130 00"),
    ("iban", "GB29 NWBK 6016 1331 9268 19"),
    ("iban", "gb29nwbk60161331926819"),
    ("iban", "FR14 2004 1010 0505 0001 3M02 606"),
    ("iban", "NO93 8601 1117 947"),
    ("iban", "NL91ABNA0417164300"),
    ("iban", "CH93-0076-2011-6238-5295-7"),
    ("iban", "MT84MALT011000012345MTLCAST001S"),
    ("ssn", "123-45-6789"),
    ("ssn", "123 45 6789"),
    ("ssn", "899-01-0001"),
    ("phone", "+4915112345678"),
    ("phone", "+49 151 12345678"),
    ("phone", "+49 (0)30 1234567"),
    ("phone", "+49 (30) 1234567"),
    ("phone", "+49-151-1234-5678"),
    ("phone", "+1 415 555 2671"),
    ("phone", "+1 (415) 555-2671"),
    ("phone", "+1(415)555-2671"),
    ("phone", "+1.415.555.2671"),
    ("phone", "+14155552671"),
    ("phone", "+33 1 23 45 67 89"),
    ("phone", "+44 20 7946 0958"),
    ("phone", "+358 40 1234567"),
    ("phone", "+91 98765 43210"),
    ("phone", "+86 138 1234 5678"),
    ("phone", "+55 11 91234-5678"),
    ("phone", "0049 30 1234567"),
    ("phone", "(415) 555-2671"),
    ("phone", "(415)555-2671"),
    ("phone", "(415) 555 2671"),
    ("phone", "(415) 5552671"),
    ("phone", "(030) 123456"),
    ("phone", "(020) 7946 0958"),
    ("phone", "(11) 91234-5678"),
    ("phone", "415-555-2671"),
    ("phone", "415.555.2671"),
    ("phone", "415 555-2671"),
    ("phone", "1-800-555-0199"),
    ("phone", "1 (415) 555-2671"),
    ("phone", "8 (495) 123-45-67"),
    ("phone", "030 1234567"),
    ("phone", "030/1234567"),
    ("phone", "089 / 1234567"),
    ("phone", "0151-12345678"),
    ("phone", "0151 1234 5678"),
    ("phone", "020 7946 0958"),
    ("phone", "07911 123456"),
    ("phone", "01 23 45 67 89"),
    ("phone", "06.12.34.56.78"),
    ("phone", "03-1234-5678"),
    ("phone", "090-1234-5678"),
    ("phone", "0412 345 678"),
    ("phone", "138-1234-5678"),
    ("ip", "192.168.1.10"),
    ("ip", "8.8.8.8"),
    ("ip", "203.0.113.255"),
    ("ip", "2001:db8:85a3::8a2e:370:7334"),
    ("ip", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    ("ip", "2001:DB8::"),
    ("ip", "fe80::1"),
    ("ip", "fd12:3456:789a:1::1"),
    ("ip", "::ffff:192.0.2.128"),
    ("ip", "2001:db8::192.0.2.33"),
];

/// What is none, of any kind.
pub(super) const NONE: &[&str] = &[
    "",
    "The quick brown fox jumps over the lazy dog.",
    // Email
    "user@localhost",
    "@app.route('/') def index():",
    "a@b.c",
    "me @ example.com",
    "git@github.com:rust-lang/rust.git",
    "icon@2x.png and getty@tty1.service",
    "npm install @types/node@20.1.0 left-pad@1.3.0-beta.next",
    "actions/checkout@v4.1.2",
    "sha256@sha256:9f86d081884c7d65",
    // Cards
    "4111111111111112",
    "4111 1111 1111 1112",
    "41111111111111111111",
    "94111111111111111",
    "a4111111111111111 4111111111111111b",
    "0.4111111111111111 and 4111111111111111.5",
    "1234567812345670",
    "1700000000000 1700000000000000",
    "0000 0000 0000 0000",
    "4.111.111.111.111.111",
    "42 17 33 08 51 62 73 84",
    // IBAN
    "DE89370400440532013001",
    "DE8937040044053201300",
    "XX89370400440532013000",
    "DE89 3704 0044 0532 0130 0",
    "is20 years old and not a number of any account",
    "at12 noon we meet",
    // Social security
    "000-12-3456 666-12-3456 900-12-3456 987-65-4321",
    "123-00-4567 123-45-0000",
    "123-456789 12-345-6789 123456789",
    "1123-45-6789 123-45-67890",
    "12-123-45-6789 123-45-6789-01",
    "123 45-6789",
    "7 128 64 1024 9",
    // Telephone
    "4155552671 and 03012345678 and 1234567890",
    "256 512 1024",
    "call me at 4155552671",
    "In 2024 there were 12 345 678 people, 1 200 more than in 2023.",
    "2024-01-15 10:30:00, 15.01.2024 10:30, 01/15/2024 10:30, 01-02-2024 0304",
    "2024-01-15T10:30:00.123456789Z +0100 -0500",
    "01 02 03 04 05 06 07 08",
    "01.02.24 12.30",
    "+1700000000 +17000000000000",
    "+20240101",
    "1e+10 a+4915112345679 ++4915112345679",
    "ISBN 978-3-16-148410-0, 0-306-40615-2",
    "00:1a:2b:3c:4d:5e 00-11-22-33-44-55",
    "pages 120-125, 10-20-30, 3.14159, 1,000,000.00, 12/24",
    "550e8400-e29b-41d4-a716-446655440000",
    "0049151 and 0010 4865",
    "Nature (2019) 123 456 789",
    "rfc-2119-3986 v1.2.3-456.789.0123",
    // Addresses
    "1.2.3 and 1.2.3.4.5 and v1.2.3.4 and name-1.2.3.4.tar and version 1.2.3.4",
    "127.0.0.1 0.0.0.0 ::1 :: 255.255.255.0 127.8.8.8 ::ffff:127.0.0.1",
    "256.1.1.1 1.2.3.256 01.2.3.4 1.2.3.1000",
    "std::fmt::Display a::b dead::beef fade::face fdad::face",
    "x[1::2] x[::2] 12:30:45 at 10:00",
    "aa:bb:cc:dd:ee:ff 20:11:22:33:44:55:66:77",
    "2001:db8 2001:db8:1 20011:db8::1 2001:db8::1::2 2001:db8::12345",
];

fn found(text: &str) -> Vec<(&'static str, &str)> {
    find(text, Kinds::ALL).into_iter().map(|finding| (finding.kind.name(), &text[finding.range])).collect()
}

#[test]
fn every_value_is_found_whole_wherever_it_stands() {
    for &(kind, value) in VALUES {
        for (before, after) in [
            ("", ""),
            ("", "."),
            ("it is ", " as I said"),
            ("é\n", "\né"),
            ("是", "。"),
            ("[", "]"),
            ("\"", "\""),
            ("<", ">"),
            ("x: ", ", y"),
            ("\\n", "\\n"),
            ("=", "&z=1"),
            ("a;", ";1"),
            (">", "<br>"),
            ("tel:", "?"),
        ] {
            let text = format!("{before}{value}{after}");
            assert_eq!(found(&text), [(kind, value)], "{text:?}");
        }
    }
}

#[test]
fn nothing_of_a_value_is_left_beside_other_numbers() {
    for &(kind, value) in VALUES {
        for (before, after) in
            [("12 May, ", " 12 May"), ("2024 was ", "/2024"), ("1, ", ", 2"), ("7: ", " - 8"), ("(", ")")]
        {
            let text = format!("{before}{value}{after}");
            let covers = |(found, range): &(_, std::ops::Range<usize>)| {
                *found == kind && range.start <= before.len() && before.len() + value.len() <= range.end
            };
            let found = find(&text, Kinds::ALL).into_iter().map(|finding| (finding.kind.name(), finding.range));
            assert!(found.clone().any(|found| covers(&found)), "{text:?} {:?}", found.collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_only_looks_like_one_is_none() {
    for text in NONE {
        for text in [(*text).to_owned(), format!("see {text} there"), format!("日{text}日")] {
            assert_eq!(found(&text), [], "{text:?}");
        }
    }
}

#[test]
fn a_list_of_values_is_a_list_of_findings() {
    for (text, want) in [
        ("4111111111111111,12/27,123", vec![("card", "4111111111111111")]),
        ("12 4111 1111 1111 1111 123", vec![("card", "4111 1111 1111 1111")]),
        (
            "4111-1111-1111-1111 5555-5555-5555-4444",
            vec![("card", "4111-1111-1111-1111"), ("card", "5555-5555-5555-4444")],
        ),
        ("10.0.0.1-10.0.0.5,10.1.0.0/16", vec![("ip", "10.0.0.1"), ("ip", "10.0.0.5"), ("ip", "10.1.0.0")]),
        ("a@b.com,c@d.org;<e@f.net>", vec![("email", "a@b.com"), ("email", "c@d.org"), ("email", "e@f.net")]),
        (
            "2001:db8::8a2e:370:7334.2001:db8:85a3::8a2e:370:7335",
            vec![("ip", "2001:db8::8a2e:370:7334"), ("ip", "2001:db8:85a3::8a2e:370:7335")],
        ),
        ("ip:2001:db8::1, [2001:db8::2]:443", vec![("ip", "2001:db8::1"), ("ip", "2001:db8::2")]),
        ("123-45-6789 12/03/1990", vec![("ssn", "123-45-6789")]),
        ("Call 415-555-2671 24/7 or 020 7946 0958 24/7", vec![("phone", "415-555-2671"), ("phone", "020 7946 0958")]),
        ("+1 415 555 2672 4111 1111 1111 1111", vec![("phone", "+1 415 555 2672"), ("card", "4111 1111 1111 1111")]),
        ("+49 30 1234567 2 people", vec![("phone", "+49 30 1234567")]),
        ("visa_4111111111111111.pdf", vec![("card", "4111111111111111")]),
        ("wait...jane@example.com...", vec![("email", "jane@example.com")]),
        ("{\\n\\\"to\\\":\\\"jane@example.com\\\"", vec![("email", "jane@example.com")]),
        ("\\njane@example.com\\n", vec![("email", "jane@example.com")]),
        ("'jane@example.com'", vec![("email", "jane@example.com")]),
        ("请联系me@example.com谢谢", vec![("email", "me@example.com")]),
        ("4111111111111111@example.com", vec![("email", "4111111111111111@example.com")]),
        ("My phone is 415 555 2671.", vec![("phone", "415 555 2671")]),
        ("the hotel has 415 555 2671 rooms", vec![]),
        ("(+49) 30 1234567", vec![("phone", "+49) 30 1234567")]),
        ("415-555-2671x123", vec![("phone", "415-555-2671")]),
        ("jane@example.com2, jane@example.com.", vec![("email", "jane@example.com"), ("email", "jane@example.com")]),
        ("jane@example.com--", vec![("email", "jane@example.com")]),
        ("_jane@example.com_", vec![("email", "_jane@example.com")]),
    ] {
        assert_eq!(found(text), want, "{text:?}");
    }
}

#[test]
fn only_the_kinds_that_are_asked_for_are_found() {
    let text = "jane@example.com, 123-45-6789, 8.8.8.8";
    let kinds = Kinds::NONE.with("ssn").unwrap();
    assert_eq!(redact(text, kinds, |kind, _| format!("<{}>", kind.word())), "jane@example.com, <SSN>, 8.8.8.8");
    assert_eq!(find(text, Kinds::NONE), []);
}

#[test]
fn every_kind_has_a_value_and_a_name_of_its_own() {
    for kind in &KINDS {
        assert!(VALUES.iter().any(|(name, _)| *name == kind.name()), "{}", kind.name());
        assert_eq!(KINDS.iter().filter(|other| other.name() == kind.name() || other.word() == kind.word()).count(), 1);
        assert!(kind.word().bytes().all(|byte| byte.is_ascii_uppercase()), "{}", kind.word());
    }
}
