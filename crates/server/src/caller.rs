//! Who asks: the key that a request presents, what its owner may do, and its place among the limits.

use std::sync::Arc;
use std::time::SystemTime;

use backstop_admission::{Ask, At, Caller, Denied, Price, estimate};
use backstop_config::{Resolved, Snapshot};
use backstop_dialects::{Envelope, Operation};
use backstop_policy::{AttemptRow, Leg, Plan};
use backstop_state::AdmitGuard;
use backstop_units::{ByteCount, MicroUsd, Moment, ProviderId, Secret, Tokens};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::gateway::Gateway;
use crate::terms::Asked;

/// The headers that a key may stand in, the first that is there counts. Each is where some official
/// client puts its key.
const PLACES: [&str; 5] = [
    "x-backstop-auth",
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
];

/// Whose request it is. Nobody's where callers need no key.
///
/// # Errors
/// When callers need a key and none, or an unknown one, is presented.
pub(crate) fn identify(
    snapshot: &Snapshot,
    headers: &HeaderMap,
    wall: SystemTime,
) -> Result<Option<Arc<Caller>>, Denied> {
    if snapshot.callers.is_empty() {
        return Ok(None);
    }
    let key = presented(headers).ok_or(Denied::NoKey)?;
    snapshot.callers.who(key, wall).cloned().map(Some)
}

/// The key, without the scheme before it. A header that is there and holds none ends the search: a
/// broken key must not make way for another one.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let place = PLACES.iter().find(|place| headers.contains_key(**place))?;
    let mut values = headers.get_all(*place).iter();
    let (value, None) = (values.next()?.to_str().ok()?.trim(), values.next()) else {
        return None;
    };
    let key = match value.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim_start(),
        Some(_) => return None,
        None => value,
    };
    (!key.is_empty()).then_some(key)
}

/// The caller's own token for a provider, in the header it came in.
#[derive(Debug, Clone)]
pub(crate) struct OwnToken {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// The token alone, for whoever takes it out of a provider's words.
    pub(crate) secret: Secret,
}

/// The caller's own token for a provider. Where callers need a key, that one must have
/// come in `x-backstop-auth`: what stands elsewhere is then the gateway's own and goes nowhere.
pub(crate) fn own_token(snapshot: &Snapshot, headers: &HeaderMap) -> Option<OwnToken> {
    let (auth, elsewhere) = PLACES.split_first()?;
    if !snapshot.callers.is_empty() && !headers.contains_key(*auth) {
        return None;
    }
    let place = elsewhere
        .iter()
        .find(|place| headers.contains_key(**place))?;
    let mut values = headers.get_all(*place).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            let text = value.to_str().ok()?.trim();
            let token = text.split_once(' ').map_or(text, |(_, token)| token.trim());
            (!token.is_empty()).then(|| OwnToken {
                name: HeaderName::from_static(place),
                value: value.clone(),
                secret: Secret::new(token),
            })
        }
        _ => None,
    }
}

/// Whether the caller may name this model.
///
/// # Errors
/// It may not.
pub(crate) fn may_name(caller: &Caller, resolved: &Resolved) -> Result<(), Denied> {
    match resolved {
        Resolved::Configured(route) => caller.border.route(&route.name),
        Resolved::Minted(route) => route
            .groups
            .iter()
            .flat_map(|group| &group.channels)
            .try_for_each(|channel| caller.border.direct(&channel.provider)),
    }
}

/// Whether the caller may name this model, bring these fallbacks, pin this key.
///
/// # Errors
/// Names the first thing that it may not.
pub(crate) fn check_ask(
    caller: &Caller,
    resolved: &Resolved,
    envelope: &Envelope,
    asked: &Asked,
) -> Result<(), Denied> {
    may_name(caller, resolved)?;
    if !envelope.fallbacks.is_empty() && !caller.may.fallbacks {
        return Err(Denied::Fallbacks);
    }
    for fallback in &envelope.fallbacks {
        may_reach(caller, &fallback.provider)?;
    }
    if asked.pin.is_some() && !caller.may.pin_keys {
        return Err(Denied::PinnedKey);
    }
    Ok(())
}

/// Whether the plan keeps within what the caller may ask for, and leaves anything to ask.
///
/// # Errors
/// When a fallback of the caller's own is another model and may not be, or every channel lies beyond
/// its border.
fn check_plan(caller: &Caller, plan: &Plan) -> Result<(), Denied> {
    let other_model = plan
        .candidates
        .iter()
        .any(|candidate| candidate.leg == Leg::CallerFallback { same_model: false });
    if other_model && !caller.may.substitutions {
        return Err(Denied::Fallbacks);
    }
    let barred = plan
        .excluded
        .iter()
        .any(|excluded| excluded.reason == backstop_policy::Exclusion::NotAllowed);
    if plan.candidates.is_empty() && barred {
        return Err(Denied::Provider);
    }
    Ok(())
}

/// Whether the provider may serve the caller.
///
/// # Errors
/// When it may not.
pub(crate) fn may_reach(caller: &Caller, provider: &ProviderId) -> Result<(), Denied> {
    if caller.border.providers.has(provider) {
        Ok(())
    } else {
        Err(Denied::Provider)
    }
}

/// A caller's request within its limits, until it is settled.
#[derive(Debug)]
pub(crate) struct Admitted {
    guard: AdmitGuard,
    snapshot: Arc<Snapshot>,
}

