//! Content codings and binary frames, as plainly as their formats allow.
//!
//! A decoder cannot tell a stored block from a compressed one, so the codings here store: no
//! compressor is needed to test who decompresses. Each piece stands in blocks of its own.

use bytes::{BufMut, Bytes, BytesMut};

use crate::script::Coding;

/// A body in a coding, piece by piece. What a piece gives can be decoded at once.
pub(crate) struct Encoder {
    coding: Coding,
    begun: bool,
    crc: u32,
    length: u32,
}

impl Coding {
    /// The name in `content-encoding`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

impl Encoder {
    pub(crate) const fn new(coding: Coding) -> Self {
        Self {
            coding,
            begun: false,
            crc: u32::MAX,
            length: 0,
        }
    }

    /// The next piece of the body.
    pub(crate) fn piece(&mut self, body: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(body.len() + 64);
        match self.coding {
            Coding::Gzip => {
                self.begin(&mut out);
                self.crc = crc32_over(self.crc, body);
                self.length = self.length.wrapping_add(length(body.len()));
                for block in body.chunks(usize::from(u16::MAX)) {
                    put_stored(&mut out, block, false);
                }
            }
            // Uncompressed meta-blocks (RFC 7932, 9.2).
            Coding::Brotli => {
                for block in body.chunks(1 << 16) {
                    // From the lowest bit: not last (1), four nibbles of length (2, as 0),
                    // length - 1 (16), uncompressed (1), then padding to the byte.
                    let head = ((length(block.len()) - 1) << 3 | 1 << 19) << self.carry();
                    self.begun = true;
                    out.put_slice(&head.to_le_bytes()[..3]);
                    out.put_slice(block);
                }
            }
            Coding::Zstd => {
                self.begin(&mut out);
                for block in body.chunks(1 << 16) {
                    put_raw(&mut out, block, false);
                }
            }
        }
        out.freeze()
    }

    /// What ends the coding.
    pub(crate) fn end(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        self.begin(&mut out);
        match self.coding {
            Coding::Gzip => {
                put_stored(&mut out, &[], true);
                out.put_u32_le(!self.crc);
                out.put_u32_le(self.length);
            }
            // An empty last block: last (1), empty (1).
            Coding::Brotli => out.put_u8(0b11 << self.carry()),
            Coding::Zstd => put_raw(&mut out, &[], true),
        }
        out.freeze()
    }

    /// The head of gzip and zstd, once.
    fn begin(&mut self, out: &mut BytesMut) {
        if self.begun {
            return;
        }
        match self.coding {
            // Magic, deflate, no flags, no time, no hints, unknown system (RFC 1952, 2.3).
            Coding::Gzip => out.put_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]),
            Coding::Brotli => return,
            // Magic, no checksum and no sizes, a window of 128 KiB (RFC 8878, 3.1.1).
            Coding::Zstd => out.put_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3]),
        }
        self.begun = true;
    }

    /// The one-bit window size (16) of brotli comes before the first block.
    const fn carry(&self) -> u32 {
        !self.begun as u32
    }
}

/// A stored deflate block (RFC 1951, 3.2.4).
fn put_stored(out: &mut BytesMut, block: &[u8], last: bool) {
    let size = u16::try_from(block.len()).expect("blocks are cut at 65,535 bytes");
    out.put_u8(u8::from(last));
    out.put_u16_le(size);
    out.put_u16_le(!size);
    out.put_slice(block);
}

/// A raw zstd block (RFC 8878, 3.1.1.2): last (1), raw (2, as 0), size (21).
fn put_raw(out: &mut BytesMut, block: &[u8], last: bool) {
    let head = length(block.len()) << 3 | u32::from(last);
    out.put_slice(&head.to_le_bytes()[..3]);
    out.put_slice(block);
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
    !crc32_over(u32::MAX, bytes)
}

/// The same, gone on with: its register before and after.
fn crc32_over(mut crc: u32, bytes: &[u8]) -> u32 {
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    crc
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

    fn coded(coding: Coding, pieces: &[&[u8]]) -> Vec<u8> {
        let mut encoder = Encoder::new(coding);
        let mut out = Vec::new();
        for piece in pieces {
            out.extend_from_slice(&encoder.piece(piece));
        }
        out.extend_from_slice(&encoder.end());
        out
    }

    #[test]
    fn stored_codings_have_these_bytes() {
        // Decoded once by gzip(1), brotli(1) and zstd(1); kept here as bytes.
        let gzip = coded(Coding::Gzip, &[b"h", b"i"]);
        assert_eq!(gzip[10..16], [0, 1, 0, 0xfe, 0xff, b'h']);
        assert_eq!(gzip[22..27], [1, 0, 0, 0xff, 0xff]);
        assert_eq!(gzip[27..31], crc32(b"hi").to_le_bytes());
        assert_eq!(gzip[31..], [2, 0, 0, 0]);
        let brotli = coded(Coding::Brotli, &[b"hi"]);
        assert_eq!(brotli[..], [0x10, 0x00, 0x10, b'h', b'i', 0b11]);
        assert_eq!(coded(Coding::Brotli, &[]), [0b110]);
        let zstd = coded(Coding::Zstd, &[b"hi"]);
        assert_eq!(zstd[6..], [16, 0, 0, b'h', b'i', 1, 0, 0]);
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
