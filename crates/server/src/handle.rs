//! From a caller's HTTP request to its answer: the path, the body, the plan, the journey.

use std::sync::Arc;

use backstop_admission::Denied;
use backstop_config::{Resolved, Snapshot};
use backstop_dialects::{Dialect, Envelope, Operation, Replay, add_member, read_envelope_for};
use backstop_ledger::JourneyRecord;
use backstop_policy::{Exclusion, Journey, Plan, Terms};
use backstop_units::{ByteCount, Moment, RequestId};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body::Body;

use crate::caller::Admitted;
use crate::drive::{self, Drive};
use crate::error::{Refused, Told};
use crate::gateway::Gateway;
use crate::intake::{BodyLimits, read_body};
use crate::journal::Journal;
use crate::outlet::{AnswerBody, Outlet, respond};
use crate::plan::{PlanAsk, plan_for};
use crate::request_id::{self, request_id};
use crate::surface::{Addressed, Surface, deployment, dialect_of, listing_dialect, model_named};
use crate::terms::Asked;
use crate::{caller, framing, kept, models, status};

/// Answers one request. Dropping the answer, or this future, is the caller's hang-up.
pub async fn handle<B>(gateway: Arc<Gateway>, request: Request<B>) -> Response<AnswerBody>
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
{
    let accepted = gateway.clock.now();
    let id = request_id(request.headers(), || gateway.chance.id());
    let path = request.uri().path();
    let mut dialect = dialect_of(path);
    let surface = match surface(&request) {
        Ok(surface) => surface,
        Err(refused) => return turn_away(dialect, &id, refused),
    };
    let answer = match surface {
        Surface::Ask {
            dialect: spoken,
            operation,
        } => {
            dialect = spoken;
            let array = Addressed::read(request.uri()).is_some_and(|addressed| addressed.array);
            match prepare(&gateway, (spoken, operation), request, &id, accepted).await {
                Ok((drive, outlet)) => {
                    let answer = respond(Box::pin(drive.run()), outlet).await;
                    return if array { as_array(answer) } else { answer };
                }
                Err(refused) => {
                    if let Refused::Denied(denied) = &refused {
                        gateway.metrics.admission_refused(denied.code());
                    }
                    gateway.count_refused(spoken, operation, accepted);
                    return turn_away(dialect, &id, refused);
                }
            }
        }
        Surface::Kept(about) => {
            match kept::prepare(&gateway, about, request, &id, accepted).await {
                Ok((drive, outlet)) => return respond(Box::pin(drive.run()), outlet).await,
                Err(refused) => {
                    gateway.count_refused(dialect, Operation::Generate, accepted);
                    return turn_away(dialect, &id, refused);
                }
            }
        }
        Surface::Models => {
            let dialect = listing_dialect(path, request.headers());
            let snapshot = gateway.snapshot();
            match caller::identify(&snapshot, request.headers(), gateway.clock.wall()) {
                Ok(caller) => models::list(&snapshot, caller.as_deref(), dialect),
                Err(denied) => return turn_away(dialect, &id, denied.into()),
            }
        }
        Surface::Model => {
            let dialect = listing_dialect(path, request.headers());
            let snapshot = gateway.snapshot();
            let model = model_named(path).unwrap_or_default();
            let told = caller::identify(&snapshot, request.headers(), gateway.clock.wall())
                .map_err(Refused::from)
                .and_then(|caller| models::one(&snapshot, caller.as_deref(), dialect, &model));
            match told {
                Ok(answer) => answer,
                Err(refused) => return turn_away(dialect, &id, refused),
            }
        }
        Surface::Health => status::health(),
        Surface::Ready => status::ready(&gateway),
        Surface::Metrics => status::metrics(&gateway),
    };
    let mut answer = answer;
    if let Ok(id) = HeaderValue::from_str(id.as_str()) {
        answer.headers_mut().insert(request_id::HEADER, id);
    }
    answer.map(AnswerBody::whole)
}