impl Admitted {
    /// Takes the request in: its tokens and its price at the most are reserved until it ends.
    ///
    /// # Errors
    /// When the plan leaves the caller nothing to ask, or one of its limits has no room for it.
    pub(crate) fn take(
        gateway: &Gateway,
        snapshot: &Arc<Snapshot>,
        caller: &Caller,
        plan: &Plan,
        (operation, envelope): (Operation, &Envelope),
        body: ByteCount,
    ) -> Result<Self, Denied> {
        check_plan(caller, plan)?;
        let (prompt, answer) = match (operation, envelope.needs.answer) {
            // Nothing is generated, and nothing is read but to be measured.
            (Operation::CountTokens, _) => (Tokens(0), Tokens(0)),
            (Operation::Embed, _) => (estimate(body), Tokens(0)),
            (Operation::Generate, Tokens(0)) => (estimate(body), UNSAID),
            (Operation::Generate, said) => (estimate(body), said),
        };
        let tokens = match operation {
            Operation::Generate => envelope.needs.prompt.saturating_add(envelope.needs.answer),
            Operation::Embed | Operation::CountTokens => prompt,
        };
        // Whoever serves it, it costs no more than at the dearest of those who may.
        let money = plan
            .candidates
            .iter()
            .filter_map(|candidate| snapshot.prices.get(&candidate.channel.label()))
            .map(|price| price.ceiling(prompt, answer))
            .max();
        let ask = Ask {
            tokens,
            money: money.unwrap_or_default(),
        };
        let at = at(gateway, gateway.clock.now());
        let guard = gateway.state.admit(&caller.name, &caller.limits, at, ask)?;
        Ok(Self {
            guard,
            snapshot: Arc::clone(snapshot),
        })
    }

    /// Takes in a request that makes nothing new: it counts as a request, and costs no token.
    ///
    /// # Errors
    /// When one of the caller's limits has no room for it.
    pub(crate) fn without_tokens(
        gateway: &Gateway,
        snapshot: &Arc<Snapshot>,
        caller: &Caller,
    ) -> Result<Self, Denied> {
        let at = at(gateway, gateway.clock.now());
        let ask = Ask::default();
        let guard = gateway.state.admit(&caller.name, &caller.limits, at, ask)?;
        Ok(Self {
            guard,
            snapshot: Arc::clone(snapshot),
        })
    }

    /// Puts what the attempts really used in the place of what was reserved.
    pub(crate) fn settle(self, gateway: &Gateway, now: Moment, rows: &[AttemptRow]) {
        let used = used(rows, self.guard.ask(), |label| {
            self.snapshot.prices.get(label).copied()
        });
        self.guard.settle(at(gateway, now), used);
    }
}

/// Tokens a model may answer with when the caller set no limit: what the larger ones of today allow
/// in one answer (2026-11, our choice).
const UNSAID: Tokens = Tokens(16_384);

fn at(gateway: &Gateway, now: Moment) -> At {
    let wall = gateway.clock.wall();
    let since = wall.duration_since(SystemTime::UNIX_EPOCH);
    At::new(now, since.map_or(0, |since| since.as_secs()))
}

/// What the attempts used. An answer whose tokens nobody told (it broke, or its caller left) counts
/// as all that was reserved: leaving early must not be a way round a budget.
fn used(rows: &[AttemptRow], reserved: Ask, price: impl Fn(&str) -> Option<Price>) -> Ask {
    let mut used = Ask::default();
    let mut untold = false;
    for row in rows.iter().filter(|row| row.attempt.is_some()) {
        match &row.usage {
            Some(usage) => {
                used.tokens = used
                    .tokens
                    .saturating_add(usage.total().unwrap_or_default());
                let label = format!("{}/{}", row.provider, row.model);
                let cost = price(&label).and_then(|price| price.cost(usage));
                let cost = cost.unwrap_or_default();
                used.money = MicroUsd(used.money.0.saturating_add(cost.0));
            }
            // A refusal costs nothing; an answer that had begun does.
            None => untold |= row.status.is_some_and(|status| status < 300),
        }
    }
    if untold {
        used.tokens = used.tokens.max(reserved.tokens);
        used.money = used.money.max(reserved.money);
    }
    used
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_key_stands_where_clients_put_it() {
        for (headers, key) in [
            (&[("authorization", "Bearer k")][..], Some("k")),
            (&[("authorization", "bearer  k")], Some("k")),
            (&[("authorization", "Basic a2V5")], None),
            (&[("authorization", "k")], Some("k")),
            (&[("x-api-key", "k")], Some("k")),
            (&[("x-goog-api-key", "k")], Some("k")),
            (&[("api-key", " k ")], Some("k")),
            (&[("x-api-key", "")], None),
            (&[("x-api-key", ""), ("api-key", "k")], None),
            (
                &[
                    ("authorization", "Bearer provider"),
                    ("x-backstop-auth", "k"),
                ],
                Some("k"),
            ),
            (&[("x-api-key", "k"), ("x-api-key", "l")], None),
            (&[("cookie", "key=k")], None),
            (&[], None),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let value = HeaderValue::from_static(value);
                map.append(HeaderName::from_static(name), value);
            }
            assert_eq!(presented(&map), key, "{headers:?}");
        }
    }
}
