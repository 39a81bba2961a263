//! What broke, read from the layers below: ours, rustls, hyper, h2, the socket.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use backstop_classifier::{Clock, Sent, Transport};
use hyper_util::client::legacy;

use crate::dial::Unresolved;

/// Why an attempt has no answer, or no whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attempt failed: {transport}")]
pub struct Failure {
    /// What ended it.
    pub transport: Transport,
    /// Whether the provider can have acted on the request. `Never` only where that is proven: no
    /// connection carried it, the connection closed before its first byte was written, or the
    /// provider said over HTTP/2 that it did not process it.
    pub sent: Sent,
    /// Whether the request was handed to a connection that had been in the pool before.
    pub reused: bool,
    /// How long the request waited for the new connection it got; `None` when it got a pooled
    /// one, or none.
    pub connect: Option<Duration>,
}

impl Failure {
    /// Whether this is the race that every pool loses now and then: the provider closed an idle
    /// connection just as we picked it, before any byte of an answer. Worth one more try on a
    /// fresh connection ([`Upstream::send_fresh`](crate::Upstream::send_fresh)), if the request
    /// may be repeated or was never sent.
    #[must_use]
    pub fn is_stale_connection(&self) -> bool {
        self.reused
            && matches!(
                self.transport,
                Transport::ResetBeforeResponse
                    | Transport::ClosedBeforeResponse
                    | Transport::NotProcessed
            )
    }

    /// A failure before any connection had the request.
    pub(crate) fn unsent(transport: Transport) -> Self {
        Self {
            transport,
            sent: Sent::Never,
            reused: false,
            connect: None,
        }
    }
}

/// The connector's verdict, carried through hyper's error to [`before_response`].
#[derive(Debug, thiserror::Error)]
#[error("not connected: {0}")]
pub(crate) struct NotConnected(Transport);

impl NotConnected {
    /// Reads an error of the dialling step.
    pub(crate) fn dialling(error: &io::Error) -> Self {
        if find::<Unresolved>(error).is_some() {
            return Self(Transport::Dns);
        }
        Self(match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Transport::Refused,
            // The kernel gave up before our own clock did.
            io::ErrorKind::TimedOut => Transport::Timeout(Clock::Connect),
            _ => Transport::Unreachable,
        })
    }

    /// Reads an error of the TLS step: a certificate, an alert, a server that hung up in the
    /// handshake, or a host that cannot be a server name.
    pub(crate) fn securing(error: &(dyn StdError + 'static)) -> Self {
        Self(tls(error).unwrap_or(Transport::Tls))
    }
}

/// Reads hyper's error for a request that got no response head. `answered` says whether bytes had
/// come back on its HTTP/1.1 connection.
pub(crate) fn before_response(error: &legacy::Error, answered: bool) -> (Transport, Sent) {
    if let Some(NotConnected(transport)) = find::<NotConnected>(error) {
        return (*transport, Sent::Never);
    }
    if let Some(error) = find::<h2::Error>(error) {
        return h2_before_response(error);
    }
    let hyper = find::<hyper::Error>(error);
    let sent = if hyper.is_some_and(hyper::Error::is_canceled) {
        // hyper gave the request back: the connection ended before its head was written.
        Sent::Never
    } else {
        Sent::Maybe
    };
    let transport = tls(error).unwrap_or_else(|| match (hyper, socket_kind(error)) {
        (Some(hyper), _) if hyper.is_parse() => Transport::Http,
        // What came in before an unsent request was the answer to the one before it.
        _ if answered && sent == Sent::Maybe => Transport::CutBody,
        (_, Some(kind)) => socket(kind),
        (_, None) => Transport::ClosedBeforeResponse,
    });
    (transport, sent)
}

/// Reads hyper's error for a body that had begun.
pub(crate) fn in_body(error: &hyper::Error) -> Transport {
    if let Some(error) = find::<h2::Error>(error) {
        return if error.is_library() {
            Transport::Http
        } else {
            Transport::CutBody
        };
    }
    match socket_kind(error) {
        // How hyper reports chunk framing that makes no sense.
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) if tls(error).is_none() => {
            Transport::Http
        }
        _ => Transport::CutBody,
    }
}

