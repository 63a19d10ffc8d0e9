//! Names of tools on the wire: what providers take is letters, digits, `_` and `-`, at most 64 of them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::tools::ToolSpec;

/// The longest name that every provider takes, in characters.
const LONGEST: usize = 64;

/// Characters of a name's digest, behind what of the name itself could stay.
const DIGEST: usize = 8;

/// The name as it stands on the wire. One that no provider would take is spelled otherwise, and bears a digest, so that
/// two names stay two.
pub(super) fn on_wire(name: &str) -> Cow<'_, str> {
    let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    let kept = name.chars().take(LONGEST - DIGEST - 1).map(|char| if plain(char) { char } else { '_' });
    let mut spelled: String = kept.collect();
    spelled.push('_');
    for byte in Sha256::digest(name).iter().take(DIGEST / 2) {
        let _ = write!(spelled, "{byte:02x}");
    }
    Cow::Owned(spelled)
}

/// The tool that a name on the wire stands for; itself where it is none of these.
pub(super) fn from_wire(name: &Arc<str>, tools: &[Arc<ToolSpec>]) -> Arc<str> {
    let known = tools.iter().map(|spec| &spec.tool.name);
    known
        .clone()
        .find(|tool| *tool == name)
        .or_else(|| known.clone().find(|tool| on_wire(tool) == **name))
        .unwrap_or(name)
        .clone()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_fits_on_the_wire_and_comes_back(names in prop::collection::vec(any::<String>(), 1..4)) {
            let tool = |name: &String| {
                let tool = crate::approval::Tool { name: name.as_str().into(), ..Default::default() };
                Arc::new(ToolSpec { tool, description: "".into(), parameters: Arc::default() })
            };
            let tools: Vec<_> = names.iter().map(tool).collect();
            for name in &names {
                let wire = on_wire(name);
                prop_assert!(!wire.is_empty() && wire.len() <= LONGEST, "{}", wire);
                prop_assert!(wire.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{}", wire);
                prop_assert_eq!(&*from_wire(&wire.as_ref().into(), &tools), name.as_str());
            }
        }
    }

    #[test]
    fn names_that_differ_in_what_cannot_stay_stay_two() {
        assert_eq!(on_wire("mcp__files__read"), "mcp__files__read");
        assert_ne!(on_wire("a.b"), on_wire("a b"));
        assert_ne!(on_wire(&"x".repeat(70)), on_wire(&"x".repeat(71)));
    }

    #[test]
    fn a_tool_that_nobody_offered_keeps_its_name() {
        assert_eq!(&*from_wire(&"made_up".into(), &[]), "made_up");
    }
}
