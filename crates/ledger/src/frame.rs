//! How records lie in a segment: length, checksum, version, JSON; a torn end is recognised.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of what follows the checksum, little-endian |
//! | 4 | CRC-32 (IEEE) of it, little-endian |
//! | 1 | version of the record's spelling, 1 today |
//! | n | the record, JSON |
//!
//! A segment starts with a record like any other: there is no head that could be torn by itself. A
//! length of 0 never occurs, so a file that was extended with zeroes ends where the zeroes begin.

use crate::entry::Entry;

/// The spelling that is written.
const VERSION: u8 = 1;

/// Length and checksum.
const HEAD: usize = 8;

/// A longer record than this was never written: a row takes less than 2 KiB, and names from
/// callers are cut at 256 characters.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Puts one record after what `out` holds. A record that would be too long is left out, which no
/// record of ours is.
pub(crate) fn encode(out: &mut Vec<u8>, entry: &Entry<'_>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    out.push(VERSION);
    let written = serde_json::to_writer(&mut *out, entry).is_ok();
    let body = out.len() - start - HEAD;
    if !written || body > LONGEST {
        out.truncate(start);
        return;
    }
    let sum = crc32fast::hash(&out[start + HEAD..]);
    let length = u32::try_from(body).expect("at most LONGEST");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + HEAD].copy_from_slice(&sum.to_le_bytes());
}

/// What a piece of a segment holds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    /// The whole records, in order.
    pub(crate) entries: Vec<Entry<'static>>,
    /// Bytes of whole records; what follows is torn, or not written yet.
    pub(crate) consumed: usize,
    /// Whole records in a spelling that this build does not know; passed over.
    pub(crate) foreign: usize,
}

/// Reads whole records up to the first that is not.
pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    while let Some(body) = whole(&bytes[decoded.consumed..]) {
        decoded.consumed += HEAD + body.len();
        let read = match body.split_first() {
            Some((&VERSION, json)) => serde_json::from_slice(json).ok(),
            _ => None,
        };
        match read {
            Some(entry) => decoded.entries.push(entry),
            None => decoded.foreign += 1,
        }
    }
    decoded
}

/// The body of the record that `bytes` starts with, when all of it is there and unharmed.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if length == 0 || length > LONGEST {
        return None;
    }
    let body = rest.get(..length)?;
    (crc32fast::hash(body) == u32::from_le_bytes(*sum)).then_some(body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::JourneyEntry;

    fn entry(id: i64, model: &str) -> Entry<'static> {
        Entry::Begin(JourneyEntry {
            id,
            request_id: format!("r-{id}").into(),
            model_requested: model.to_owned().into(),
            ..JourneyEntry::default()
        })
    }

    proptest! {
        /// Any prefix of a segment holds exactly the records that were whole by then.
        #[test]
        fn a_prefix_holds_the_records_that_were_whole(
            models in prop::collection::vec(".{0,40}", 1..8),
            cut in 0.0..=1.0f64,
        ) {
            let mut bytes = Vec::new();
            let mut ends = Vec::new();
            let mut entries = Vec::new();
            for (id, model) in (1..).zip(&models) {
                let entry = entry(id, model);
                encode(&mut bytes, &entry);
                ends.push(bytes.len());
                entries.push(entry);
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let cut = (bytes.len() as f64 * cut) as usize;
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let decoded = decode(&bytes[..cut]);
            prop_assert_eq!(&decoded.entries[..], &entries[..whole]);
            prop_assert_eq!(decoded.consumed, ends[..whole].last().copied().unwrap_or(0));
        }

        /// One changed byte never makes another record, and never breaks the reader.
        #[test]
        fn a_changed_byte_ends_the_reading(at in 0usize..400, to in any::<u8>()) {
            let mut bytes = Vec::new();
            encode(&mut bytes, &entry(1, "a"));
            let first = bytes.len();
            encode(&mut bytes, &entry(2, "b"));
            let at = at % bytes.len();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            let decoded = decode(&bytes);
            prop_assert_eq!(decoded.entries.len(), usize::from(at >= first));
        }

        /// Whatever lies in the folder, reading it ends.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            prop_assert!(decode(&bytes).consumed <= bytes.len());
        }
    }

    #[test]
    fn spellings_of_later_builds_and_zeroes_are_passed_over() {
        let mut bytes = Vec::new();
        encode(&mut bytes, &entry(1, "a"));
        let later = [9, b'?'];
        bytes.extend_from_slice(&2u32.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&later).to_le_bytes());
        bytes.extend_from_slice(&later);
        encode(&mut bytes, &entry(2, "b"));
        let whole = bytes.len();
        bytes.extend_from_slice(&[0; 64]);
        let decoded = decode(&bytes);
        assert_eq!(decoded.entries, [entry(1, "a"), entry(2, "b")]);
        assert_eq!((decoded.consumed, decoded.foreign), (whole, 1));
    }
}
