//! Requests about an answer that a provider keeps. They go to the channel and the key that made it,
//! and nowhere else: no other account has it.

use std::sync::Arc;

use backstop_admission::Caller;
use backstop_config::Snapshot;
use backstop_dialects::{Dialect, Envelope, Operation};
use backstop_ledger::JourneyRecord;
use backstop_policy::{Channel, Journey, Plan, Terms};
use backstop_providers::Kept;
use backstop_state::Keeper;
use backstop_units::{Moment, RequestId};
use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body::Body;

use crate::caller::{self, Admitted};
use crate::drive::{self, Drive};
use crate::error::Refused;
use crate::gateway::Gateway;
use crate::intake::{BodyLimits, read_body};
use crate::journal::Journal;
use crate::outlet::Outlet;
use crate::surface::decoded;
use crate::terms::Asked;

/// The dialect whose answers can be asked about.
const DIALECT: Dialect = Dialect::OpenAiResponses;

/// The longest id that is looked for. OpenAI's have about 55 characters.
const LONGEST_ID: usize = 256;

/// What the queries of these requests may say (OpenAI's API reference, Responses, read 2026-11). A
/// key is not among it: callers' own never travel.
const QUERY: [&str; 8] = [
    "include",
    "include[]",
    "include_obfuscation",
    "stream",
    "starting_after",
    "after",
    "limit",
    "order",
];

/// What is asked about a kept answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The answer itself: to be read, or to be forgotten.
    Answer,
    /// That work on it ends.
    Cancel,
    /// The input it was made from.
    Input,
}

/// Such a request, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asking {
    /// The answer's id.
    pub(crate) id: String,
    /// What the provider is sent.
    pub(crate) call: Kept,
    stream: bool,
}

impl About {
    /// What `path` asks for, which stands below the dialect's own, and about which id.
    pub(crate) fn read(path: &str) -> Option<(Self, &str)> {
        // The second is where Azure's client asks.
        let rest = path
            .strip_prefix("/v1/responses/")
            .or_else(|| path.strip_prefix("/openai/responses/"))?;
        let (id, about) = match rest.split_once('/') {
            None => (rest, Self::Answer),
            Some((id, "cancel")) => (id, Self::Cancel),
            Some((id, "input_items")) => (id, Self::Input),
            Some(_) => return None,
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_id = (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(fits);
        is_id.then_some((about, id))
    }

    /// The methods it answers.
    pub(crate) const fn allowed(self) -> &'static str {
        match self {
            Self::Answer => "GET, DELETE",
            Self::Cancel => "POST",
            Self::Input => "GET",
        }
    }

    const fn below(self) -> &'static str {
        match self {
            Self::Answer => "",
            Self::Cancel => "/cancel",
            Self::Input => "/input_items",
        }
    }
}

impl Asking {
    fn read(method: &Method, uri: &Uri, about: About, id: &str) -> Result<Self, Refused> {
        let mut path = format!("/{id}{}", about.below());
        let mut stream = false;
        let mut joint = '?';
        for part in uri.query().unwrap_or_default().split('&') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decoded(name).unwrap_or_default();
            // Azure's client says which version of Azure it knows.
            if part.is_empty() || name == "api-version" {
                continue;
            }
            if !QUERY.contains(&name.as_str()) {
                return Err(Refused::UnknownParameter {
                    name: name.chars().take(80).collect(),
                });
            }
            stream |= name == "stream" && value.eq_ignore_ascii_case("true");
            path.push(joint);
            path.push_str(part);
            joint = '&';
        }
        Ok(Self {
            id: id.to_owned(),
            call: Kept {
                method: method.clone(),
                path,
            },
            stream: stream && about == About::Answer && *method == Method::GET,
        })
    }
}

/// The channel that made the answer, as the configuration has it now.
fn channel_of(snapshot: &Snapshot, keeper: &Keeper) -> Option<Arc<Channel>> {
    let channel = snapshot.listed(&keeper.channel).cloned().or_else(|| {
        let label = format!("{}/{}", keeper.provider, keeper.model);
        snapshot.channel(&label)
    })?;
    let provider = snapshot.providers.get(&channel.provider)?;
    let speaks = provider.dialect_for(DIALECT, &channel.model) == DIALECT;
    let has = keeper.key.as_ref().is_none_or(|key| channel.has_key(key));
    (speaks && has).then_some(channel)
}

/// Who keeps what a request goes on from, where that is known. Whose it is, is nobody else's business.
pub(crate) fn keeper_of(
    gateway: &Gateway,
    envelope: &Envelope,
    caller: Option<&Caller>,
) -> Result<Option<Keeper>, Refused> {
    let Some(id) = &envelope.goes_on_from else {
        return Ok(None);
    };
    match gateway.state.keeper(id) {
        Some(keeper) if !is_of(&keeper, caller) => Err(Refused::UnknownResponse { id: id.clone() }),
        known => Ok(known),
    }
}

/// Whether the answer was made for `caller`. It exists for nobody else.
fn is_of(keeper: &Keeper, caller: Option<&Caller>) -> bool {
    keeper.caller.as_ref() == caller.map(|caller| &caller.name)
}

