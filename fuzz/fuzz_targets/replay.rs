//! Files of recorded events: records that are the same when they are written and read again, or a reason.

#![no_main]

use gatehook_events::replay::{Record, RecordError, read};
use libfuzzer_sys::fuzz_target;
use serde_json::{Deserializer, Value, json};

fuzz_target!(|data: &[u8]| match records(data) {
    Ok(records) => {
        assert!(records.iter().all(|record| !record.event.is_lane()));
        let written: Vec<Value> = records.iter().map(written).collect();
        let lines: String = written.iter().map(|record| format!("{record}\n")).collect();
        assert_eq!(self::records(lines.as_bytes()).as_ref(), Ok(&records), "{lines}");
        // A list is one level deeper than what JSON may be.
        match self::records(Value::from(written).to_string().as_bytes()) {
            Err(RecordError::Text(cause)) => assert!(cause.starts_with("recursion limit"), "{cause}"),
            again => assert_eq!(again, Ok(records)),
        }
    }
    Err(error) => assert!(!error.to_string().is_empty()),
});

fn records(text: &[u8]) -> Result<Vec<Record>, RecordError> {
    read(Deserializer::from_slice(text).into_iter())
}

fn written(record: &Record) -> Value {
    let id = record.name.strip_prefix("trace ").and_then(|id| id.parse::<i64>().ok());
    json!({
        "id": id, "event": record.event.public_name(), "input": record.input.to_json().expect("it was JSON"),
        "verdict": record.then.as_ref().map(|then| then.json()), "cut": !record.is_whole,
    })
}
