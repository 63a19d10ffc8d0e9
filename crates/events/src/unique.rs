//! JSON that means one thing: a key that stands twice in an object is noticed, at any depth.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::verdict::FailureKind;

/// The first key that stood twice in what was read.
pub type Repeated = RefCell<Option<String>>;

/// Reads any value. The last of two equal keys counts; who does not want that asks `Repeated`.
#[derive(Clone, Copy)]
pub struct Unique<'a>(pub &'a Repeated);

/// Reads a text that must be one value with unique keys, or says what kind of failure it is.
pub fn parse(text: &[u8]) -> Result<Value, FailureKind> {
    let repeated = Repeated::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Unique(&repeated).deserialize(&mut reader).map_err(|_| FailureKind::MalformedJson)?;
    reader.end().map_err(|_| FailureKind::TrailingData)?;
    if repeated.take().is_some() { Err(FailureKind::DuplicateKey) } else { Ok(value) }
}

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("the number is too large"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            if map.contains_key(&key) {
                self.0.borrow_mut().get_or_insert_with(|| key.clone());
            }
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_one_plain_value_is_told_apart() {
        for (text, kind) in [
            (r#"{"a":1,"a":1}"#, FailureKind::DuplicateKey),
            (r#"{"a":[{"b":1,"c":{},"b":2}]}"#, FailureKind::DuplicateKey),
            (r#"{"a":1,"\u0061":1}"#, FailureKind::DuplicateKey),
            ("{} {}", FailureKind::TrailingData),
            ("{}x", FailureKind::TrailingData),
            (r#"{"a":1,"a":1}x"#, FailureKind::TrailingData),
            ("<html>", FailureKind::MalformedJson),
            ("", FailureKind::MalformedJson),
            (r#"{"a":1"#, FailureKind::MalformedJson),
            (r#"{"a":1,"a":1"#, FailureKind::MalformedJson),
            ("\"\u{0}\"", FailureKind::MalformedJson),
            (&"[".repeat(100_000), FailureKind::MalformedJson),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(kind), "{text:.40}");
        }
    }

    #[test]
    fn equal_keys_in_different_objects_are_fine() {
        let text = r#"{"a":{"a":1},"b":[{"a":1},{"a":-2.5,"A":null}]}"#;
        assert_eq!(parse(text.as_bytes()), Ok(serde_json::from_str(text).unwrap()));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_value_or_a_failure(text: Vec<u8>) {
            let ours = parse(&text).ok();
            let lenient = serde_json::from_slice::<Value>(&text).ok();
            prop_assert!(ours.is_none() || ours == lenient);
        }
    }
}
