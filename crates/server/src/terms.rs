//! What a caller's headers say about how long, with which key and how its request may be served.

use std::time::Duration;

use backstop_config::Snapshot;
use backstop_policy::{CommitChoice, Route, Session, Terms};
use backstop_units::{CallerName, Moment, Tokens};
use http::{HeaderMap, HeaderValue};

use crate::error::Refused;
use crate::gateway::Gateway;

/// Everything a caller asks for in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// `x-backstop-deadline-ms`.
    pub(crate) deadline: Option<Duration>,
    /// The SDKs' own read timeout, in seconds.
    pub(crate) patience: Option<Duration>,
    /// `x-backstop-key`: the name of a key.
    pub(crate) pin: Option<String>,
    /// `x-backstop-session`: a name of the caller's making. Not read beside a pin.
    pub(crate) session: Option<String>,
    /// `x-backstop-commit`.
    pub(crate) commit: Option<CommitChoice>,
    /// `x-backstop-trail: 1`.
    pub(crate) trail: bool,
    /// `idempotency-key`: the caller's promise that requests with it are one.
    pub(crate) idempotent: bool,
    /// `x-stainless-retry-count`: which repetition the caller's SDK makes.
    pub(crate) caller_retry: Option<u32>,
}

impl Asked {
    /// Reads the headers. Our own must make sense; the SDKs' are taken where they do.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Refused> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let deadline = match text("x-backstop-deadline-ms") {
            None => None,
            Some(given) => Some(millis(given).ok_or(Refused::BadHeader {
                name: "x-backstop-deadline-ms",
                accepted: "a whole number of milliseconds, 1 or more",
            })?),
        };
        let commit = match text("x-backstop-commit") {
            None => None,
            Some(given) => Some(commit(given).ok_or(Refused::BadHeader {
                name: "x-backstop-commit",
                accepted: "first_output, complete, window=<milliseconds>, window_tokens=<tokens>, \
                           or the last two with a comma between them",
            })?),
        };
        let pin = text("x-backstop-key").map(str::to_owned);
        let session = match headers.get("x-backstop-session") {
            None => None,
            Some(given) => Some(session(given).ok_or(Refused::BadHeader {
                name: "x-backstop-session",
                accepted: "1 to 128 visible ASCII characters",
            })?),
        };
        let patience = ["x-stainless-read-timeout", "x-stainless-timeout"]
            .into_iter()
            .find_map(|name| text(name)?.parse::<f64>().ok())
            .filter(|seconds| *seconds > 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Self {
            deadline,
            patience,
            session: session.filter(|_| pin.is_none()),
            pin,
            commit,
            trail: text("x-backstop-trail").is_some_and(|asked| asked == "1" || asked == "true"),
            idempotent: text("idempotency-key").is_some_and(|key| !key.is_empty()),
            caller_retry: text("x-stainless-retry-count").and_then(|count| count.parse().ok()),
        })
    }

    /// A session's name is its caller's own: what one caller is bound to is nothing to another.
    pub(crate) fn belongs_to(&mut self, caller: &CallerName) {
        if let Some(session) = &mut self.session {
            *session = format!("{caller}/{session}");
        }
    }

    /// The terms of the journey: the route's, tightened by what the caller asked for.
    pub(crate) fn terms(
        &self,
        route: &Route,
        streaming: bool,
        replay_safe: bool,
        accepted: Moment,
    ) -> Terms {
        let longest = route.limits.deadline;
        let deadline = self.deadline.map_or(longest, |asked| asked.min(longest));
        Terms {
            limits: route.limits,
            deadline: accepted + deadline,
            patience: self.patience.map(|patience| accepted + patience),
            streaming,
            replay_safe,
            pin: self.pin.clone(),
            session: None,
        }
    }

    /// What is remembered of the session it belongs to.
    pub(crate) fn session(&self, gateway: &Gateway, snapshot: &Snapshot) -> Option<Session> {
        let bound = gateway.state.session(self.session.as_deref()?);
        let on_refusal = snapshot.session.on_refusal;
        Some(Session { on_refusal, bound })
    }
}

