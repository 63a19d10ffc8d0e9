//! What name a value is given to: `api_key = "…"`, `"apiKey": "…"`, `--api-key …`, `<apiKey>…`, `Bearer …`.

/// How far before a value its name is looked for, in bytes.
pub(crate) const REACH: usize = 80;

/// The longest name; of a longer one the end is taken.
const MAX_NAME: usize = 48;

/// The most blanks and quotes on either side of the operator.
const MAX_GAP: usize = 8;

/// The name that the value at `at` is given to, if it looks like the value of anything.
pub(crate) fn name_before(text: &[u8], at: usize) -> Option<&[u8]> {
    let before = text.get(at.saturating_sub(REACH)..at)?;
    let head = trim_end(before, MAX_GAP, |byte| b" \t\"'`\\".contains(&byte));
    match head.last()? {
        b':' if head.len() == before.len() && text.get(at..)?.starts_with(b"//") => None, // a URL
        b'=' | b':' | b'>' => {
            let left = trim_end(head, 3, |byte| b"=:>-|?".contains(&byte));
            name_at_end(trim_end(left, MAX_GAP, |byte| b" \t\"'`\\])".contains(&byte)))
        }
        b',' => {
            let left = trim_end(head, 1, |byte| byte == b',');
            let name = trim_end(left, 2, |byte| b"\"'`\\".contains(&byte));
            if name.len() < left.len() { name_at_end(name) } else { None }
        }
        _ if head.len() < before.len() => option_at_end(head),
        _ => None,
    }
}

/// The words at the end of `head`; with a `]` before them if there is one, since they are not the whole name then.
fn name_at_end(head: &[u8]) -> Option<&[u8]> {
    let name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte);
    let rest = trim_end(head, MAX_NAME, name);
    if rest.len() == head.len() {
        return None;
    }
    head.get(rest.len() - usize::from(rest.ends_with(b"]"))..)
}

/// The HTTP authentication scheme or the command line option at the end of `head`, which needs no operator; the option
/// with a `]` before it, as above.
fn option_at_end(head: &[u8]) -> Option<&[u8]> {
    for scheme in ["bearer", "basic"] {
        let end = head.get(head.len().saturating_sub(scheme.len())..)?;
        if end.eq_ignore_ascii_case(scheme.as_bytes()) {
            return Some(end);
        }
    }
    let rest = trim_end(head, MAX_NAME, |byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let word = head.get(rest.len() - usize::from(rest.ends_with(b"]"))..);
    word.filter(|word| word.windows(2).any(|two| two == b"--"))
}

/// Whether `byte` may stand in a name, or between it and its value. Where another stands, no name reaches beyond it.
pub(crate) const fn joins(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\')
        || matches!(byte, b'=' | b':' | b'>' | b'|' | b'?' | b']' | b')' | b',')
}

/// `text` without up to `max` bytes of `class` at its end.
fn trim_end(text: &[u8], max: usize, class: impl Fn(u8) -> bool) -> &[u8] {
    let cut = text.iter().rev().take(max).take_while(|&&byte| class(byte)).count();
    text.get(..text.len() - cut).unwrap_or_default()
}

/// A name as keywords are compared with it: without case and punctuation, between `^` and `$`; of several words also
/// the last alone. `API-Key` is `^apikey$`, `let token` is `^lettoken$^token$`. Behind a `]` there is no `^`.
pub(crate) struct PlainName {
    bytes: [u8; 2 * MAX_NAME + 5],
    len: usize,
}

impl PlainName {
    pub(crate) fn new(name: &[u8]) -> Self {
        let mut plain = Self { bytes: [0; 2 * MAX_NAME + 5], len: 0 };
        plain.push(name);
        if let Some(blank) = name.iter().rposition(|&byte| byte == b' ') {
            plain.push(name.get(blank + 1..).unwrap_or_default());
        }
        plain
    }

    fn push(&mut self, words: &[u8]) {
        let letters = words.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
        let begin = (!words.starts_with(b"]")).then_some(b'^');
        let all = begin.into_iter().chain(letters).chain(Some(b'$'));
        for (to, from) in self.bytes.iter_mut().skip(self.len).zip(all) {
            *to = from;
            self.len += 1;
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(text: &str) -> Option<String> {
        let at = text.find("VALUE").unwrap();
        let name = name_before(text.as_bytes(), at)?;
        Some(String::from_utf8(PlainName::new(name).as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn a_name_is_found_in_every_way_of_writing_an_assignment() {
        for text in [
            "API_KEY=VALUE",
            "api-key: VALUE",
            "apiKey := `VALUE`",
            "?api_key=VALUE&x=1",
            r#"{"apiKey": "VALUE"}"#,
            r#"{\"apiKey\": \"VALUE\"}"#,
            "'api_key' => 'VALUE'",
            "<apiKey>VALUE</apiKey>",
            "run --api-key VALUE",
            r#"setenv("API_KEY", "VALUE")"#,
            r#"env["API_KEY"] = "VALUE""#,
        ] {
            let name = name_of(text).unwrap_or_else(|| panic!("no name in {text}"));
            assert!(name.trim_matches(['^', '$', '-']) == "apikey", "{text} gives {name}");
        }
    }

    #[test]
    fn an_authentication_scheme_is_a_name() {
        assert_eq!(name_of("Authorization: Bearer VALUE").as_deref(), Some("^bearer$"));
        assert_eq!(name_of("-H 'authorization: basic VALUE'").as_deref(), Some("^basic$"));
    }

    #[test]
    fn a_word_in_a_sentence_or_a_list_has_no_name() {
        for text in ["the api key VALUE", "VALUE", "see VALUE", "(api_key, VALUE)", "api_key(VALUE"] {
            assert_eq!(name_of(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_word_of_a_name_also_counts_alone() {
        assert_eq!(name_of("export TOKEN=VALUE").as_deref(), Some("^exporttoken$^token$"));
        assert_eq!(name_of("x]-token=VALUE").as_deref(), Some("token$"));
    }

    #[test]
    fn of_a_long_name_the_end_is_taken() {
        let name = name_of(&format!("{}_api_key = VALUE", "x".repeat(60))).unwrap();
        assert!(name.ends_with("xapikey$"), "{name}");
    }
}