/// Everything before the first attempt.
pub(crate) async fn prepare<B>(
    gateway: &Arc<Gateway>,
    about: About,
    request: Request<B>,
    request_id: &RequestId,
    accepted: Moment,
) -> Result<(Drive, Outlet), Refused>
where
    B: Body<Data = Bytes> + Unpin,
{
    let snapshot = gateway.snapshot();
    let (head, body) = request.into_parts();
    // Nothing of a stranger's body is read.
    let caller = caller::identify(&snapshot, &head.headers, gateway.clock.wall())?;
    let asked = Asked::read(&head.headers)?;
    let id = crate::surface::bare(head.uri.path());
    let id = About::read(id).map_or("", |(_, id)| id);
    let asking = Asking::read(&head.method, &head.uri, about, id)?;
    let limits = BodyLimits::of(&snapshot);
    let (_, share) = read_body(&head.headers, body, limits, &gateway.buffered).await?;
    let keeper = gateway.state.keeper(&asking.id);
    let own = keeper.filter(|keeper| is_of(keeper, caller.as_deref()));
    let found = own.and_then(|keeper| Some((channel_of(&snapshot, &keeper)?, keeper)));
    let (channel, keeper) = found.ok_or_else(|| Refused::UnknownResponse {
        id: asking.id.clone(),
    })?;
    let admitted = match &caller {
        None => None,
        Some(caller) => {
            caller::may_reach(caller, &channel.provider)?;
            Some(Admitted::without_tokens(gateway, &snapshot, caller)?)
        }
    };
    let label = channel.label();
    let resolved = snapshot
        .resolve(&label)
        .ok_or_else(|| Refused::UnknownModel {
            model: label.clone(),
        })?;
    let route = Arc::clone(resolved.route());
    let plan = Plan::only(channel);
    // Reading changes nothing. What a cancellation or a deletion has done is not known from outside.
    let replay_safe = head.method == Method::GET;
    let terms = Terms {
        pin: keeper.key.as_ref().map(|key| key.name().to_owned()),
        ..asked.terms(&route, asking.stream, replay_safe, accepted)
    };
    let record = JourneyRecord {
        dialect: DIALECT.as_str(),
        operation: "kept",
        streaming: asking.stream,
        caller: caller.map(|caller| caller.name.clone()),
        caller_retry: asked.caller_retry,
        started: accepted,
        config_version: snapshot.version,
        route: "direct".to_owned(),
        ..JourneyRecord::begun(request_id.clone(), label.clone())
    };
    let mut journey = Journey::new(plan, terms);
    if !gateway.hooks.is_empty() {
        journey = journey.with_hooks();
    }
    let mut journal = Journal::open(gateway, &snapshot, journey, record, "direct".to_owned())?;
    journal.admitted = admitted;
    let outlet = Outlet::default();
    let request = drive::Request {
        commit: asked.commit.unwrap_or(route.commit),
        lossy: route.lossy,
        dialect: DIALECT,
        operation: Operation::Generate,
        envelope: Envelope::about_kept(label, asking.stream),
        body: Bytes::new(),
        _share: share,
        own_token: caller::own_token(&snapshot, &head.headers),
        snapshot,
        headers: head.headers,
        asked,
        excluded: String::new(),
        asking: Some(asking),
    };
    Ok((Drive::new(request, journal, outlet.clone()), outlet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_asks_about_whom() {
        for (path, want) in [
            ("/v1/responses/resp_1", Some((About::Answer, "resp_1"))),
            (
                "/v1/responses/resp-1/cancel",
                Some((About::Cancel, "resp-1")),
            ),
            ("/v1/responses/r/input_items", Some((About::Input, "r"))),
            ("/openai/responses/r", Some((About::Answer, "r"))),
            ("/v1/responses/", None),
            ("/v1/responses", None),
            ("/v1/responses/r/", None),
            ("/v1/responses/r/cancel/x", None),
            ("/v1/responses/../cancel", None),
            ("/v1/responses/%2e%2e", None),
            ("/v1/responses/r?x", None),
        ] {
            assert_eq!(About::read(path), want, "{path}");
        }
    }

    #[test]
    fn what_a_query_may_say() {
        let read = |query: &str| {
            let uri: Uri = format!("/v1/responses/r{query}").parse().expect("a path");
            Asking::read(&Method::GET, &uri, About::Answer, "r")
        };
        for (query, stream) in [
            ("", false),
            ("?", false),
            ("?stream=true&starting_after=4", true),
            ("?stream=false", false),
            ("?include%5B%5D=reasoning.encrypted_content", false),
        ] {
            let asking = read(query).expect(query);
            let path = format!("/r{query}");
            assert_eq!(asking.call.path, path.trim_end_matches('?'), "{query}");
            assert_eq!(asking.stream, stream, "{query}");
        }
        let versioned = read("?api-version=2025-01-01&limit=2").expect("sound");
        assert_eq!(versioned.call.path, "/r?limit=2");
        for query in ["?key=sk-1", "?stream=true&api_key=1", "?%zz=1"] {
            let refused = read(query).expect_err(query);
            assert!(
                matches!(refused, Refused::UnknownParameter { .. }),
                "{query}"
            );
        }
    }
}
