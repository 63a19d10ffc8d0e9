//! What a hook answers, under every profile: what is taken for one JSON object is one to other readers, too.

#![no_main]

use gatehook_engine::reply::parse;
use gatehook_engine::text::plain;
use gatehook_events::Profile;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

const PROFILES: [Profile; 3] = [Profile::Native, Profile::DockerAgent, Profile::DockerAgentV158];

fuzz_target!(|text: &[u8]| {
    for profile in PROFILES {
        let (lenient, strict) = (parse(text, profile, false), parse(text, profile, true));
        if let Err(fault) = &lenient {
            assert_eq!(plain(&fault.message), fault.message, "sends more than text to a terminal");
            assert!(strict.is_err(), "{profile:?}: strict takes what is refused otherwise: {strict:?}");
            continue;
        }
        let object = serde_json::from_slice::<Map<String, Value>>(text);
        assert!(object.is_ok(), "{profile:?}: {lenient:?} of what is no object: {object:?}");
        if strict.is_ok() {
            assert_eq!(strict, lenient, "{profile:?}: strict reads something else");
        }
    }
});
