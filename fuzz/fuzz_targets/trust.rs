//! Files of approvals: approvals that are the same when written and read again, or a reason.

#![no_main]

use gatehook_engine::trust::{ollm, store};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match store::Approvals::parse(data) {
        Ok(approvals) => assert_eq!(store::Approvals::parse(approvals.to_json().as_bytes()), Ok(approvals)),
        Err(cause) => assert!(!cause.is_empty()),
    }
    if let Ok(approvals) = ollm::Approvals::parse(data) {
        assert_eq!(ollm::Approvals::parse(approvals.to_json().as_bytes()), Ok(approvals));
    }
});
