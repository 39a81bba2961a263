//! What must hold for any input of the fuzz target; plain tests replay its corpus with it.

use backstop_chat::Event;
use backstop_dialects::{Dialect, Reading, StreamReader, StreamWriter};
use backstop_stream::{Cutter, Ending, Framing, InputEnd, Meaning, Passage, Progress};
use bytes::Bytes;

#[path = "../cuts.rs"]
mod cuts;
#[path = "../dialects.rs"]
mod dialects;

/// Reads the input as a stream, whole and in pieces, and passes it on in every dialect.
///
/// The first byte picks the dialect, the second where the stream is cut and, by its highest bit,
/// that it comes as JSON where the dialect has that; the rest is the stream.
pub fn check(data: &[u8]) {
    let Some((&[letter, cut], body)) = data.split_first_chunk() else {
        return;
    };
    let dialect = dialects::dialect(letter);
    let events = dialect.framing(false).expect("every dialect has a stream");
    let framing = dialect.framing(cut & 0x80 != 0).unwrap_or(events);
    let whole = readings(dialect, framing, [body]);
    assert_eq!(whole, readings(dialect, framing, cuts::cut(body, cut)));
    let (all, malformed) = whole;
    for (_, target) in dialects::DIALECTS {
        let (out, ending) = translated(dialect, target, &all, malformed.is_some());
        dialects::in_proportion(body.len(), out.len());
        let framing = target.framing(false).expect("every dialect has a stream");
        let (again, broken) = readings(target, framing, [&out[..]]);
        assert_eq!(broken, None, "{target} does not read what it wrote");
        if ending != Ending::Whole {
            let done = again.iter().any(|reading| reading.meaning == Meaning::Done);
            assert!(!done, "a broken stream looks finished in {target}");
        }
    }
}

/// What the frames say, and what was wrong with the one that ended it.
fn readings<'a>(
    dialect: Dialect,
    framing: Framing,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Reading>, Option<String>) {
    let mut cutter = Cutter::new(framing);
    let mut reader = StreamReader::new(dialect, true);
    let mut plain = StreamReader::new(dialect, false);
    let mut all = Vec::new();
    let mut chunks = chunks.into_iter();
    let mut ended = false;
    loop {
        let next = if ended {
            cutter.finish()
        } else {
            cutter.next()
        };
        let frame = match next {
            Ok(Some(frame)) => frame,
            Ok(None) if ended => return (all, None),
            Ok(None) => {
                match chunks.next() {
                    Some(chunk) => cutter.push(Bytes::copy_from_slice(chunk)),
                    None => ended = true,
                }
                continue;
            }
            Err(error) => return (all, Some(error.to_string())),
        };
        let light = plain.read(&frame);
        match reader.read(&frame) {
            // A line end cut in two makes a block of its own.
            Ok(reading) if reading.meaning == Meaning::Comment => {}
            Ok(reading) => {
                let light = light.expect("readable either way");
                assert_eq!(
                    (light.meaning, light.usage),
                    (reading.meaning, reading.usage)
                );
                assert_eq!(light.events, []);
                all.push(reading);
            }
            Err(malformed) => return (all, Some(malformed.to_string())),
        }
    }
}

/// The stream in another dialect, as the gateway passes it on.
fn translated(
    from: Dialect,
    to: Dialect,
    readings: &[Reading],
    malformed: bool,
) -> (Vec<u8>, Ending) {
    let mut progress = Progress::new(from.sentinel());
    let mut writer = StreamWriter::new(to, &dialects::STAMP, true);
    let mut out = Vec::new();
    for reading in readings {
        if progress.observe(reading.meaning) == Passage::Pass && reading.meaning != Meaning::Error {
            for event in &reading.events {
                writer.write(event, &mut out);
            }
        }
    }
    let input = if malformed {
        InputEnd::Broken
    } else {
        InputEnd::Clean
    };
    let ending = progress.end(input);
    if ending == Ending::Whole {
        writer.write(&Event::End, &mut out);
    }
    (out, ending)
}
