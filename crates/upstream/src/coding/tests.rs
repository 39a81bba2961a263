//! What comes out of coded bytes, however they are cut, broken or blown up.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;
use zstd_safe::CCtx;

use super::*;

const EVENTS: [&str; 2] = ["data: {\"n\":1}\n\n", "data: {\"n\":2}\n\n"];

/// The events as Google's brotli 1.2 compressed them, flushed after each, then the end.
const BROTLI: [&[u8]; 3] = [
    &[
        11, 7, 128, 100, 97, 116, 97, 58, 32, 123, 34, 110, 34, 58, 49, 125, 10, 10,
    ],
    &[112, 0, 128, 95, 82, 65, 166, 175, 68, 1, 38, 4, 88, 99, 0],
    &[3],
];

/// 64 MiB of zeros by the same.
const BROTLI_BOMB: &[u8] = b"\xcb\xff\xff\x3f\xf8\x27\x00\xe2\xb1\x40\x20\xf7\xfe\x8f\xff\xff\xf7\
    \xff\x04\xf0\x0c\x46\x11\x18\x0e\xef\xd1\xff\xff\xff\xfe\x09\xf0\x08\x8c\x30\x20\x0d\xdf\xb3\
    \xff\xef\xff\xfc\x13\xf0\x11\x08\x70\x50\x0b\xaf\x77\xff\xcf\xff\xf8\x37\xf0\x22\x00\xe0\xb0\
    \x07\x4e\xff\xf8\xff\xff\x07\xff\x04\x40\x1c\x16\x00\xe8\xde\xff\xf1\xff\xff\x0f\xfe\x09\x80\
    \x38\x2c\x00\xd0\xbd\xff\xe3\xff\xff\x1f\xfc\x13\x00\x71\x58\x00\xa0\x7b\xff\x37";

const CODINGS: [&str; 5] = ["gzip", "zlib", "bare", "br", "zstd"];

/// What each of the texts is coded as, flushed, and the coding's own end.
fn coded(coding: &str, texts: &[&[u8]]) -> Vec<Vec<u8>> {
    match coding {
        "gzip" => flushed(
            GzEncoder::new(Vec::new(), level()),
            texts,
            GzEncoder::get_mut,
            |e| e.finish().expect("in memory"),
        ),
        "zlib" => flushed(
            ZlibEncoder::new(Vec::new(), level()),
            texts,
            ZlibEncoder::get_mut,
            |e| e.finish().expect("in memory"),
        ),
        "bare" => flushed(
            DeflateEncoder::new(Vec::new(), level()),
            texts,
            DeflateEncoder::get_mut,
            |e| e.finish().expect("in memory"),
        ),
        "br" => BROTLI.iter().map(|piece| piece.to_vec()).collect(),
        _ => {
            let mut coder = CCtx::create();
            let mut pieces: Vec<Vec<u8>> = Vec::new();
            for text in texts {
                let mut room = vec![0; zstd_safe::compress_bound(text.len()) + 64];
                let mut to = OutBuffer::around(&mut room[..]);
                let mut from = InBuffer::around(text);
                while from.pos() < text.len() {
                    coder.compress_stream(&mut to, &mut from).expect("room");
                }
                assert_eq!(coder.flush_stream(&mut to).expect("room"), 0);
                pieces.push(to.as_slice().to_vec());
            }
            let mut room = [0; 64];
            let mut to = OutBuffer::around(&mut room[..]);
            assert_eq!(coder.end_stream(&mut to).expect("room"), 0);
            pieces.push(to.as_slice().to_vec());
            pieces
        }
    }
}

fn level() -> Compression {
    Compression::default()
}

fn flushed<E: Write>(
    mut encoder: E,
    texts: &[&[u8]],
    out: fn(&mut E) -> &mut Vec<u8>,
    end: fn(E) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for text in texts {
        encoder.write_all(text).expect("in memory");
        encoder.flush().expect("in memory");
        pieces.push(std::mem::take(out(&mut encoder)));
    }
    pieces.push(end(encoder));
    pieces
}

