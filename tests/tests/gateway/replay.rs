//! What providers answered once, through every surface: each caller gets the same words, calls,
//! counts and ending, in a form that keeps its own grammar.
//!
//! What they got lies beside the recordings, for people to read.

use std::fmt::Write as _;

use backstop_faultsim::{Script, Sim};
use backstop_tests::surface::{Form, Rules, Stop, Surface, Told, error_message, told};
use backstop_tests::{Answer, Recording, TestGateway, UpstreamDialect, recordings};
use serde_json::{Value, json};

use crate::common::provider;

/// Where pieces are cut. A seed that once found a fault stays here.
const SEEDS: [u64; 1] = [1];

/// Streams whose bytes are not passed on as they came, because a client would not bear them: a mark
/// of the byte order at the start, an event without data.
const RETOUCHED: [&str; 1] = ["openai-compatible/sse-quirks"];

/// Answers up to this size stand in the snapshots as they are.
const SMALL: usize = 700;

#[tokio::test]
async fn replay_openai_chat() {
    replay(Surface::OpenAiChat).await;
}

#[tokio::test]
async fn replay_openai_responses() {
    replay(Surface::OpenAiResponses).await;
}

#[tokio::test]
async fn replay_anthropic_messages() {
    replay(Surface::AnthropicMessages).await;
}

#[tokio::test]
async fn replay_gemini() {
    replay(Surface::Gemini).await;
}

#[tokio::test]
async fn replay_cohere_v2() {
    replay(Surface::CohereV2).await;
}

#[tokio::test]
async fn replay_bedrock_converse() {
    replay(Surface::BedrockConverse).await;
}

