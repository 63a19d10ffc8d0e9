//! Arguments as a tool takes them: all that are there are known, and of their type.

use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::ToolErrorKind;
use super::workspace::{Refused, Tried};

/// The arguments of a call, or what is wrong with them.
pub(super) fn read<'a, T: Deserialize<'a>>(arguments: &'a Map<String, Value>) -> Tried<T> {
    T::deserialize(arguments)
        .map_err(|error| Refused::new(ToolErrorKind::InvalidInput, format!("these arguments do not fit: {error}")))
}

/// A number of something. Some models write `10` as `10.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Number")]
pub(super) struct Count(pub(super) u64);

impl TryFrom<Number> for Count {
    type Error = String;

    fn try_from(number: Number) -> Result<Self, String> {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=1e15).contains(float));
        // The range is exact in both.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a whole number in range")]
        let of_float = float.map(|float| float as u64);
        let count = number.as_u64().or(of_float);
        count.map(Self).ok_or_else(|| format!("`{number}` is no whole number from 0 on"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Some_ {
        path: String,
        #[serde(default)]
        limit: Option<Count>,
    }

    #[test]
    fn arguments_are_all_known_and_of_their_type() {
        let read = |value: Value| read::<Some_>(value.as_object().unwrap());
        let fine = |limit| Some_ { path: "a".to_owned(), limit };
        assert_eq!(read(json!({"path": "a"})), Ok(fine(None)));
        assert_eq!(read(json!({"path": "a", "limit": null})), Ok(fine(None)));
        assert_eq!(read(json!({"path": "a", "limit": 10.0})), Ok(fine(Some(Count(10)))));
        for (wrong, says) in [
            (json!({}), "missing field `path`"),
            (json!({"path": 1}), "expected a string"),
            (json!({"path": "a", "limit": -1}), "`-1` is no whole number"),
            (json!({"path": "a", "limit": 1.5}), "`1.5` is no whole number"),
            (json!({"path": "a", "file_path": "b"}), "unknown field `file_path`, expected `path` or `limit`"),
        ] {
            let refused = read(wrong.clone()).unwrap_err();
            assert_eq!(refused.kind, ToolErrorKind::InvalidInput);
            assert!(refused.text.contains(says), "{wrong}: {}", refused.text);
        }
    }
}