fn name(coding: &str) -> &str {
    match coding {
        "zlib" | "bare" => "deflate",
        other => other,
    }
}

fn codings(named: &str) -> Codings {
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_ENCODING,
        HeaderValue::from_str(named).expect("plain"),
    );
    Codings::named(&headers).expect("known").expect("some")
}

/// Everything that can be had before more is asked for.
fn drain(codings: &mut Codings, into: &mut Vec<u8>) -> Result<Given, Broken> {
    loop {
        match codings.next()? {
            Given::Piece(piece) => {
                assert!(!piece.is_empty() && piece.len() <= PIECE);
                into.extend_from_slice(&piece);
            }
            other => return Ok(other),
        }
    }
}

/// What the pieces decode to, and how it ends.
fn decoded<'a>(
    named: &str,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<u8>, Result<(), Broken>) {
    let (mut codings, mut bytes) = (codings(named), Vec::new());
    for piece in pieces {
        match drain(&mut codings, &mut bytes) {
            Ok(Given::Hungry) => codings.put(Bytes::copy_from_slice(piece)),
            Ok(other) => panic!("{other:?} before the end"),
            Err(broken) => return (bytes, Err(broken)),
        }
    }
    let mut end = drain(&mut codings, &mut bytes).map(drop);
    if end.is_ok() {
        codings.end();
        end = drain(&mut codings, &mut bytes).map(|last| assert_eq!(last, Given::End));
    }
    (bytes, end)
}

fn events() -> [&'static [u8]; 2] {
    EVENTS.map(str::as_bytes)
}

#[test]
fn what_was_flushed_comes_out_at_once() {
    for coding in CODINGS {
        let (mut codings, mut bytes) = (codings(name(coding)), Vec::new());
        for (piece, event) in coded(coding, &events()).iter().zip(EVENTS) {
            codings.put(Bytes::copy_from_slice(piece));
            assert_eq!(
                drain(&mut codings, &mut bytes),
                Ok(Given::Hungry),
                "{coding}"
            );
            assert_eq!(std::mem::take(&mut bytes), event.as_bytes(), "{coding}");
        }
    }
}

#[test]
fn every_split_gives_the_same_and_every_cut_is_seen() {
    let whole = EVENTS.concat().into_bytes();
    for coding in CODINGS {
        let wire = coded(coding, &events()).concat();
        for at in 0..=wire.len() {
            let (head, rest) = wire.split_at(at);
            let pieces = [head, rest].into_iter().filter(|piece| !piece.is_empty());
            let got = decoded(name(coding), pieces);
            assert_eq!(got, (whole.clone(), Ok(())), "{coding} {at}");
            if at > 0 && at < wire.len() {
                let (bytes, end) = decoded(name(coding), [head]);
                assert!(whole.starts_with(&bytes), "{coding} {at}");
                assert_eq!(end, Err(Broken::Cut), "{coding} {at}");
            }
        }
        let bytewise = decoded(name(coding), wire.chunks(1));
        assert_eq!(bytewise, (whole.clone(), Ok(())), "{coding}");
    }
}

