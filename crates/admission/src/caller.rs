//! A caller, and where its border runs.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use backstop_units::{CallerName, MicroUsd, ProviderId, RouteName, Tokens};

use crate::{Denied, KeyHash};

/// Somebody who may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name in ledger, logs and metrics.
    pub name: CallerName,
    /// The hashes of its keys; several while one replaces another.
    pub keys: Vec<KeyHash>,
    /// What it may reach.
    pub border: Border,
    /// What it may ask for besides.
    pub may: Permissions,
    /// How much of it.
    pub limits: Limits,
    /// From when on its keys are none. Default: never.
    pub expires: Option<SystemTime>,
}

impl Caller {
    /// A caller without keys that may reach everything and ask for nothing special.
    #[must_use]
    pub fn named(name: CallerName) -> Self {
        Self {
            name,
            keys: Vec::new(),
            border: Border::default(),
            may: Permissions::default(),
            limits: Limits::default(),
            expires: None,
        }
    }
}

/// A set of names, or all there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Allowed<T: Ord> {
    /// Every one, also those that come later.
    #[default]
    All,
    /// These.
    Only(BTreeSet<T>),
}

impl<T: Ord> Allowed<T> {
    /// Whether `name` is among them.
    #[must_use]
    pub fn has(&self, name: &T) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

/// What a caller may reach: a hard border, which neither a route nor the caller's own `fallbacks`
/// cross.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Border {
    /// The routes it may name. Default all. A `provider/model` is no route: the border of
    /// providers holds for it.
    pub routes: Allowed<RouteName>,
    /// The providers that may serve it. Default all.
    pub providers: Allowed<ProviderId>,
    /// Whether it may name `provider/model` instead of a route. Default true.
    pub direct: bool,
}

impl Default for Border {
    fn default() -> Self {
        Self {
            routes: Allowed::All,
            providers: Allowed::All,
            direct: true,
        }
    }
}

impl Border {
    /// Whether the route may be named.
    ///
    /// # Errors
    /// When it may not.
    pub fn route(&self, route: &RouteName) -> Result<(), Denied> {
        if self.routes.has(route) {
            Ok(())
        } else {
            Err(Denied::Route)
        }
    }

    /// Whether a model may be named as `provider/model`.
    ///
    /// # Errors
    /// When it may not, or not at this provider.
    pub fn direct(&self, provider: &ProviderId) -> Result<(), Denied> {
        if !self.direct {
            return Err(Denied::Direct);
        }
        if self.providers.has(provider) {
            Ok(())
        } else {
            Err(Denied::Provider)
        }
    }
}

/// What a caller may ask for besides an answer. Nothing by default; what is not permitted is refused,
/// never passed over in silence. What a route's own policy does needs no permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions {
    /// To name `fallbacks` of its own.
    pub fallbacks: bool,
    /// To name other models than the one it asks for among them.
    pub substitutions: bool,
    /// To pin a key by name.
    pub pin_keys: bool,
}

/// How much a caller may use. Absent is without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Requests in any minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens in any minute, prompt and answer together.
    pub tokens_per_minute: Option<Tokens>,
    /// Requests at one time.
    pub in_flight: Option<u32>,
    /// Money in a calendar day (UTC).
    pub money_per_day: Option<MicroUsd>,
    /// Money in a calendar month (UTC).
    pub money_per_month: Option<MicroUsd>,
}

/// A moment as an operator writes it, such as `2027-01-31T00:00:00Z` (RFC 3339); `None` for what is
/// none, or before 1970.
#[must_use]
pub fn expiry(text: &str) -> Option<SystemTime> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    let seconds = u64::try_from(time.as_second()).ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_is_hard() {
        let only = |name: &str| Allowed::Only(BTreeSet::from([RouteName::new(name)]));
        let border = Border {
            routes: only("chat"),
            providers: Allowed::Only(BTreeSet::from([ProviderId::new("openai")])),
            direct: true,
        };
        assert_eq!(border.route(&RouteName::new("chat")), Ok(()));
        assert_eq!(border.route(&RouteName::new("Chat")), Err(Denied::Route));
        assert_eq!(border.direct(&ProviderId::new("openai")), Ok(()));
        let other = ProviderId::new("anthropic");
        assert_eq!(border.direct(&other), Err(Denied::Provider));
        let routes_only = Border {
            direct: false,
            ..Border::default()
        };
        assert_eq!(routes_only.direct(&other), Err(Denied::Direct));
        assert_eq!(routes_only.route(&RouteName::new("any")), Ok(()));
    }

    #[test]
    fn a_time_has_a_zone() {
        let at = expiry("2027-01-31T00:00:00Z").expect("a time");
        let since = at.duration_since(SystemTime::UNIX_EPOCH).expect("after");
        assert_eq!(since.as_secs(), 1_801_353_600);
        assert_eq!(expiry("2027-01-31T01:00:00+01:00"), Some(at));
        for text in ["", "2027-01-31", "tomorrow", "1969-01-01T00:00:00Z"] {
            assert_eq!(expiry(text), None, "{text}");
        }
    }
}
