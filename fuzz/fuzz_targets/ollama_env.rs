//! The variables of the Ollama webhooks: hooks for the addresses that are set, or a report that can be shown.
//!
//! A line is a variable, in the order of the table; the last one has the rest.

#![no_main]

use std::collections::BTreeMap;

use gatehook_engine::config::{OLLAMA_VARIABLES, ollama_env};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let values = text.splitn(OLLAMA_VARIABLES.len(), '\n');
    let env: BTreeMap<String, String> = OLLAMA_VARIABLES
        .iter()
        .zip(values)
        .map(|(variable, value)| (variable.name.to_owned(), value.to_owned()))
        .collect();
    let urls = env.iter().filter(|(name, value)| name.ends_with("_URL") && !value.trim().is_empty()).count();
    match ollama_env(&env) {
        Ok(None) => assert_eq!(urls, 0, "{env:?}"),
        Ok(Some(config)) => assert_eq!(config.groups.len(), urls, "{env:?}"),
        Err(error) => {
            let shown = error.to_string();
            assert!(
                !error.diagnostics.is_empty() && !shown.contains(|c: char| c.is_control() && c != '\n'),
                "{shown:?}"
            );
        }
    }
});
