//! What the scripts of providers say, for those who compare it with what came out.

use serde_json::Value;

use super::data::Scenario;

/// Every JSON value that a provider's script sends: bodies and events.
pub(crate) fn sent<'s>(
    scenario: &'s Scenario,
    upstream: &'s str,
) -> impl Iterator<Item = &'s Value> {
    let own = scenario
        .upstreams
        .iter()
        .filter(move |u| u.name == upstream);
    own.flat_map(|upstream| &upstream.script).flat_map(|step| {
        let events = step["sse"].as_array().into_iter().flatten();
        let events = events.filter_map(|item| item.get("data"));
        step.get("body").into_iter().chain(events)
    })
}

/// Every JSON value that any script sends.
pub(crate) fn all_sent(scenario: &Scenario) -> impl Iterator<Item = &Value> {
    let names = scenario.upstreams.iter().map(|u| u.name.as_str());
    names.flat_map(|name| sent(scenario, name))
}

/// The ids of answers that a provider's script sends.
pub(crate) fn ids<'s>(scenario: &'s Scenario, upstream: &'s str) -> impl Iterator<Item = &'s str> {
    sent(scenario, upstream).filter_map(id)
}

/// The id of an answer, in whichever dialect.
pub(crate) fn id(data: &Value) -> Option<&str> {
    let id = data["id"]
        .as_str()
        .or_else(|| data["message"]["id"].as_str())
        .or_else(|| data["response"]["id"].as_str());
    id.filter(|id| !id.is_empty())
}

/// The errors that scripts send, without what stands around them.
pub(crate) fn errors(scenario: &Scenario) -> impl Iterator<Item = &Value> {
    all_sent(scenario).filter_map(|data| data.get("error"))
}

/// The providers' own words in their errors.
pub(crate) fn messages(scenario: &Scenario) -> impl Iterator<Item = &str> {
    errors(scenario).filter_map(|error| error["message"].as_str())
}
