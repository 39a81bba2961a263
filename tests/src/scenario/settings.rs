//! The settings of a scenario as an operator would type them, and what of them is not built yet.

use std::fmt::Write as _;

use serde_json::Value;

use super::data::{Provider, Scenario, Settings};

/// The host of a provider, as the configuration names it.
pub(crate) fn host(upstream: &str) -> String {
    format!("{upstream}.example")
}

/// The value of a key: unique, and easy to search for.
pub(crate) fn secret(key: &str) -> String {
    format!("{}-{key}-5e1d0c7a", crate::CANARY)
}

/// The environment variable that a key is in.
pub(crate) fn variable(key: &str) -> String {
    format!("KEY_{}", key.to_ascii_uppercase())
}

/// The paths that the gateway serves. One that it learns to serve joins them, and the scenarios that
/// wait for it are played.
const SURFACES: [&str; 3] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];

/// What the scenario needs and the gateway or the simulator does not have; empty when it can be
/// played.
pub(crate) fn needs(scenario: &Scenario) -> Vec<String> {
    let mut needs = Vec::new();
    let mut need = |name: &str| {
        if !needs.iter().any(|known| known == name) {
            needs.push(name.to_owned());
        }
    };
    for upstream in &scenario.upstreams {
        if kind(upstream).is_none() {
            need(&upstream.provider);
        }
        let passes_through = upstream
            .credential
            .as_deref()
            .is_some_and(|how| how.contains("caller"));
        if passes_through {
            need("callers' own credentials");
        }
        for step in &upstream.script {
            if let Some(ending @ ("goaway" | "dns_fail" | "tls_name_mismatch")) =
                step["then"].as_str()
            {
                need(ending);
            }
            if step.get("http2").is_some() || step.get("stream_no").is_some() {
                need("HTTP/2 in the simulator");
            }
            if step["when"].is_string() {
                need("conditions in plain words");
            }
        }
    }
    for ask in &scenario.client.0 {
        if ask.read.is_some() {
            need("callers who read slowly");
        }
        if !SURFACES.contains(&ask.endpoint.as_str()) {
            need(ask.endpoint.trim_start_matches("/v1/"));
        }
    }
    if scenario.gateway.aliases.is_some() {
        need("aliases in plain words");
    }
    if scenario.gateway.buffer_per_stream_bytes.is_some() {
        need("a bound of bytes for each stream");
    }
    if scenario.gateway.gateway_auth_header.is_some() {
        need("callers' own credentials");
    }
    needs
}

/// The configuration's `kind` for a provider; `None` while its dialect is not built. A provider that
/// the gateway learns to speak to gets its row here.
///
/// Azure is played as a compatible server: its chat completions differ in address and in the header
/// of the key, not in their bodies.
fn kind(upstream: &Provider) -> Option<&'static str> {
    match upstream.provider.as_str() {
        "openai" => Some("openai"),
        "anthropic" => Some("anthropic"),
        "gemini" => Some("gemini"),
        "bedrock" => Some("bedrock"),
        "groq" => Some("groq"),
        "openrouter" => Some("openrouter"),
        "azure" => Some("custom"),
        _ => None,
    }
}

/// The configuration of the scenario, in TOML; `version` counts from 1.
///
/// # Errors
/// When a setting is not understood.
pub(crate) fn toml(scenario: &Scenario, version: usize) -> Result<String, String> {
    let settings = &scenario.gateway;
    understood(settings)?;
    if let Some(upstream) = scenario.upstreams.iter().find(|u| u.contract.is_some()) {
        return Err(format!(
            "upstreams: the contract of {} is not understood",
            upstream.name
        ));
    }
    let mut out = String::new();
    if let Some(stall) = settings.timeouts.client_stall_ms {
        let _ = writeln!(out, "[server]\nstall_ms = {stall}\n");
    }
    let limits = [
        ("body_bytes", settings.max_body_bytes),
        // A caller's place is its connection, the only one the gateway counts so far.
        (
            "connections",
            settings.concurrency_per_caller.map(u64::from),
        ),
    ];
    if limits.iter().any(|(_, value)| value.is_some()) {
        let _ = writeln!(out, "[limits]\n{}", lines(&limits));
    }
    let present = present(scenario, version)?;
    for upstream in &scenario.upstreams {
        if present.contains(&upstream.name.as_str()) {
            out.push_str(&provider(settings, upstream));
        }
    }
    out.push_str(&routes(scenario, &present)?);
    Ok(out)
}

