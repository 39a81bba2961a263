//! Frames of every kind of header, however they are cut or damaged.

use proptest::prelude::*;

use super::*;
use crate::framing::{Cutter, Framing};

const START: &[(&str, &str)] = &[
    (":event-type", "messageStart"),
    (":content-type", "application/json"),
    (":message-type", "event"),
];
const FAULT: &[(&str, &str)] = &[
    (":message-type", "error"),
    (":error-code", "InternalServerException"),
    (":error-message", "ünwell"),
];

/// A frame with an event, one with an error and no payload, one with every type of header.
fn body() -> Vec<u8> {
    let mut out = Vec::new();
    write_message(&mut out, START, br#"{"role":"assistant"}"#.to_vec());
    write_message(&mut out, FAULT, Vec::new());
    out.extend_from_slice(&every_type());
    out
}

/// Header types 0 to 9, and text last.
fn every_type() -> Vec<u8> {
    let mut headers = Vec::new();
    for (kind, value) in [
        (0_u8, &b""[..]),
        (1, b""),
        (2, b"\x01"),
        (3, b"\x01\x02"),
        (4, b"\x01\x02\x03\x04"),
        (5, b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        (6, b"\x00\x02\xff\xfe"),
        (8, b"\x00\x00\x01\x9a\x00\x00\x00\x00"),
        (9, b"0123456789abcdef"),
        (7, b"\x00\x04text"),
    ] {
        headers.extend_from_slice(&[1, b'a' + kind, kind]);
        headers.extend_from_slice(value);
    }
    framed(&headers, b"{}")
}

/// A frame of these very headers.
fn framed(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let size = |n: usize| u32::try_from(n).expect("short").to_be_bytes();
    let mut out = Vec::new();
    out.extend_from_slice(&size(EMPTY + headers.len() + payload.len()));
    out.extend_from_slice(&size(headers.len()));
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(headers);
    out.extend_from_slice(payload);
    let sum = crc32fast::hash(&out).to_be_bytes();
    out.extend_from_slice(&sum);
    out
}

/// All frames, and why no more could be read.
fn frames(chunks: &[&[u8]]) -> (Vec<Frame>, Option<Error>) {
    let mut cutter = Cutter::new(Framing::Messages);
    let mut all = Vec::new();
    for chunk in chunks {
        cutter.push(Bytes::copy_from_slice(chunk));
        loop {
            match cutter.next() {
                Ok(Some(frame)) => all.push(frame),
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    loop {
        match cutter.finish() {
            Ok(Some(frame)) => all.push(frame),
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

#[test]
fn a_frame_presents_headers_and_payload() {
    let body = body();
    let (all, error) = frames(&[&body]);
    assert_eq!(error, None);
    let [start, fault, every] = &all[..] else {
        panic!("three frames")
    };
    assert_eq!(start.header(":event-type"), Some("messageStart"));
    assert_eq!(start.header(":exception-type"), None);
    assert_eq!(start.data(), br#"{"role":"assistant"}"#);
    assert_eq!(fault.header(":error-message"), Some("ünwell"));
    assert!(!fault.has_data() && !fault.is_comment());
    assert_eq!((every.header("h"), every.header("a")), (Some("text"), None));
    assert_eq!(every.data(), b"{}");
    let wire: Vec<u8> = all
        .into_iter()
        .flat_map(|frame| frame.into_wire().to_vec())
        .collect();
    assert_eq!(wire, body);
}

#[test]
fn what_is_no_frame_is_refused() {
    let good = framed(&[], b"{}");
    let changed = |place: usize, byte: u8| {
        let mut bad = good.clone();
        bad[place] ^= byte;
        bad
    };
    let prelude = |length: u32, headers: u32| {
        let mut bad = [length.to_be_bytes(), headers.to_be_bytes()].concat();
        bad.extend_from_slice(&crc32fast::hash(&bad).to_be_bytes());
        bad
    };
    let (limit, headers) = (MessageFramer::LIMIT, MessageFramer::HEADERS_LIMIT);
    let corrupt = Some(Error::Corrupt);
    for (bytes, expected) in [
        (good.clone(), None),
        (changed(3, 1), corrupt),
        (changed(9, 1), corrupt),
        (changed(12, 1), corrupt),
        (changed(17, 1), corrupt),
        (prelude(15, 0), corrupt),
        (prelude(17, 2), corrupt),
        (framed(&[1], b""), corrupt),
        (framed(&[9, b'a'], b""), corrupt),
        (framed(&[1, b'a', 10], b""), corrupt),
        (
            framed(&[1, b'a', 7, 0, 9, b'x'], b"yyyyyyyyyyyyyyyy"),
            corrupt,
        ),
        (framed(&[1, 0xff, 0], b""), corrupt),
        (prelude(0x0100_0001, 0), Some(Error::TooLong { limit })),
        (prelude(0x0100_0000, 0), None),
        (
            prelude(0x0100_0000, 0x0002_0001),
            Some(Error::TooLong { limit: headers }),
        ),
        (b"data: {}\n\n and more".to_vec(), corrupt),
    ] {
        let (all, error) = frames(&[&good, &bytes, &good]);
        assert_eq!(error, expected, "{bytes:?}");
        assert_eq!(all[0].data(), b"{}");
    }
}

#[test]
fn a_cut_frame_is_a_stump() {
    let body = body();
    let (all, error) = frames(&[&body[..body.len() - 1]]);
    assert_eq!((all.len(), error), (3, None));
    assert!(all[1].is_terminated() && !all[2].is_terminated());
    assert!(!all[2].has_data());
}

proptest! {
    #[test]
    fn no_split_changes_the_frames(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let body = body();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.sort_unstable();
        let (mut chunks, mut from) = (Vec::new(), 0);
        for cut in cuts {
            chunks.push(&body[from..cut]);
            from = cut;
        }
        chunks.push(&body[from..]);
        prop_assert_eq!(frames(&chunks), frames(&[&body]));
    }

    #[test]
    fn damage_ends_in_a_verdict(place in any::<prop::sample::Index>(), byte in 1_u8.., headers in prop::collection::vec(any::<u8>(), 0..24)) {
        let whole = body();
        let mut body = whole.clone();
        body[place.index(whole.len())] ^= byte;
        let (all, error) = frames(&[&body]);
        prop_assert_eq!(error, Some(Error::Corrupt));
        prop_assert!(all.len() < 3);
        // Right checksums around anything.
        let _ = frames(&[&framed(&headers, b"")]);
    }
}
