//! A caller's request, read within limits before anything else is done with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backstop_config::Snapshot;
use backstop_units::ByteCount;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::error::Refused;

/// Request bytes kept in memory by the whole process.
#[derive(Debug, Default)]
pub(crate) struct Buffered(AtomicU64);

/// A share of the process's request bytes, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Buffered>,
    bytes: u64,
}

impl Buffered {
    /// Bytes held now.
    pub(crate) fn held(&self) -> ByteCount {
        ByteCount(self.0.load(Ordering::Relaxed))
    }

    fn take(self: &Arc<Self>, bytes: u64, cap: ByteCount) -> Option<Share> {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|sum| *sum <= cap.0)
            });
        taken.ok().map(|_| Share {
            of: Arc::clone(self),
            bytes,
        })
    }
}

impl Share {
    fn grow(&mut self, bytes: u64, cap: ByteCount) -> bool {
        let Some(mut more) = self.of.take(bytes, cap) else {
            return false;
        };
        self.bytes += std::mem::take(&mut more.bytes);
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What a body may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Of one request.
    pub(crate) body: ByteCount,
    /// Of all requests together.
    pub(crate) buffered: ByteCount,
    /// The longest pause inside it.
    pub(crate) idle: Duration,
}

impl BodyLimits {
    /// As the configuration has them.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            body: snapshot.limits.body_bytes,
            buffered: snapshot.limits.buffered_bytes,
            idle: snapshot.server.body_idle,
        }
    }
}

/// Reads the body whole, once. A body that announces too much is refused before a byte of it is
/// read; one that breaks off is never taken for a short one.
pub(crate) async fn read_body<B>(
    headers: &HeaderMap,
    mut body: B,
    limits: BodyLimits,
    buffered: &Arc<Buffered>,
) -> Result<(Bytes, Share), Refused>
where
    B: Body<Data = Bytes> + Unpin,
{
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && encoding.as_bytes() != b"identity"
    {
        return Err(Refused::Encoded);
    }
    let announced = body.size_hint().exact();
    if announced.is_some_and(|length| length > limits.body.0) {
        return Err(Refused::TooLarge { limit: limits.body });
    }
    // The share grows with what arrives: announcing much and sending nothing takes nothing.
    let mut share = buffered
        .take(0, limits.buffered)
        .ok_or(Refused::Overloaded)?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    loop {
        let frame = match timeout(limits.idle, body.frame()).await {
            Err(_) => return Err(Refused::BodyStalled),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Refused::BodyCut),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let read = (first.len() + all.len() + data.len()) as u64;
        if read > limits.body.0 {
            return Err(Refused::TooLarge { limit: limits.body });
        }
        if read > share.bytes && !share.grow(read - share.bytes, limits.buffered) {
            return Err(Refused::Overloaded);
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.reserve(2 * (first.len() + data.len()));
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    let body = if all.is_empty() { first } else { all.freeze() };
    Ok((body, share))
}