/// Every recording of a dialect. All faults are told at once.
async fn replay(dialect: Surface) {
    let mut faults = Vec::new();
    for recording in recordings() {
        if recording.dialect == dialect {
            for seed in SEEDS {
                let story = serve(&recording, seed, &mut faults).await;
                keep(&recording, &story);
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// One recording through every surface; what came of it, for the snapshot.
async fn serve(recording: &Recording, seed: u64, faults: &mut Vec<String>) -> String {
    let upstream = UpstreamDialect(recording.dialect);
    let surfaces = Surface::SERVED
        .into_iter()
        .filter(|surface| upstream.serves(*surface));
    let surfaces: Vec<Surface> = surfaces.collect();
    if surfaces.is_empty() {
        return String::new();
    }
    let sim: Sim = provider(Script::new().step(recording.step(seed).always())).await;
    let gateway = TestGateway::start(&upstream.config(), &[(upstream.provider(), &sim)]).await;
    let form = if recording.streamed {
        Form::Stream
    } else {
        Form::Whole
    };
    let meant = match recording.status {
        200 => told(recording.dialect, form, &recording.body, Rules::Lenient),
        status => Err(format!("status {status}")),
    };
    let mut story = match &meant {
        Ok(meant) => tell(meant),
        Err(why) => format!("no answer: {why}\n"),
    };
    for surface in surfaces {
        for form in surface.forms(recording.streamed) {
            let asked = surface.ask(&upstream.model(), *form).to_string();
            let call = gateway.call("POST", &surface.path(&upstream.model(), *form));
            let call = call.header("content-type", "application/json").body(asked);
            let answer = call.header("x-request-id", "replay").send().await;
            let _ = writeln!(
                story,
                "\n--- {} {form:?}: {}",
                surface.name(),
                answer.status
            );
            story += &shown(&answer);
            if let Err(fault) = look(recording, surface, *form, &meant, &answer) {
                faults.push(format!(
                    "{} at {} {form:?}: {fault}",
                    recording.name,
                    surface.name()
                ));
            }
        }
    }
    story
}

fn look(
    recording: &Recording,
    surface: Surface,
    form: Form,
    meant: &Result<Told, String>,
    answer: &Answer,
) -> Result<(), String> {
    let meant = meant.as_ref().ok();
    let failed = meant.is_none_or(|meant| meant.error.is_some() || meant.stop.is_none());
    let silent = meant.is_none_or(|meant| {
        meant.text.is_empty() && meant.reasoning.is_empty() && meant.calls.is_empty()
    });
    if failed && silent {
        if answer.status < 400 {
            return Err(format!("{} for what is no answer", answer.status));
        }
        return error_message(surface, answer.status, &answer.json()).map(|_| ());
    }
    let Some(meant) = meant else { return Ok(()) };
    if answer.status != 200 {
        return Err(format!("{} {}", answer.status, answer.text()));
    }
    if surface == recording.dialect {
        if !failed && form != Form::Array && !RETOUCHED.contains(&recording.name.as_str()) {
            same_bytes(recording, answer)?;
        }
        let got = told(surface, form, &answer.body, Rules::Lenient)?;
        return same(surface, meant, &got, failed);
    }
    let got = told(surface, form, &answer.body, Rules::Strict)?;
    let mut meant = meant.clone();
    for call in &mut meant.calls {
        // Where arguments are objects, none tells of one that was cut; the stop does.
        let objects = surface == Surface::Gemini
            || (form == Form::Whole
                && surface != Surface::OpenAiChat
                && surface != Surface::OpenAiResponses);
        if objects && !call.arguments.is_object() {
            call.arguments = json!({});
        }
    }
    same(surface, &meant, &got, failed)
}

/// In the same dialect no byte is another, but for the member that is ours.
fn same_bytes(recording: &Recording, answer: &Answer) -> Result<(), String> {
    let (want, got) = (recording.body.trim_ascii(), answer.body.trim_ascii());
    let equal = match got
        .windows(16)
        .rposition(|part| part == b",\"extra_fields\":")
    {
        Some(at) if !recording.streamed => {
            let end = want.len() - 1;
            want[..end].trim_ascii() == got[..at].trim_ascii()
                && want[end..] == got[got.len() - 1..]
        }
        _ => want == got,
    };
    if equal {
        Ok(())
    } else {
        let at = want
            .iter()
            .zip(got)
            .take_while(|(want, got)| want == got)
            .count();
        Err(format!(
            "other bytes from {at} on, {} and {}",
            want.len(),
            got.len()
        ))
    }
}

/// The same meaning, as far as the surface can say it.
fn same(surface: Surface, meant: &Told, got: &Told, failed: bool) -> Result<(), String> {
    let differs = |what: &str, want: &dyn std::fmt::Debug, got: &dyn std::fmt::Debug| {
        Err(format!("{what}: {want:?} became {got:?}"))
    };
    if got.text != meant.text {
        return differs("text", &meant.text, &got.text);
    }
    if got.reasoning != meant.reasoning {
        return differs("reasoning", &meant.reasoning, &got.reasoning);
    }
    if failed != got.error.is_some() {
        return differs("error", &meant.error, &got.error);
    }
    if failed {
        return Ok(());
    }
    // Only who asks with `functions` is answered so, and only in the same dialect.
    let legacy = meant.stop == Some(Stop::Tools) && meant.calls.is_empty();
    let calls = |told: &Told| -> Vec<(String, Value)> {
        let calls = told.calls.iter();
        calls
            .map(|call| (call.name.clone(), call.arguments.clone()))
            .collect()
    };
    if calls(got) != calls(meant) {
        return differs("calls", &calls(meant), &calls(got));
    }
    let mut ids: Vec<&str> = got.calls.iter().map(|call| call.id.as_str()).collect();
    ids.retain(|id| !id.is_empty());
    let named = ids.len();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != named {
        return differs("ids of calls", &"one each", &ids);
    }
    let stop = match (surface, meant.stop) {
        // No word for it.
        (Surface::CohereV2, Some(Stop::Filter)) => Some(Stop::End),
        (Surface::Gemini | Surface::BedrockConverse, Some(Stop::Filter)) if meant.refused => {
            Some(Stop::End)
        }
        (_, stop) => stop,
    };
    if got.stop != stop && !legacy {
        return differs("stop", &stop, &got.stop);
    }
    let mut usage = meant.usage.unwrap_or_default();
    if matches!(surface, Surface::CohereV2 | Surface::BedrockConverse) {
        usage.reasoning = got.usage.unwrap_or_default().reasoning;
    }
    if matches!(
        surface,
        Surface::AnthropicMessages | Surface::BedrockConverse
    ) {
        // They stand beside the input there, so there cannot be more of them.
        usage.cached = usage.cached.min(usage.input);
    }
    if got.usage.unwrap_or_default() != usage {
        return differs("usage", &usage, &got.usage);
    }
    Ok(())
}

/// What a recording means, in a few lines.
fn tell(told: &Told) -> String {
    let short = |text: &str| match text.char_indices().nth(200) {
        Some((end, _)) => format!("{:?} and {} more bytes", &text[..end], text.len() - end),
        None => format!("{text:?}"),
    };
    let mut story = format!("text: {}\n", short(&told.text));
    if !told.reasoning.is_empty() {
        let _ = writeln!(story, "reasoning: {}", short(&told.reasoning));
    }
    for call in &told.calls {
        let _ = writeln!(
            story,
            "call: {} {}",
            call.name,
            short(&call.arguments.to_string())
        );
    }
    let _ = writeln!(story, "stop: {:?}, refused: {}", told.stop, told.refused);
    if let Some(usage) = &told.usage {
        let _ = writeln!(story, "usage: {usage:?}");
    }
    if let Some(error) = &told.error {
        let _ = writeln!(story, "error: {}", short(error));
    }
    story
}

/// An answer as it is, or its outline when it is long. What depends on the hour is left out.
fn shown(answer: &Answer) -> String {
    let Ok(text) = std::str::from_utf8(&answer.body) else {
        return format!("{} bytes\n", answer.body.len());
    };
    let mut text = text.to_owned();
    if let Ok(mut body) = serde_json::from_str::<Value>(&text) {
        if let Some(body) = body.as_object_mut() {
            body.shift_remove("extra_fields");
        }
        text = body.to_string() + "\n";
    }
    for member in ["\"created\":", "\"created_at\":"] {
        let mut parts = text.split(member);
        let mut kept = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            kept = kept + member + "0" + part.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        text = kept;
    }
    if text.len() <= SMALL {
        return text;
    }
    if !text.contains("data:") {
        let end = text
            .char_indices()
            .nth(SMALL)
            .map_or(text.len(), |(end, _)| end);
        return format!("{}... {} bytes\n", &text[..end], text.len());
    }
    outline(answer)
}

/// The kinds of a stream's events, equal neighbours counted.
fn outline(answer: &Answer) -> String {
    let whole = [answer.body.as_ref(), b"\n\n"].concat();
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for event in backstop_tests::events(&whole) {
        let data = event.json();
        let kind = match event.event {
            Some(name) => name,
            None if data.is_null() => event.data,
            None => members(&data),
        };
        match kinds.last_mut() {
            Some((last, times)) if *last == kind => *times += 1,
            _ => kinds.push((kind, 1)),
        }
    }
    kinds
        .iter()
        .fold(String::new(), |mut lines, (kind, times)| {
            let _ = writeln!(lines, "{kind} x{times}");
            lines
        })
}

/// What an event without a name has in it.
fn members(data: &Value) -> String {
    let names = |value: &Value| -> String {
        let members = value.as_object().into_iter().flatten();
        let told = members.filter(|(_, value)| !value.is_null());
        told.map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let choice = &data["choices"][0];
    let candidate = &data["candidates"][0];
    match (choice.is_object(), candidate.is_object()) {
        (true, _) => format!("{} | {}", names(choice), names(&choice["delta"])),
        (_, true) => format!(
            "{} | {}",
            names(candidate),
            names(&candidate["content"]["parts"][0])
        ),
        _ => names(data),
    }
}

/// Compares with what is kept beside the recordings.
fn keep(recording: &Recording, story: &str) {
    if story.is_empty() {
        return;
    }
    let (provider, name) = recording.name.split_once('/').expect("provider/name");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../../recordings/{provider}/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, story));
}
