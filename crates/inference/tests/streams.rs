//! What holds for every recorded stream: however it is split, the same is seen and the same leaves; nothing changed is
//! nothing changed, and one text changed is one text changed.
#![expect(clippy::unwrap_used, reason = "what tests share is test code too")]

use std::path::Path as FilePath;

use bytes::Bytes;
use gatehook_inference::{CallId, Fate, Relay, Route, TrackId};

const FOLDERS: &[(&str, Route)] = &[("chat-completions", Route::ChatCompletions)];

fn streams() -> Vec<(String, Route, Bytes)> {
    let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/bodies");
    let mut found = Vec::new();
    for (folder, route) in FOLDERS {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let file = entry.unwrap().path();
            if file.file_name().unwrap().to_string_lossy().starts_with("stream") {
                found.push((file.display().to_string(), *route, std::fs::read(&file).unwrap().into()));
            }
        }
    }
    found
}

fn allow_all(relay: &mut Relay) {
    for id in 0..relay.tracks().len() {
        relay.allow(TrackId(id), usize::MAX);
    }
    for id in 0..relay.calls().len() {
        relay.decide(CallId(id), Fate::Keep).unwrap();
    }
}

fn drain(relay: &mut Relay) -> Vec<u8> {
    std::iter::from_fn(|| relay.take()).flatten().collect()
}

#[test]
fn what_is_allowed_leaves_as_the_same_bytes() {
    for (file, route, body) in streams() {
        for size in [1, 2, 3, 7, 64, 1000, body.len()] {
            let mut relay = Relay::new(route);
            let mut out = Vec::new();
            for read in body.chunks(size) {
                relay.push(Bytes::copy_from_slice(read)).unwrap_or_else(|fault| panic!("{file}: {fault}"));
                allow_all(&mut relay);
                out.extend(drain(&mut relay));
            }
            relay.finish().unwrap_or_else(|fault| panic!("{file}: {fault}"));
            allow_all(&mut relay);
            out.extend(drain(&mut relay));
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&body), "{file} in reads of {size}");
            assert!(relay.is_over());
        }
    }
}

#[test]
fn a_stream_that_is_allowed_at_once_leaves_as_one_slice_of_its_read() {
    for (file, route, body) in streams() {
        let mut relay = Relay::new(route);
        relay.push(body.clone()).unwrap();
        allow_all(&mut relay);
        let out = relay.take().unwrap();
        assert_eq!((out.as_ptr(), out.len()), (body.as_ptr(), body.len()), "{file}");
        assert_eq!(relay.take(), None);
    }
}
