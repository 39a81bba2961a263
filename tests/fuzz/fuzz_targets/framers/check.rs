//! What must hold for any input of the fuzz target; plain tests replay its corpus with it.

use backstop_stream::{Cutter, Error, Frame, Framing};
use bytes::Bytes;

#[path = "../cuts.rs"]
mod cuts;

/// Cuts the input into frames, whole and in pieces.
///
/// The first byte says where it is cut, the rest is the stream.
pub fn check(data: &[u8]) {
    let Some((&cut, body)) = data.split_first() else {
        return;
    };
    for framing in [Framing::Events, Framing::JsonArray, Framing::Messages] {
        let (whole, end) = frames(framing, [body]);
        let (pieces, end_in_pieces) = frames(framing, cuts::cut(body, cut));
        assert_eq!(end, end_in_pieces);
        assert_eq!(told(&whole), told(&pieces), "{framing:?}");
        if end.is_none() {
            let raw = |frames: &[Frame]| -> Vec<u8> {
                let bytes = frames.iter().flat_map(|frame| frame.raw().iter().copied());
                bytes.collect()
            };
            assert!(
                raw(&whole) == body && raw(&pieces) == body,
                "bytes were lost"
            );
        }
        if framing == Framing::Messages {
            continue;
        }
        // What goes out behind other blocks tells a client the same.
        let wire: Vec<u8> = pieces.into_iter().flat_map(Frame::into_wire).collect();
        let (sent, _) = frames(Framing::Events, [&b": before\n\n"[..], &wire]);
        let heard: Vec<_> = told(&sent)
            .into_iter()
            .map(|(name, data, _)| (name, data))
            .collect();
        let mut said: Vec<_> = told(&whole)
            .into_iter()
            .map(|(name, data, _)| (name, data))
            .collect();
        if framing == Framing::JsonArray {
            // Line ends inside an entry become those of the event.
            for (_, data) in &mut said {
                *data = lines(data);
            }
        }
        assert_eq!(heard, said, "{framing:?}");
    }
}

/// What a client is told by a frame: its name, its data, whether its blank line was there.
type Told = (Option<String>, Vec<u8>, bool);

/// The frames with a field in them: how blank lines between blocks are dealt out depends on the cut.
fn told(frames: &[Frame]) -> Vec<Told> {
    let telling = frames.iter().filter(|frame| !frame.is_comment());
    telling
        .map(|frame| {
            let name = frame.event().map(str::to_owned);
            (name, frame.data().to_vec(), frame.is_terminated())
        })
        .collect()
}

fn lines(data: &[u8]) -> Vec<u8> {
    let text: Vec<u8> = data.to_vec();
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if_eq(&b'\n');
                out.push(b'\n');
            }
            byte => out.push(byte),
        }
    }
    out
}

fn frames<'a>(
    framing: Framing,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Frame>, Option<Error>) {
    let mut cutter = Cutter::new(framing);
    let mut frames = Vec::new();
    for chunk in chunks {
        cutter.push(Bytes::copy_from_slice(chunk));
        loop {
            match cutter.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    loop {
        match cutter.finish() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}