#[test]
fn lists_are_undone_from_their_end() {
    let inner = coded("gzip", &events()).concat();
    let outer = coded("zstd", &[&inner]).concat();
    let whole = EVENTS.concat().into_bytes();
    for named in ["gzip, zstd", "GZIP,Zstd", "identity, x-gzip,, zstd"] {
        assert_eq!(
            decoded(named, [&outer[..]]),
            (whole.clone(), Ok(())),
            "{named}"
        );
        assert_eq!(
            decoded(named, outer.chunks(3)),
            (whole.clone(), Ok(())),
            "{named}"
        );
    }
    assert_eq!(decoded("zstd, gzip", [&outer[..]]).1, Err(Broken::Garbled));
    let mut twice = HeaderMap::new();
    twice.append(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    twice.append(CONTENT_ENCODING, HeaderValue::from_static("zstd"));
    let mut codings = Codings::named(&twice).expect("known").expect("some");
    codings.put(outer.into());
    let mut bytes = Vec::new();
    assert_eq!(drain(&mut codings, &mut bytes), Ok(Given::Hungry));
    assert_eq!(bytes, whole);
}

#[test]
fn several_members_are_one_body_and_padding_is_none_of_it() {
    let whole = EVENTS.concat().into_bytes();
    for coding in ["gzip", "zstd"] {
        let one = coded(coding, &events()).concat();
        let two = [one.clone(), one].concat();
        assert_eq!(
            decoded(coding, two.chunks(7)),
            (whole.repeat(2), Ok(())),
            "{coding}"
        );
    }
    for coding in CODINGS {
        let mut wire = coded(coding, &events()).concat();
        wire.extend([0; 9]);
        assert_eq!(
            decoded(name(coding), [&wire[..]]),
            (whole.clone(), Ok(())),
            "{coding}"
        );
    }
}

#[test]
fn nothing_is_a_whole_body_and_nonsense_is_none() {
    for named in ["gzip", "deflate", "br", "zstd", "gzip, br"] {
        assert_eq!(decoded(named, []), (Vec::new(), Ok(())), "{named}");
        let (bytes, end) = decoded(named, [&b"{\"error\":{\"message\":\"not coded\"}}"[..]]);
        assert!(bytes.is_empty(), "{named}");
        // Brotli has no mark at its front: what is wrong shows later, or not before the end.
        assert!(end.is_err(), "{named}");
    }
    let mut gzip = coded("gzip", &events()).concat();
    let check = gzip.len() - 8;
    gzip[check] ^= 1;
    assert_eq!(decoded("gzip", [&gzip[..]]).1, Err(Broken::Garbled));
}

#[test]
fn a_bomb_is_unfolded_no_further_than_it_is_read() {
    let zeros = vec![0; 1 << 20];
    let gzip = coded("gzip", &[zeros.as_slice(); 16]).concat();
    let zstd = coded("zstd", &[zeros.as_slice(); 16]).concat();
    for (named, wire) in [
        ("gzip", &gzip[..]),
        ("zstd", &zstd[..]),
        ("br", BROTLI_BOMB),
    ] {
        assert!(wire.len() < 64 * 1024, "{named}");
        let mut codings = codings(named);
        codings.put(Bytes::copy_from_slice(wire));
        for _ in 0..100 {
            let Ok(Given::Piece(piece)) = codings.next() else {
                panic!("{named}: there is more");
            };
            assert!(piece.len() <= PIECE, "{named}");
        }
    }
}

#[test]
fn a_window_beyond_the_bound_is_refused() {
    // A zstd frame header (RFC 8878, 3.1.1): no checksum, no content size, a window of 1 GiB.
    let huge = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3, 0x01, 0, 0];
    assert_eq!(decoded("zstd", [&huge[..]]).1, Err(Broken::Garbled));
    let fair = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3, 0x01, 0, 0];
    assert_eq!(decoded("zstd", [&fair[..]]), (Vec::new(), Ok(())));
}

#[test]
fn names() {
    for (named, known) in [
        ("identity", Ok(false)),
        ("", Ok(false)),
        (" , ", Ok(false)),
        ("gzip", Ok(true)),
        ("Br", Ok(true)),
        ("compress", Err(Unknown)),
        ("gzip, aws-chunked", Err(Unknown)),
        ("gzip,gzip,gzip,gzip", Ok(true)),
        ("gzip,gzip,gzip,gzip,gzip", Err(Unknown)),
        ("g\u{fc}", Err(Unknown)),
    ] {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(named.as_bytes()).expect("visible");
        headers.insert(CONTENT_ENCODING, value);
        let found = Codings::named(&headers).map(|codings| codings.is_some());
        assert_eq!(found, known, "{named}");
    }
}
