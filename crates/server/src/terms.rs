//! What a caller's headers say about how long, with which key and how its request may be served.

use std::time::Duration;

use backstop_policy::{CommitChoice, Route, Terms};
use backstop_units::Moment;
use http::HeaderMap;

use crate::error::Refused;

/// Everything a caller asks for in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// `x-backstop-deadline-ms`.
    pub(crate) deadline: Option<Duration>,
    /// The SDKs' own read timeout, in seconds.
    pub(crate) patience: Option<Duration>,
    /// `x-backstop-key`: the name of a key.
    pub(crate) pin: Option<String>,
    /// `x-backstop-commit`.
    pub(crate) commit: Option<CommitChoice>,
    /// `x-backstop-trail: 1`.
    pub(crate) trail: bool,
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
            Some("first_output") => Some(CommitChoice::FirstOutput),
            Some("complete") => Some(CommitChoice::Complete),
            Some(given) => {
                let window = given.strip_prefix("window=").and_then(millis);
                Some(CommitChoice::Window(window.ok_or(Refused::BadHeader {
                    name: "x-backstop-commit",
                    accepted: "first_output, complete or window=<milliseconds>",
                })?))
            }
        };
        let patience = ["x-stainless-read-timeout", "x-stainless-timeout"]
            .into_iter()
            .find_map(|name| text(name)?.parse::<f64>().ok())
            .filter(|seconds| *seconds > 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Self {
            deadline,
            patience,
            pin: text("x-backstop-key").map(str::to_owned),
            commit,
            trail: text("x-backstop-trail").is_some_and(|asked| asked == "1" || asked == "true"),
            caller_retry: text("x-stainless-retry-count").and_then(|count| count.parse().ok()),
        })
    }

    /// The terms of the journey: the route's, tightened by what the caller asked for.
    pub(crate) fn terms(&self, route: &Route, streaming: bool, accepted: Moment) -> Terms {
        let longest = route.limits.deadline;
        let deadline = self.deadline.map_or(longest, |asked| asked.min(longest));
        Terms {
            limits: route.limits,
            deadline: accepted + deadline,
            patience: self.patience.map(|patience| accepted + patience),
            streaming,
            replay_safe: true,
            pin: self.pin.clone(),
        }
    }
}

fn millis(text: &str) -> Option<Duration> {
    text.parse::<u64>()
        .ok()
        .filter(|millis| *millis > 0)
        .map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

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
            Some(CommitChoice::Window(Duration::from_millis(200)))
        );
        assert_eq!(asked.patience, Some(Duration::from_millis(2500)));
        assert_eq!((asked.caller_retry, asked.trail), (Some(1), true));
        for bad in [
            ("x-backstop-deadline-ms", "soon"),
            ("x-backstop-deadline-ms", "0"),
            ("x-backstop-commit", "window"),
            ("x-backstop-commit", "never"),
        ] {
            assert!(read(&[bad]).is_err(), "{bad:?}");
        }
    }
}
