//! Fields of nested objects by their path, as in `config.model`, in both directions.

use serde_json::{Map, Value};

/// The value at a path; `None` where there is none, or null.
pub(crate) fn get<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let value = match path.split_once('.') {
        Some((outer, inner)) => get(object.get(outer)?.as_object()?, inner)?,
        None => object.get(path)?,
    };
    (!value.is_null()).then_some(value)
}

/// Puts a value at a path. What stands in the way, and is no object, goes.
pub(crate) fn set(object: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((outer, inner)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    let slot = object.entry(outer).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    if let Value::Object(nested) = slot {
        set(nested, inner, value);
    }
}

/// Takes the value at a path out, and objects that are empty then.
pub(crate) fn take(object: &mut Map<String, Value>, path: &str) -> Option<Value> {
    let Some((outer, inner)) = path.split_once('.') else {
        return object.remove(path).filter(|value| !value.is_null());
    };
    let nested = object.get_mut(outer)?.as_object_mut()?;
    let value = take(nested, inner);
    if nested.is_empty() {
        object.remove(outer);
    }
    value
}

/// Adds what is missing, in objects within objects too. What is there stays.
pub(crate) fn fill(object: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (object.get_mut(key), value) {
            (Some(Value::Object(nested)), Value::Object(more)) => fill(nested, more),
            (Some(_), _) => {}
            (None, value) => drop(object.insert(key.clone(), value.clone())),
        }
    }
}
