//! "Did you mean": the nearest of the known words.

/// `did you mean …?`, where one of the known words is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean `{near}`?"))
}

/// The nearest word if there is one, else all of them.
pub(crate) fn one_of(word: &str, known: &[&str]) -> String {
    did_you_mean(word, known.iter().copied()).unwrap_or_else(|| {
        let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
        format!("use one of {}", known.join(", "))
    })
}

fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A file may hold any text as a key; what is much longer than all names is near to none.
    if word.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', ' ', '_'], "");
    let wanted = plain(word);
    let scored = known.into_iter().map(|name| (strsim::damerau_levenshtein(&wanted, &plain(name)), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= wanted.chars().count().max(3) / 3).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_whatever_its_case_and_hyphens() {
        let known = ["pre_tool_use", "post_tool_use", "stop"];
        for (word, near) in [
            ("pre_tool_usee", Some("pre_tool_use")),
            ("PreToolUse", Some("pre_tool_use")),
            ("post-tool-use", Some("post_tool_use")),
            ("stpo", Some("stop")),
            ("session_begin", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), near, "{word}");
        }
    }
}