/// Settings whose words leave no choice.
fn understood(settings: &Settings) -> Result<(), String> {
    let words = [
        ("jitter", &settings.jitter, "0.8-1.2"),
        ("key_selection", &settings.key_selection, "listed order"),
        ("pool", &settings.pool, "keep-alive on"),
        ("log_level", &settings.log_level, "debug"),
        (
            "caller_deadline",
            &settings.caller_deadline,
            "accepted per request",
        ),
    ];
    for (name, given, known) in words {
        if given.as_deref().is_some_and(|given| given != known) {
            return Err(format!("gateway.{name}: only {known:?} is understood"));
        }
    }
    let probes = settings
        .breaker
        .as_ref()
        .and_then(|breaker| breaker.half_open_max);
    if probes.is_some_and(|probes| probes != 1) {
        return Err("gateway.breaker.half_open_max: a breaker admits one probe".to_owned());
    }
    match &settings.cooldown {
        // For how long is the gateway's own to say: the hint, and at least 10 s.
        None | Some(Value::Object(_)) => {}
        Some(on) if on == "on" => {}
        Some(other) => return Err(format!("gateway.cooldown: {other} is not understood")),
    }
    for action in &settings.actions {
        if action.what != "reload" {
            return Err(format!(
                "gateway.actions: {:?} is not understood",
                action.what
            ));
        }
    }
    Ok(())
}

/// The providers that the configuration of this version names.
fn present(scenario: &Scenario, version: usize) -> Result<Vec<&str>, String> {
    let settings = &scenario.gateway;
    let Some(first) = &settings.routes_v1 else {
        return Ok(scenario.upstreams.iter().map(|u| u.name.as_str()).collect());
    };
    let mut present: Vec<&str> = first.iter().map(String::as_str).collect();
    for action in settings.actions.iter().take(version - 1) {
        for clause in action.change.split(", ") {
            let (name, what) = clause.split_once(' ').unwrap_or((clause, ""));
            if what.starts_with("removed") {
                present.retain(|known| *known != name);
            } else if what == "added" {
                present.push(name);
            } else {
                return Err(format!("gateway.actions: {clause:?} is not understood"));
            }
        }
    }
    Ok(present)
}

fn provider(settings: &Settings, upstream: &Provider) -> String {
    let name = &upstream.name;
    let scheme = match upstream.door.as_deref() {
        None | Some("plain" | "unresolved" | "refused") => "http",
        Some(_) => "https",
    };
    let mut out = format!(
        "[providers.{name}]\nkind = \"{}\"\nbase_url = \"{scheme}://{}\"\nallow_plain_http = true\n",
        kind(upstream).unwrap_or("custom"),
        host(name),
    );
    if settings.contract_verified.contains(name) {
        out.push_str("verified = true\n");
    }
    for key in &upstream.keys {
        let _ = writeln!(
            out,
            "[[providers.{name}.keys]]\nname = \"{key}\"\nvalue = \"env.{}\"",
            variable(key)
        );
    }
    let network = [
        ("max_retries", Some(u64::from(settings.max_retries))),
        ("retry_backoff_initial", settings.backoff_initial_ms),
        ("retry_backoff_max", settings.backoff_max_ms),
    ];
    let _ = writeln!(
        out,
        "[providers.{name}.network_config]\n{}",
        lines(&network)
    );
    let clocks = [
        ("connect_ms", settings.timeouts.connect_ms),
        ("headers_ms", settings.timeouts.headers_ms),
        ("first_output_ms", settings.timeouts.ttft_ms),
        ("idle_ms", settings.timeouts.idle_ms),
    ];
    let _ = writeln!(out, "[providers.{name}.timeouts]\n{}", lines(&clocks));
    if let Some(breaker) = &settings.breaker {
        let breaker = [
            ("failures", Some(u64::from(breaker.failure_threshold))),
            ("open_ms", Some(breaker.open_ms)),
        ];
        let _ = writeln!(out, "[providers.{name}.breaker]\n{}", lines(&breaker));
    }
    out
}

