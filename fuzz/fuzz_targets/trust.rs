//! Files of approvals: approvals that are the same when written and read again, or a reason. What has lost its end
//! approves nothing.

#![no_main]

use gatehook_engine::trust::{ollm, store};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = data.trim_ascii();
    let part = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
    match store::Approvals::parse(data) {
        Ok(approvals) => {
            assert_eq!(store::Approvals::parse(approvals.to_json().as_bytes()), Ok(approvals));
            assert!(store::Approvals::parse(part).is_err());
        }
        Err(cause) => assert!(!cause.is_empty()),
    }
    if let Ok(approvals) = ollm::Approvals::parse(data) {
        assert_eq!(ollm::Approvals::parse(approvals.to_json().as_bytes()), Ok(approvals));
        assert!(text.is_empty() || ollm::Approvals::parse(part).is_err() || part.is_empty());
    }
});
