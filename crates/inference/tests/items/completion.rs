//! Streams that nobody judges: completed where something is missing, and else the same bytes, whatever they are.

use bytes::Bytes;
use gatehook_inference::{Completion, Route};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::client::gather;
use crate::{Stream, reads, streams};

fn passed(reads: Vec<Bytes>) -> Vec<u8> {
    let mut completion = Completion::of(Route::Responses).unwrap();
    let mut out = Vec::new();
    for read in reads {
        completion.push(read);
        out.extend(std::iter::from_fn(|| completion.take()).flatten());
    }
    completion.finish();
    out.extend(std::iter::from_fn(|| completion.take()).flatten());
    out
}

fn any_response() -> impl Strategy<Value = Stream> {
    let responses = streams().into_iter().filter(|stream| stream.route == Route::Responses);
    proptest::sample::select(responses.collect::<Vec<_>>())
}

#[test]
fn only_routes_whose_streams_lack_something_are_completed() {
    for route in Route::ALL {
        assert_eq!(Completion::of(*route).is_some(), *route == Route::Responses, "{route:?}");
    }
}

#[test]
fn what_a_server_left_out_is_there_for_a_strict_client() {
    let incomplete = streams().into_iter().filter(|stream| stream.route == Route::Responses && !stream.is_complete());
    for stream in incomplete {
        let out = passed(vec![stream.body.clone()]);
        assert_ne!(out, stream.body, "{}", stream.file);
        let gathered = gather(stream.route, std::str::from_utf8(&out).unwrap());
        assert!(!gathered.said().is_empty() || !gathered.calls().is_empty(), "{}", stream.file);
    }
}

#[test]
fn what_cannot_be_read_passes_as_it_came() {
    let opening = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":\
                   {\"id\":\"r\",\"output\":[]}}\n\n";
    for strange in [
        "data: {broken\n\n",
        "data: {\"type\":\"x\",\"type\":\"y\"}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"other\"}\n\n",
        "data: [DONE]\n\n",
        "half an event",
        ": only a comment\n\n",
        "\u{feff}\n\n",
    ] {
        let body = format!("{opening}{strange}");
        for size in [1, 5, body.len()] {
            let reads = body.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
            assert_eq!(String::from_utf8_lossy(&passed(reads)), body, "{strange:?} in reads of {size}");
        }
    }
}

#[test]
fn what_follows_the_end_passes_too() {
    let stream = streams().into_iter().find(|stream| stream.file.contains("stream-openai-text")).unwrap();
    let body = [&stream.body[..], b"data: [DONE]\n\n: bye\n\n"].concat();
    for size in [1, 64, body.len()] {
        let reads = body.chunks(size).map(Bytes::copy_from_slice).collect();
        assert_eq!(String::from_utf8_lossy(&passed(reads)), String::from_utf8_lossy(&body), "in reads of {size}");
    }
}

#[test]
fn what_is_too_long_to_be_completed_passes_to_its_end() {
    let delta = |text: &str| {
        format!("data: {{\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"{text}\"}}\n\n")
    };
    let (opening, word) = (delta("begins"), delta(&"word ".repeat(20_000)));
    let body = [opening, word.repeat(50), delta("ends"), "data: [DONE]\n\n".to_owned()].concat();
    let out = passed(body.as_bytes().chunks(64 * 1024).map(Bytes::copy_from_slice).collect());
    let text = std::str::from_utf8(&out).unwrap();
    assert_eq!(text.matches("word ").count(), 50 * 20_000);
    assert!(text.ends_with(&body[body.len() - word.len()..]));
}

proptest! {
    #[test]
    fn a_complete_stream_is_the_same_bytes_however_it_is_split(
        stream in any_response(),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let (whole, split) = (passed(vec![stream.body.clone()]), passed(reads(&stream.body, &cuts)));
        prop_assert_eq!(&whole, &split, "{}", &stream.file);
        if stream.is_complete() {
            prop_assert_eq!(&whole, &stream.body, "{}", &stream.file);
        }
    }

    #[test]
    fn bytes_that_are_no_stream_are_not_changed(bytes in vec(any::<u8>(), 1..200), cuts in vec(any::<Index>(), 0..4)) {
        let bytes = Bytes::from(bytes);
        prop_assert_eq!(passed(reads(&bytes, &cuts)), bytes);
    }
}