/// A stream of events as one array; an answer that is whole stays as it is.
fn as_array(mut answer: Response<AnswerBody>) -> Response<AnswerBody> {
    if answer.body().is_stream() {
        let kind = HeaderValue::from_static("application/json");
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    answer.map(AnswerBody::into_array)
}

fn surface<B>(request: &Request<B>) -> Result<Surface, Refused> {
    framing::check(request)?;
    let path = || request.uri().path().chars().take(80).collect::<String>();
    let surface =
        Surface::at(request.uri().path()).ok_or_else(|| Refused::NoSuchPath { path: path() })?;
    if !surface.answers(request.method()) {
        return Err(Refused::WrongMethod {
            path: path(),
            allowed: surface.allowed(),
        });
    }
    Ok(surface)
}

fn turn_away(dialect: Dialect, id: &RequestId, refused: Refused) -> Response<AnswerBody> {
    tracing::info!(
        target: "backstop::journey",
        request_id = %id,
        outcome = "bad_request",
        code = %Told::from(refused.clone()).code,
        "request refused"
    );
    let closes = matches!(
        refused,
        Refused::TooLarge { .. }
            | Refused::BodyCut
            | Refused::BodyStalled
            | Refused::Encoded
            | Refused::Ambiguous { .. }
            | Refused::Denied(Denied::NoKey | Denied::UnknownKey | Denied::Expired)
    );
    let mut answer = Told::from(refused).answer(dialect, id, None);
    if closes {
        // What is left of the body is not read.
        answer
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer.map(AnswerBody::whole)
}

/// Everything before the first attempt. No provider has heard of the request yet.
async fn prepare<B>(
    gateway: &Arc<Gateway>,
    (dialect, operation): (Dialect, Operation),
    request: Request<B>,
    id: &RequestId,
    accepted: Moment,
) -> Result<(Drive, Outlet), Refused>
where
    B: Body<Data = Bytes> + Unpin,
{
    let snapshot = gateway.snapshot();
    let (head, body) = request.into_parts();
    // Nothing of a stranger's body is read.
    let caller = caller::identify(&snapshot, &head.headers, gateway.clock.wall())?;
    let mut asked = Asked::read(&head.headers)?;
    if let Some(caller) = &caller {
        asked.belongs_to(&caller.name);
    }
    let limits = BodyLimits::of(&snapshot);
    let (body, share) = read_body(&head.headers, body, limits, &gateway.buffered).await?;
    let body = match deployment(head.uri.path()) {
        Some(model) => naming(body, &model),
        None => body,
    };
    let mut envelope = read_envelope_for(operation, dialect, &body)?;
    if let Some(addressed) = Addressed::read(&head.uri) {
        envelope = envelope.addressed(addressed.model, addressed.stream);
    }
    let resolved = snapshot
        .resolve(&envelope.model)
        .ok_or_else(|| Refused::UnknownModel {
            model: envelope.model.chars().take(80).collect(),
        })?;
    if let Some(caller) = &caller {
        caller::check_ask(caller, &resolved, &envelope, &asked)?;
    }
    let route = resolved.route();
    // A name that a caller made up is no label.
    let name = match &resolved {
        Resolved::Configured(route) => route.name.to_string(),
        Resolved::Minted(_) => "direct".to_owned(),
    };
    let own_token = caller::own_token(&snapshot, &head.headers);
    let session = asked.session(gateway, &snapshot);
    let keeper = kept::keeper_of(gateway, &envelope, caller.as_deref())?;
    let asked_for = PlanAsk {
        dialect,
        operation,
        needs: &envelope.needs,
        fallbacks: &envelope.fallbacks,
        roll: gateway.chance.roll(),
        live: Some((&gateway.state, accepted)),
        caller: caller.as_deref(),
        has_token: own_token.is_some(),
        session: session.as_ref().map_or(&[], |session| &session.bound),
        keeper: keeper.as_ref(),
    };
    let plan = plan_for(&snapshot, route, &asked_for);
    check_pin(&asked, &plan)?;
    let size = ByteCount(body.len() as u64);
    let admitted = match &caller {
        None => None,
        Some(caller) => {
            let what = (operation, &envelope);
            Some(Admitted::take(
                gateway, &snapshot, caller, &plan, what, size,
            )?)
        }
    };
    let replay_safe = is_replay_safe(&envelope, &asked, || plan_speaks(&snapshot, &plan, dialect));
    let held = keeper.and_then(|keeper| Some(keeper.key?.name().to_owned()));
    let terms = Terms {
        session,
        pin: asked.pin.clone().or(held),
        ..asked.terms(route, envelope.stream, replay_safe, accepted)
    };
    let record = JourneyRecord {
        dialect: dialect.as_str(),
        operation: operation.as_str(),
        streaming: envelope.stream,
        caller: caller.map(|caller| caller.name.clone()),
        caller_retry: asked.caller_retry,
        started: accepted,
        config_version: snapshot.version,
        route: name.clone(),
        ..JourneyRecord::begun(id.clone(), envelope.model.clone())
    };
    let excluded = reasons(&plan);
    let mut journey = Journey::new(plan, terms);
    if !gateway.hooks.is_empty() {
        journey = journey.with_hooks();
    }
    let mut journal = Journal::open(gateway, &snapshot, journey, record, name)?;
    journal.session.clone_from(&asked.session);
    journal.admitted = admitted;
    let outlet = Outlet::default();
    let request = drive::Request {
        commit: asked.commit.unwrap_or(route.commit),
        lossy: route.lossy,
        snapshot,
        dialect,
        operation,
        envelope,
        body,
        _share: share,
        headers: head.headers,
        own_token,
        asked,
        excluded,
        asking: None,
    };
    Ok((Drive::new(request, journal, outlet.clone()), outlet))
}

/// Gate 3: whether the request may be sent again when nobody knows what became of it. What a provider
/// keeps or does besides answering, it does only for those who speak its dialect.
fn is_replay_safe(envelope: &Envelope, asked: &Asked, spoken: impl FnOnce() -> bool) -> bool {
    match envelope.replay {
        Replay::Safe => true,
        Replay::Keyed if asked.idempotent => true,
        Replay::Keyed | Replay::Unsafe => !spoken(),
    }
}

/// The body with the model that the path names, whichever it names itself; what is no object stays,
/// for the reader to refuse.
fn naming(body: Bytes, model: &str) -> Bytes {
    let name = serde_json::Value::from(model).to_string();
    add_member(&body, "model", name.as_bytes()).map_or(body, Bytes::from)
}

/// Whether the caller's dialect is spoken to any channel of the plan.
fn plan_speaks(snapshot: &Snapshot, plan: &Plan, caller: Dialect) -> bool {
    plan.candidates.iter().any(|candidate| {
        let channel = &candidate.channel;
        let provider = snapshot.providers.get(&channel.provider);
        provider.is_some_and(|provider| provider.dialect_for(caller, &channel.model) == caller)
    })
}

/// A request held to a key that its first channel does not have is the caller's mistake.
fn check_pin(asked: &Asked, plan: &Plan) -> Result<(), Refused> {
    let (Some(pin), Some(primary)) = (&asked.pin, plan.candidates.first()) else {
        return Ok(());
    };
    let has = primary.channel.serving_keys().any(|key| key.name() == pin);
    if has {
        return Ok(());
    }
    Err(Refused::UnknownKey {
        key: pin.chars().take(80).collect(),
        provider: primary.channel.provider.to_string(),
    })
}

/// Why channels were left out, as the end of a sentence.
fn reasons(plan: &Plan) -> String {
    let reasons: Vec<String> = plan
        .excluded
        .iter()
        .filter(|excluded| excluded.reason != Exclusion::MissingProvider)
        .map(|excluded| format!("{}: {}", excluded.channel, excluded.reason))
        .collect();
    if reasons.is_empty() {
        String::new()
    } else {
        format!(" ({})", reasons.join("; "))
    }
}
