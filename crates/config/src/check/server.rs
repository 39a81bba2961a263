//! `server`, `limits` and `defaults`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use backstop_policy::{CommitChoice, Lossy, OnRefusal, RouteLimits};
use backstop_units::{ByteCount, Secret, Tokens};

use super::Check;
use crate::fault::Problem;
use crate::path::FieldPath;
use crate::raw::{
    RawBounds, RawCommit, RawLimits, RawLossy, RawOnRefusal, RawServer, RawSession, RawTls,
    RawWindow, Size, Whole,
};
use crate::snapshot::{Defaults, Limits, ServerParams, SessionParams, TlsFiles};

const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(60 * 60);
/// No stream is held beyond 8 MiB; a window of more tokens than could stand in them is a mistake.
const MOST_TOKENS: u64 = 1_000_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Check<'_> {
    /// `open` when callers need a key, so that others may reach the gateway too.
    pub(super) fn server(&mut self, at: &FieldPath, raw: &RawServer, open: bool) -> ServerParams {
        let default = ServerParams::default();
        let listen = raw.listen.as_deref().map(|typed| listen(typed, open));
        let listen = listen.and_then(|address| self.take(&at.field("listen"), address));
        let bounds = (MILLI, DAY);
        ServerParams {
            listen: listen.unwrap_or(default.listen),
            drain: self.duration(
                &at.field("drain_ms"),
                raw.drain_ms,
                default.drain,
                (Duration::ZERO, DAY),
            ),
            head: self.duration(&at.field("head_ms"), raw.head_ms, default.head, bounds),
            body_idle: self.duration(
                &at.field("body_idle_ms"),
                raw.body_idle_ms,
                default.body_idle,
                bounds,
            ),
            stall: self.duration(&at.field("stall_ms"), raw.stall_ms, default.stall, bounds),
            keepalive: raw.keepalive_ms.map(|typed| {
                let least = Duration::from_millis(100);
                self.duration(&at.field("keepalive_ms"), Some(typed), least, (least, HOUR))
            }),
        }
    }

    /// The certificate callers see. Whether the two fit each other is seen by who shows them.
    pub(super) fn tls(&mut self, at: &FieldPath, raw: &RawTls) -> Option<TlsFiles> {
        const ACCEPTED: &str = "file.PATH or env.NAME of a PEM text";
        let mut pem = |name, typed: Option<&str>| {
            let text = match typed {
                None => Err(Problem::Missing { accepted: ACCEPTED }),
                Some(typed) => self.resolver.reference(typed, ACCEPTED),
            };
            let text = text.and_then(|text| {
                if text.contains("-----BEGIN ") {
                    Ok(text)
                } else {
                    Err(Problem::WrongValue {
                        found: None,
                        accepted: ACCEPTED.to_owned(),
                    })
                }
            });
            self.take(&at.field(name), text)
        };
        let certificate = pem("certificate", raw.certificate.as_deref());
        let private_key = pem("private_key", raw.private_key.as_deref());
        Some(TlsFiles {
            certificate: certificate?,
            private_key: Secret::new(private_key?),
        })
    }

    pub(super) fn limits(&mut self, at: &FieldPath, raw: &RawLimits) -> Limits {
        const MOST: u64 = 1 << 40;
        let default = Limits::default();
        let mut size = |name, typed: Option<Size>, default: ByteCount| {
            let typed = typed.map(|Size(bytes)| bytes);
            ByteCount(self.count(&at.field(name), typed, default.0, (1024, MOST)))
        };
        let body_bytes = size("body_bytes", raw.body_bytes, default.body_bytes);
        let buffered_bytes = size("buffered_bytes", raw.buffered_bytes, default.buffered_bytes);
        let answer_bytes = size("answer_bytes", raw.answer_bytes, default.answer_bytes);
        if body_bytes > buffered_bytes {
            let problem = Problem::Contradiction {
                other: "limits.buffered_bytes",
                accepted: "a body no larger than all bodies together",
            };
            self.fault(&at.field("body_bytes"), problem);
        }
        let mut whole = |name, typed: Option<Whole>, default: usize, least| {
            let typed = typed.map(|Whole(number)| number);
            let number = self.count(&at.field(name), typed, default as u64, (least, 10_000_000));
            usize::try_from(number).unwrap_or(usize::MAX)
        };
        Limits {
            body_bytes,
            buffered_bytes,
            answer_bytes,
            connections: whole("connections", raw.connections, default.connections, 1),
            minted_channels: whole(
                "minted_channels",
                raw.minted_channels,
                default.minted_channels,
                1,
            ),
            kept_journeys: whole("kept_journeys", raw.kept_journeys, default.kept_journeys, 0),
            kept_responses: whole(
                "kept_responses",
                raw.kept_responses,
                default.kept_responses,
                0,
            ),
        }
    }

    pub(super) fn session(&mut self, at: &FieldPath, raw: &RawSession) -> SessionParams {
        let default = SessionParams::default();
        let typed = raw.capacity.map(|Whole(number)| number);
        let bounds = (0, 10_000_000);
        let capacity = self.count(
            &at.field("capacity"),
            typed,
            default.capacity as u64,
            bounds,
        );
        SessionParams {
            on_refusal: match raw.on_refusal {
                Some(RawOnRefusal::Stay) => OnRefusal::Stay,
                Some(RawOnRefusal::Move) => OnRefusal::Move,
                None => default.on_refusal,
            },
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
        }
    }

    pub(super) fn defaults(&mut self, at: &FieldPath, raw: &RawBounds) -> Defaults {
        self.bounds(at, raw, Defaults::default())
    }

    /// The bounds of a request: what is typed over what holds without it.
    pub(super) fn bounds(&mut self, at: &FieldPath, raw: &RawBounds, base: Defaults) -> Defaults {
        /// One request that sends more often than this is a mistake.
        const MOST_SENDS: u64 = 1000;
        let limits = base.limits;
        let deadline = self.duration(
            &at.field("deadline_ms"),
            raw.deadline_ms,
            limits.deadline,
            (MILLI, DAY),
        );
        let min_attempt = self.duration(
            &at.field("min_attempt_ms"),
            raw.min_attempt_ms,
            limits.min_attempt,
            (Duration::ZERO, DAY),
        );
        if raw.min_attempt_ms.is_some() && min_attempt >= deadline {
            let problem = Problem::Contradiction {
                other: "deadline_ms",
                accepted: "less than the deadline",
            };
            self.fault(&at.field("min_attempt_ms"), problem);
        }
        let max_attempts = self.sends(
            &at.field("max_attempts"),
            raw.max_attempts,
            limits.max_attempts,
            (1, MOST_SENDS),
        );
        let mut within = |name, typed: Option<u32>, base: Option<u32>, least| {
            if typed.is_none() {
                return base;
            }
            let most = u64::from(max_attempts);
            Some(self.sends(&at.field(name), typed, max_attempts, (least, most)))
        };
        let limits = RouteLimits {
            deadline,
            max_attempts,
            max_attempts_primary: within(
                "max_attempts_primary",
                raw.max_attempts_primary,
                limits.max_attempts_primary,
                1,
            ),
            max_attempts_fallback: within(
                "max_attempts_fallback",
                raw.max_attempts_fallback,
                limits.max_attempts_fallback,
                0,
            ),
            min_attempt,
        };
        Defaults {
            limits,
            commit: self
                .commit(&at.field("commit"), raw.commit)
                .unwrap_or(base.commit),
            lossy: match raw.lossy {
                Some(RawLossy::Refuse) => Lossy::Refuse,
                Some(RawLossy::Drop) => Lossy::Drop,
                None => base.lossy,
            },
        }
    }

    fn sends(&mut self, at: &FieldPath, typed: Option<u32>, base: u32, bounds: (u64, u64)) -> u32 {
        let number = self.count(at, typed.map(u64::from), u64::from(base), bounds);
        u32::try_from(number).expect("either a u32 as typed or the u32 it defaults to")
    }

    fn commit(&mut self, at: &FieldPath, raw: Option<RawCommit>) -> Option<CommitChoice> {
        match raw? {
            RawCommit::FirstOutput => Some(CommitChoice::FirstOutput),
            RawCommit::Complete => Some(CommitChoice::Complete),
            RawCommit::Window(RawWindow {
                window_ms: None,
                window_tokens: None,
            }) => {
                let accepted = "{ window_ms = … } or { window_tokens = … }";
                self.fault(at, Problem::Missing { accepted });
                None
            }
            RawCommit::Window(window) => {
                let wait = window.window_ms.map(|typed| {
                    self.duration(&at.field("window_ms"), Some(typed), MILLI, (MILLI, HOUR))
                });
                let tokens = window.window_tokens.map(|Whole(typed)| {
                    let at = at.field("window_tokens");
                    Tokens(self.count(&at, Some(typed), 1, (1, MOST_TOKENS)))
                });
                Some(CommitChoice::Window { wait, tokens })
            }
        }
    }
}

/// An address to listen on; one that others can reach only where `open`.
fn listen(typed: &str, open: bool) -> Result<SocketAddr, Problem> {
    let typed = typed.trim();
    let numeric = if let Some(port) = typed.strip_prefix("localhost:") {
        format!("127.0.0.1:{port}")
    } else if let Some(port) = typed.strip_prefix("*:").or_else(|| typed.strip_prefix(':')) {
        // Every interface, as elsewhere.
        format!("0.0.0.0:{port}")
    } else {
        typed.to_owned()
    };
    let address: SocketAddr = numeric.parse().map_err(|_| Problem::BadListen)?;
    let ip: IpAddr = address.ip().to_canonical();
    if open || ip.is_loopback() {
        Ok(address)
    } else {
        Err(Problem::OpenToOthers)
    }
}