fn lines(fields: &[(&str, Option<u64>)]) -> String {
    let given = fields
        .iter()
        .filter_map(|(name, value)| Some(format!("{name} = {}\n", (*value)?)));
    given.collect()
}

/// A route for each alias that callers use.
fn routes(scenario: &Scenario, present: &[&str]) -> Result<String, String> {
    let mut aliases: Vec<&str> = Vec::new();
    for ask in &scenario.client.0 {
        let alias = ask.body["model"].as_str().unwrap_or("chat-main");
        if !aliases.contains(&alias) {
            aliases.push(alias);
        }
    }
    let mut out = String::new();
    for alias in aliases {
        let (chain, substitutes) = chain(scenario, present, alias)?;
        let _ = writeln!(out, "[routes.{alias}]");
        if let Some(deadline) = scenario.gateway.timeouts.request_deadline_ms {
            let _ = writeln!(out, "deadline_ms = {deadline}");
        }
        let groups = chain
            .iter()
            .map(|channel| format!("{{ channels = [\"{channel}\"] }}"));
        let groups: Vec<_> = groups.collect();
        let _ = writeln!(out, "groups = [{}]", groups.join(", "));
        let substitutes = substitutes
            .iter()
            .map(|channel| format!("{{ channel = \"{channel}\" }}"));
        let substitutes: Vec<_> = substitutes.collect();
        let _ = writeln!(out, "substitutions = [{}]\n", substitutes.join(", "));
    }
    Ok(out)
}

/// The same-contract channels of an alias, and the permitted substitutes, each in order.
fn chain(
    scenario: &Scenario,
    present: &[&str],
    alias: &str,
) -> Result<(Vec<String>, Vec<String>), String> {
    let settings = &scenario.gateway;
    let label = |name: &str| {
        let found = scenario.upstreams.iter().find(|u| u.name == name);
        let found = found.ok_or_else(|| format!("gateway: no upstream is called {name:?}"))?;
        Ok::<_, String>(format!("{name}/{}", found.model))
    };
    let primary = present.first().ok_or("gateway: no upstream is left")?;
    let mut same = vec![label(primary)?];
    let mut substitutes = Vec::new();
    let listed = match &settings.fallbacks {
        Value::Object(by_alias) => by_alias
            .get(&format!("alias {alias}"))
            .ok_or_else(|| format!("gateway.fallbacks: nothing for alias {alias}"))?,
        all => all,
    };
    let listed = listed.as_array().ok_or("gateway.fallbacks: not a list")?;
    for name in listed.iter().filter_map(Value::as_str) {
        let kind = match &settings.fallback_kind {
            Some(Value::Object(each)) => each.get(name).and_then(Value::as_str),
            Some(all) => all.as_str(),
            // What a policy says of substitutes is said below.
            None if settings.substitution_policy.is_some() => continue,
            None => None,
        };
        match kind {
            Some("same_contract") => same.push(label(name)?),
            Some(kind) if kind.contains("not permitted") => {}
            other => return Err(format!("gateway.fallback_kind: {other:?} for {name}")),
        }
    }
    let policy = settings.substitution_policy.as_ref();
    match policy.and_then(|policy| policy.get(&format!("alias {alias}"))) {
        Some(Value::Array(permitted)) => {
            for entry in permitted.iter().filter_map(Value::as_str) {
                // `name (model)`
                let name = entry.split(' ').next().unwrap_or(entry);
                substitutes.push(label(name)?);
            }
        }
        Some(Value::String(none)) if none == "none" => {}
        None => {}
        Some(other) => return Err(format!("gateway.substitution_policy: {other}")),
    }
    Ok((same, substitutes))
}
