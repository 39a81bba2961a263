//! Content codings and binary frames, as plainly as their formats allow.
//!
//! A decoder cannot tell a stored block from a compressed one, so the codings here store: no
//! compressor is needed to test who decompresses.

use bytes::{BufMut, Bytes, BytesMut};

/// `body` as a gzip member (RFC 1952) of stored deflate blocks (RFC 1951, 3.2.4).
pub(crate) fn gzip(body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(body.len() + 64);
    // Magic, deflate, no flags, no time, no hints, unknown system.
    out.put_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    let mut blocks = body.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        put_stored(&mut out, block, blocks.peek().is_none());
    }
    if body.is_empty() {
        put_stored(&mut out, &[], true);
    }
    out.put_u32_le(crc32(body));
    out.put_u32_le(length(body.len()));
    out.freeze()
}

fn put_stored(out: &mut BytesMut, block: &[u8], last: bool) {
    let size = u16::try_from(block.len()).expect("blocks are cut at 65,535 bytes");
    out.put_u8(u8::from(last));
    out.put_u16_le(size);
    out.put_u16_le(!size);
    out.put_slice(block);
}

/// `body` as a brotli stream (RFC 7932) of uncompressed meta-blocks.
pub(crate) fn brotli(body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(body.len() + 64);
    let mut carry = 1; // The one-bit window size (16) comes before the first block.
    for block in body.chunks(1 << 16) {
        // From the lowest bit: not last (1), four nibbles of length (2, as 0), length - 1 (16),
        // uncompressed (1), then padding to the byte.
        let head = ((length(block.len()) - 1) << 3 | 1 << 19) << carry;
        out.put_slice(&head.to_le_bytes()[..3]);
        out.put_slice(block);
        carry = 0;
    }
    // An empty last block: last (1), empty (1).
    out.put_u8(0b11 << carry);
    out.freeze()
}

/// One frame of `application/vnd.amazon.eventstream` with string headers.
pub(crate) fn event_stream_frame(headers: &[(String, String)], payload: &[u8]) -> Bytes {
    let mut head = BytesMut::new();
    for (name, value) in headers {
        head.put_u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
        head.put_slice(&name.as_bytes()[..name.len().min(255)]);
        head.put_u8(7); // A string, with its length in two bytes.
        head.put_u16(u16::try_from(value.len()).unwrap_or(u16::MAX));
        head.put_slice(&value.as_bytes()[..value.len().min(65_535)]);
    }
    let mut out = BytesMut::with_capacity(16 + head.len() + payload.len());
    out.put_u32(length(16 + head.len() + payload.len()));
    out.put_u32(length(head.len()));
    out.put_u32(crc32(&out));
    out.put_slice(&head);
    out.put_slice(payload);
    out.put_u32(crc32(&out));
    out.freeze()
}

/// CRC-32 as gzip and event streams use it (reflected, polynomial 0x04C11DB7).
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("scripted bodies stay below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_has_the_known_check_value() {
        // The check value every CRC catalogue gives for "123456789".
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn stored_codings_have_these_bytes() {
        // Decoded once by gzip(1) and brotli(1); kept here as bytes.
        assert_eq!(gzip(b"hi")[10..17], [1, 2, 0, 0xfd, 0xff, b'h', b'i']);
        assert_eq!(brotli(b"hi")[..], [0x10, 0x00, 0x10, b'h', b'i', 0b11]);
        assert_eq!(brotli(b"")[..], [0b110]);
    }

    #[test]
    fn a_frame_declares_its_lengths() {
        let headers = vec![(":event-type".to_owned(), "ping".to_owned())];
        let frame = event_stream_frame(&headers, b"{}");
        let head = 1 + 11 + 1 + 2 + 4;
        assert_eq!(frame.len(), 16 + head + 2);
        assert_eq!(frame[..8], [0, 0, 0, 37, 0, 0, 0, 19]);
        let (body, crc) = frame.split_at(frame.len() - 4);
        assert_eq!(crc32(body).to_be_bytes(), crc);
    }
}
