//! Every cut of the same bytes gives the same events, and no byte is lost.

use proptest::prelude::*;

use super::*;
use crate::{Ending, InputEnd, Meaning, Passage, Progress, Sentinel};

const FIXTURES: &[(&str, &[u8])] = &[
    (
        "openrouter-comments",
        include_bytes!("../../fixtures/openrouter-comments.sse"),
    ),
    (
        "openrouter-error-after-output",
        include_bytes!("../../fixtures/openrouter-error-after-output.sse"),
    ),
    (
        "cloudflare-text",
        include_bytes!("../../fixtures/cloudflare-text.sse"),
    ),
    (
        "compat-no-done",
        include_bytes!("../../fixtures/compat-no-done.sse"),
    ),
    (
        "compat-done-only",
        include_bytes!("../../fixtures/compat-done-only.sse"),
    ),
    (
        "compat-cut-after-startup",
        include_bytes!("../../fixtures/compat-cut-after-startup.sse"),
    ),
    (
        "compat-cut-after-output",
        include_bytes!("../../fixtures/compat-cut-after-output.sse"),
    ),
    (
        "compat-done-without-finish",
        include_bytes!("../../fixtures/compat-done-without-finish.sse"),
    ),
    (
        "quirks-crlf",
        include_bytes!("../../fixtures/quirks-crlf.sse"),
    ),
    (
        "quirks-mixed-ends",
        include_bytes!("../../fixtures/quirks-mixed-ends.sse"),
    ),
    (
        "anthropic-text",
        include_bytes!("../../fixtures/anthropic-text.sse"),
    ),
    (
        "anthropic-no-message-stop",
        include_bytes!("../../fixtures/anthropic-no-message-stop.sse"),
    ),
    (
        "anthropic-overloaded-startup",
        include_bytes!("../../fixtures/anthropic-overloaded-startup.sse"),
    ),
];

/// What a client is told by a frame: name, data, whether its blank line was there.
type Event = (Option<String>, Vec<u8>, bool);