/// `first_output`, `complete`, or how far a window reaches.
fn commit(text: &str) -> Option<CommitChoice> {
    match text {
        "first_output" => return Some(CommitChoice::FirstOutput),
        "complete" => return Some(CommitChoice::Complete),
        _ => {}
    }
    let (mut wait, mut tokens) = (None, None);
    for part in text.split(',').map(str::trim) {
        let twice = match part.split_once('=')? {
            ("window", given) => wait.replace(millis(given)?).is_some(),
            ("window_tokens", given) => tokens.replace(Tokens(whole(given)?)).is_some(),
            _ => return None,
        };
        if twice {
            return None;
        }
    }
    Some(CommitChoice::Window { wait, tokens })
}

/// A session's name: short, since names are kept, and visible, since people compare them.
fn session(given: &HeaderValue) -> Option<String> {
    let name = given.to_str().ok()?.trim();
    let good = (1..=128).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    good.then(|| name.to_owned())
}

/// Milliseconds, with or without their unit.
fn millis(text: &str) -> Option<Duration> {
    whole(text.strip_suffix("ms").unwrap_or(text)).map(Duration::from_millis)
}

fn whole(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn read(headers: &[(&'static str, &str)]) -> Result<Asked, Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).expect("a header value");
            map.insert(HeaderName::from_static(name), value);
        }
        Asked::read(&map)
    }

    #[test]
    fn our_own_headers_must_make_sense_and_the_sdks_may_not() {
        let asked = read(&[
            ("x-backstop-deadline-ms", "1500"),
            ("x-backstop-commit", "window=200"),
            ("x-stainless-read-timeout", "NOT_GIVEN"),
            ("x-stainless-timeout", "2.5"),
            ("x-stainless-retry-count", "1"),
            ("x-backstop-trail", "1"),
        ])
        .expect("sound headers");
        assert_eq!(asked.deadline, Some(Duration::from_millis(1500)));
        assert_eq!(
            asked.commit,
            Some(CommitChoice::Window {
                wait: Some(Duration::from_millis(200)),
                tokens: None,
            })
        );
        assert_eq!(asked.patience, Some(Duration::from_millis(2500)));
        assert_eq!((asked.caller_retry, asked.trail), (Some(1), true));
        for bad in [
            ("x-backstop-deadline-ms", "soon"),
            ("x-backstop-deadline-ms", "0"),
            ("x-backstop-commit", "window"),
            ("x-backstop-commit", "never"),
            ("x-backstop-commit", "window=0"),
            ("x-backstop-commit", "window_tokens=0"),
            ("x-backstop-commit", "window_tokens=9ms"),
            ("x-backstop-commit", "window=1,window=2"),
            ("x-backstop-commit", "window=1,"),
            ("x-backstop-session", ""),
            ("x-backstop-session", "two words"),
            ("x-backstop-session", &"s".repeat(129)),
        ] {
            assert!(read(&[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_window_reaches_so_long_or_so_many_tokens() {
        for (given, wait, tokens) in [
            ("window=200", Some(200), None),
            ("window=200ms", Some(200), None),
            ("window_tokens=40", None, Some(40)),
            ("window=200, window_tokens=40", Some(200), Some(40)),
            ("window_tokens=40,window=200", Some(200), Some(40)),
        ] {
            let want = CommitChoice::Window {
                wait: wait.map(Duration::from_millis),
                tokens: tokens.map(Tokens),
            };
            let asked = read(&[("x-backstop-commit", given)]).expect("sound");
            assert_eq!(asked.commit, Some(want), "{given}");
        }
    }

    #[test]
    fn a_session_has_a_name_and_a_pin_outranks_it() {
        let named = ("x-backstop-session", "chat:42/a");
        let asked = read(&[named]).expect("sound");
        assert_eq!(asked.session.as_deref(), Some("chat:42/a"));
        let asked = read(&[named, ("x-backstop-key", "k")]).expect("sound");
        assert_eq!((asked.session, asked.pin.as_deref()), (None, Some("k")));
    }
}