fn h2_before_response(error: &h2::Error) -> (Transport, Sent) {
    let reason = error.reason();
    if error.is_remote() {
        // RFC 9113 section 8.7: a refused stream, and one above the last identifier of a graceful
        // GOAWAY, were not processed.
        if error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM) {
            return (Transport::NotProcessed, Sent::Never);
        }
        if error.is_go_away() && reason == Some(h2::Reason::NO_ERROR) {
            return (Transport::NotProcessed, Sent::Never);
        }
        return (Transport::ResetBeforeResponse, Sent::Maybe);
    }
    let transport = match error.get_io() {
        Some(io) => tls(io).unwrap_or_else(|| socket(socket_kind(io).unwrap_or(io.kind()))),
        None => Transport::Http,
    };
    (transport, Sent::Maybe)
}

fn socket(kind: io::ErrorKind) -> Transport {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof,
        WriteZero,
    };
    match kind {
        // `TimedOut` is the kernel's: its probes or retransmissions went unanswered.
        ConnectionReset | ConnectionAborted | BrokenPipe | TimedOut => {
            Transport::ResetBeforeResponse
        }
        UnexpectedEof | WriteZero | NotConnected => Transport::ClosedBeforeResponse,
        _ => Transport::Http,
    }
}

/// The verdict of rustls, if it took part.
fn tls(error: &(dyn StdError + 'static)) -> Option<Transport> {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
    use rustls::Error::InvalidCertificate;
    find::<rustls::Error>(error).map(|error| match error {
        InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => Transport::TlsName,
        InvalidCertificate(_) => Transport::TlsTrust,
        _ => Transport::Tls,
    })
}

/// The kind of the innermost I/O error.
fn socket_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    chain(error)
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .last()
        .map(io::Error::kind)
}

fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    chain(error).find_map(|error| error.downcast_ref::<T>())
}

/// The error and its causes. An `io::Error` hides the error it wraps from `source()`, so it is
/// opened by hand.
fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        match error.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_connector() {
        use rustls::CertificateError::{Expired, NotValidForName};
        let name = || rustls::Error::InvalidCertificate(NotValidForName);
        let expired = || rustls::Error::InvalidCertificate(Expired);
        let nested = |error: rustls::Error| {
            io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error))
        };
        use io::ErrorKind as Kind;
        for (error, expected) in [
            (Unresolved.into(), Transport::Dns),
            (
                io::Error::other(io::Error::from(Unresolved)),
                Transport::Dns,
            ),
            (Kind::ConnectionRefused.into(), Transport::Refused),
            (Kind::HostUnreachable.into(), Transport::Unreachable),
            (Kind::TimedOut.into(), Transport::Timeout(Clock::Connect)),
        ] {
            assert_eq!(NotConnected::dialling(&error).0, expected, "{error:?}");
        }
        for (error, expected) in [
            (nested(name()), Transport::TlsName),
            (nested(expired()), Transport::TlsTrust),
            (nested(rustls::Error::HandshakeNotComplete), Transport::Tls),
            (Kind::UnexpectedEof.into(), Transport::Tls),
            (Kind::ConnectionReset.into(), Transport::Tls),
        ] {
            assert_eq!(NotConnected::securing(&error).0, expected, "{error:?}");
        }
    }

    #[test]
    fn only_a_pooled_connection_that_said_nothing_is_stale() {
        for (transport, reused, stale) in [
            (Transport::ResetBeforeResponse, true, true),
            (Transport::ClosedBeforeResponse, true, true),
            (Transport::ResetBeforeResponse, false, false),
            (Transport::NotProcessed, true, true),
            (Transport::CutBody, true, false),
            (Transport::Timeout(Clock::Headers), true, false),
        ] {
            let failure = Failure {
                reused,
                ..Failure::unsent(transport)
            };
            assert_eq!(failure.is_stale_connection(), stale, "{failure:?}");
        }
    }
}