/// All frames of `chunks`, and the error that ended them.
fn frames<'a>(
    limit: ByteCount,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Frame>, Option<Error>) {
    let mut framer = Framer::new(limit);
    let mut frames = Vec::new();
    for chunk in chunks {
        framer.push(Bytes::copy_from_slice(chunk));
        loop {
            match framer.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    loop {
        match framer.finish() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

/// The frames with a field in them. How blank lines between blocks are dealt out depends on the
/// cut; what a client reads does not.
fn events(frames: &[Frame]) -> Vec<Event> {
    let told = frames.iter().filter(|frame| !frame.is_comment());
    told.map(|frame| {
        (
            frame.event().map(str::to_owned),
            frame.data().to_vec(),
            frame.is_terminated(),
        )
    })
    .collect()
}

/// Comment lines, in order: they too survive every cut.
fn comments(frames: &[Frame]) -> usize {
    frames
        .iter()
        .filter(|frame| frame.is_comment() && frame.raw().contains(&b':'))
        .count()
}

fn check<'a>(whole: &[u8], chunks: impl IntoIterator<Item = &'a [u8]>, what: &str) {
    let (expected, _) = frames(Framer::DEFAULT_LIMIT, [whole]);
    let (cut, error) = frames(Framer::DEFAULT_LIMIT, chunks);
    assert_eq!(error, None, "{what}");
    assert_eq!(events(&cut), events(&expected), "{what}");
    assert_eq!(comments(&cut), comments(&expected), "{what}");
    let raws: Vec<u8> = cut.iter().flat_map(|frame| frame.raw().to_vec()).collect();
    assert_eq!(raws, whole, "{what}");
    // What goes out behind other blocks tells a client the same.
    let wire: Vec<u8> = cut.into_iter().flat_map(Frame::into_wire).collect();
    let (sent, _) = frames(Framer::DEFAULT_LIMIT, [b": before\n\n", &wire[..]]);
    let heard: Vec<_> = events(&sent)
        .into_iter()
        .map(|(name, data, _)| (name, data))
        .collect();
    let said: Vec<_> = events(&expected)
        .into_iter()
        .map(|(name, data, _)| (name, data))
        .collect();
    assert_eq!(heard, said, "{what}");
}

#[test]
fn every_cut_in_two_gives_the_same_events() {
    for (name, whole) in FIXTURES {
        for at in 0..=whole.len() {
            let (head, tail) = whole.split_at(at);
            check(whole, [head, tail], &format!("{name} cut at {at}"));
        }
    }
}

#[test]
fn single_bytes_give_the_same_events() {
    for (name, whole) in FIXTURES {
        check(whole, whole.chunks(1), name);
        check(whole, whole.chunks(2), name);
        check(whole, whole.chunks(3), name);
    }
}

#[test]
fn blocks_are_found_where_the_specification_puts_them() {
    let rows: &[(&str, &[&str])] = &[
        ("", &[]),
        ("data: a\n\ndata: b\n\n", &["data: a\n\n", "data: b\n\n"]),
        (
            "data: a\r\n\r\ndata: b\r\n\r\n",
            &["data: a\r\n\r\n", "data: b\r\n\r\n"],
        ),
        ("data: a\r\rdata: b\r\r", &["data: a\r\r", "data: b\r\r"]),
        (
            "data: a\n\r\ndata: b\r\n\n",
            &["data: a\n\r\n", "data: b\r\n\n"],
        ),
        (
            "data: a\n\rdata: b\r\n\r",
            &["data: a\n\r", "data: b\r\n\r"],
        ),
        (
            "data: a\r\n\ndata: b\r\r\n",
            &["data: a\r\n\n", "data: b\r\r\n"],
        ),
        ("\n\r\n\rdata: a\n\n\n", &["\n\r\n\rdata: a\n\n", "\n"]),
        ("data: a\n\n\r\n: c\n\n", &["data: a\n\n", "\r\n: c\n\n"]),
        (": c\ndata: a\n\n", &[": c\ndata: a\n\n"]),
        ("data: a", &["data: a"]),
        ("data: a\r", &["data: a\r"]),
        ("data: a\n\ndata: b\n", &["data: a\n\n", "data: b\n"]),
        ("\u{feff}data: a\n\n", &["\u{feff}data: a\n\n"]),
        ("\u{feff}\n\ndata: a\n\n", &["\u{feff}\n\ndata: a\n\n"]),
        ("\u{feff}", &["\u{feff}"]),
        (
            "data: \u{2028}\u{85}\u{b}\n\n",
            &["data: \u{2028}\u{85}\u{b}\n\n"],
        ),
    ];
    for (whole, blocks) in rows {
        let (frames, error) = frames(Framer::DEFAULT_LIMIT, [whole.as_bytes()]);
        assert_eq!(error, None);
        let raws: Vec<_> = frames
            .iter()
            .map(|frame| std::str::from_utf8(frame.raw()).unwrap())
            .collect();
        assert_eq!(&raws, blocks, "{whole:?}");
    }
}

#[test]
fn a_block_is_given_out_at_its_cr_and_a_late_lf_opens_the_next() {
    let mut framer = Framer::default();
    framer.push(Bytes::from_static(b"data: a\r\n\r"));
    assert_eq!(framer.next().unwrap().unwrap().raw(), "data: a\r\n\r");
    framer.push(Bytes::from_static(b"\ndata: b\r\n\r"));
    let next = framer.next().unwrap().unwrap();
    assert_eq!(
        (next.raw(), next.data()),
        (&Bytes::from_static(b"\ndata: b\r\n\r"), &b"b"[..])
    );
    framer.push(Bytes::from_static(b"\n"));
    let rest = framer.next().unwrap().unwrap();
    assert!(rest.is_comment() && rest.is_terminated());
    assert_eq!(framer.finish(), Ok(None));
}

#[test]
fn half_a_byte_order_mark_is_content() {
    for (whole, count) in [
        (&b"\xef\xbb"[..], 1),
        (b"\xef\n\ndata: a\n\n", 2),
        (b"\xef\xbbdata: a\n\n", 1),
    ] {
        check(whole, whole.chunks(1), "half a mark");
        assert_eq!(frames(Framer::DEFAULT_LIMIT, [whole]).0.len(), count);
    }
}

#[test]
fn a_block_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: a\n\ndata: b\n\n");
    let mut framer = Framer::default();
    framer.push(chunk.clone());
    while let Some(frame) = framer.next().unwrap() {
        assert!(chunk.as_ptr_range().contains(&frame.raw().as_ptr()));
    }
}

#[test]
fn several_chunks_may_be_pushed_before_the_first_is_read() {
    let mut framer = Framer::default();
    for chunk in [&b"data: a\n"[..], b"\nda", b"", b"ta: b\n\n"] {
        framer.push(Bytes::from_static(chunk));
    }
    let (a, b) = (
        framer.finish().unwrap().unwrap(),
        framer.finish().unwrap().unwrap(),
    );
    assert_eq!((a.data(), b.data()), (&b"a"[..], &b"b"[..]));
    assert_eq!(framer.finish(), Ok(None));
}

#[test]
fn the_limit_is_the_same_for_every_cut() {
    // Whole, limit, frames before the error, whether there is one.
    let rows: &[(&str, u64, usize, bool)] = &[
        ("data: a\n\n", 9, 1, false),
        ("data: a\n\n", 8, 0, true),
        ("data: a\r\n\r\n", 10, 1, false),
        ("data: a\r\n\r\n", 9, 0, true),
        ("\n\n\n\n\n\n\n\n\n\n\n\ndata: a\n\n", 9, 1, false),
        ("\u{feff}data: a\n\n", 9, 1, false),
        ("data: a\n\ndata: too long", 9, 1, true),
        ("data: abc", 9, 1, false),
        ("data: abcd", 9, 0, true),
    ];
    for &(whole, limit, count, fails) in rows {
        let limit = ByteCount(limit);
        let expected = fails.then_some(Error::TooLong { limit });
        for at in 0..=whole.len() {
            let (head, tail) = whole.as_bytes().split_at(at);
            let (frames, error) = frames(limit, [head, tail]);
            assert_eq!(error, expected, "{whole:?} cut at {at}");
            let told = frames.iter().filter(|frame| !frame.is_comment()).count();
            assert_eq!(told, count, "{whole:?} cut at {at}");
        }
    }
}

#[test]
fn after_an_overrun_nothing_is_read_and_nothing_kept() {
    let mut framer = Framer::new(ByteCount(16));
    framer.push(Bytes::from(vec![b'x'; 64]));
    let too_long = Err(Error::TooLong {
        limit: ByteCount(16),
    });
    assert_eq!(framer.next(), too_long);
    framer.push(Bytes::from_static(b"\n\ndata: a\n\n"));
    assert_eq!(framer.next(), too_long);
    assert_eq!(framer.finish(), too_long);
    assert!(framer.chunk.is_empty() && framer.partial.is_empty() && framer.later.is_empty());
}

#[test]
fn a_long_block_in_single_bytes_is_scanned_once() {
    // Rescanning would make this quadratic: half a million million steps instead of a million.
    let mut whole = b"data: ".to_vec();
    whole.resize(1 << 20, b'x');
    whole.extend_from_slice(b"\n\n");
    let shared = Bytes::from(whole);
    let mut framer = Framer::default();
    for at in 0..shared.len() - 1 {
        framer.push(shared.slice(at..=at));
        assert_eq!(framer.next(), Ok(None));
    }
    framer.push(shared.slice(shared.len() - 1..));
    assert_eq!(framer.next().unwrap().unwrap().raw(), &shared);
}

/// A rough reading of the fixtures' two dialects; the real ones live with the dialects.
fn meaning(frame: &Frame) -> Meaning {
    let data = std::str::from_utf8(frame.data()).unwrap();
    let has = |part: &str| data.contains(part);
    if data.is_empty() {
        Meaning::Comment
    } else if data == "[DONE]" || has("message_stop") {
        Meaning::Done
    } else if has("\"error\":{") {
        Meaning::Error
    } else if has("finish_reason\":\"") || has("stop_reason\":\"") {
        Meaning::Terminal
    } else if has("content\":\"\"") || has("message_start") || has("block_st") || has("ping") {
        Meaning::Startup
    } else {
        Meaning::Output
    }
}

#[test]
fn fixtures_end_as_their_names_say() {
    let cut = Ending::Cut { after_output: true };
    let rows = [
        ("openrouter-comments", Sentinel::Optional, Ending::Whole),
        (
            "openrouter-error-after-output",
            Sentinel::Optional,
            Ending::Failed { after_output: true },
        ),
        ("cloudflare-text", Sentinel::Optional, Ending::Whole),
        ("compat-no-done", Sentinel::Optional, Ending::Whole),
        ("compat-done-only", Sentinel::Optional, Ending::Empty),
        (
            "compat-cut-after-startup",
            Sentinel::Optional,
            Ending::StartupOnly,
        ),
        ("compat-cut-after-output", Sentinel::Optional, cut),
        ("compat-done-without-finish", Sentinel::Optional, cut),
        ("quirks-crlf", Sentinel::Optional, Ending::Whole),
        ("quirks-mixed-ends", Sentinel::Optional, Ending::Whole),
        ("anthropic-text", Sentinel::Required, Ending::Whole),
        ("anthropic-no-message-stop", Sentinel::Required, cut),
        (
            "anthropic-no-message-stop",
            Sentinel::Optional,
            Ending::Whole,
        ),
        (
            "anthropic-overloaded-startup",
            Sentinel::Required,
            Ending::Failed {
                after_output: false,
            },
        ),
    ];
    for (name, sentinel, ending) in rows {
        let (_, whole) = FIXTURES.iter().find(|(known, _)| *known == name).unwrap();
        let mut progress = Progress::new(sentinel);
        let mut passed_done = false;
        for frame in frames(Framer::DEFAULT_LIMIT, [*whole]).0 {
            let meaning = meaning(&frame);
            let passage = progress.observe(meaning);
            passed_done |= meaning == Meaning::Done && passage == Passage::Pass;
        }
        assert_eq!(progress.end(InputEnd::Clean), ending, "{name} {sentinel:?}");
        assert!(
            !passed_done || ending == Ending::Whole,
            "{name} looks finished"
        );
    }
}

/// Streams in which line ends, marks, fields and cut characters are likely.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"\r"[..],
        b"\n",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b"data: x",
        b"data:",
        b"data",
        b"event: e",
        b": note",
        b"id: 1",
        b"\xef\xbb\xbf",
        b"\xef",
        b"\xf0\x9f\x98\x80",
        b"\xff",
        b" ",
        b"y",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// `whole` in pieces, cut at `cuts` (taken modulo its length).
fn pieces<'a>(whole: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).collect();
    at.sort_unstable();
    let ends = at.iter().copied().chain([whole.len()]);
    let starts = [0].into_iter().chain(at.iter().copied());
    starts
        .zip(ends)
        .map(|(start, end)| &whole[start..end])
        .collect()
}

proptest! {
    #[test]
    fn any_cut_of_any_stream_gives_the_same_events(
        whole in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        check(&whole, pieces(&whole, &cuts), "cut");
    }

    #[test]
    fn any_cut_of_a_fixture_gives_the_same_events(
        fixture in prop::sample::select(FIXTURES),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        check(fixture.1, pieces(fixture.1, &cuts), fixture.0);
    }

    #[test]
    fn any_cut_meets_the_limit_at_the_same_event(
        whole in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        limit in 0_u64..30,
    ) {
        let (expected, verdict) = frames(ByteCount(limit), [&whole[..]]);
        let (cut, error) = frames(ByteCount(limit), pieces(&whole, &cuts));
        prop_assert_eq!(error, verdict);
        prop_assert_eq!(events(&cut), events(&expected));
    }
}
