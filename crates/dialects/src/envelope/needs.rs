//! What a request needs, noticed while its bytes go by.

mod bedrock;
mod cohere;
mod embedding;
mod gemini;

use std::ops::Range;

use backstop_chat::{Need, Needs};
use backstop_units::Tokens;

use super::{Replay, VectorForm};
use crate::dialect::Dialect;
use crate::operation::Operation;
use crate::scan::{Fault, Kind, Member, Scanner, Str};

/// Bytes of JSON taken for one token in the estimate of a prompt: English text runs at about four
/// characters a token (OpenAI's help page on tokens).
const BYTES_PER_TOKEN: usize = 4;

/// Collects needs member by member.
#[derive(Default)]
pub(super) struct NeedsScan {
    operation: Operation,
    pub(super) needs: Needs,
    /// Bytes of the members that end up in the prompt.
    pub(super) prompt_bytes: usize,
    /// Of these, bytes of pictures, sound and files, which are not priced by length.
    payload_bytes: usize,
    /// What the request says of storing its answer.
    pub(super) stored: Option<bool>,
    /// The id of what the request goes on from.
    pub(super) goes_on_from: Option<String>,
    /// The provider will do more than answer.
    pub(super) effects: bool,
    /// How vectors are asked for.
    pub(super) vectors: VectorForm,
    /// Where the body repeats the name of a model that stands in the path.
    pub(super) repeated_models: Vec<Range<usize>>,
}

impl NeedsScan {
    pub(super) fn of(operation: Operation) -> Self {
        Self {
            operation,
            needs: operation
                .need()
                .into_iter()
                .fold(Needs::default(), Needs::with),
            ..Self::default()
        }
    }

    /// Walks over the value of a top-level member that the envelope itself does not act upon.
    pub(super) fn member<'a>(
        &mut self,
        dialect: Dialect,
        s: &mut Scanner<'a>,
        member: Member<'a>,
    ) -> Result<(), Fault> {
        if self.operation == Operation::Embed {
            return self.embedding(dialect, &member.key.decode(), s);
        }
        match dialect {
            Dialect::Gemini => return self.gemini(&member.key.decode(), s),
            Dialect::BedrockConverse => return self.bedrock(&member.key.decode(), s),
            _ => {}
        }
        let start = s.at();
        match &*member.key.decode() {
            "messages" => {
                s.array_or_skip(|s| self.message(s))?;
                self.prompt_bytes += s.at() - start;
            }
            "system" => {
                s.array_or_skip(|s| self.part(s).map(drop))?;
                self.prompt_bytes += s.at() - start;
            }
            "tools" | "functions" => {
                s.array_or_skip(|s| self.tool(dialect, s))?;
                self.prompt_bytes += s.at() - start;
            }
            "max_tokens" | "max_completion_tokens" => {
                let most = Tokens(s.count_or_skip()?.unwrap_or(0));
                self.needs.answer = self.needs.answer.max(most);
            }
            name => match dialect {
                Dialect::OpenAiChat => self.openai(name, s)?,
                Dialect::OpenAiResponses => self.responses(name, s)?,
                Dialect::AnthropicMessages => self.anthropic(name, s)?,
                Dialect::Gemini => self.gemini(name, s)?,
                Dialect::CohereV2 => self.cohere(name, s)?,
                Dialect::BedrockConverse => self.bedrock(name, s)?,
            },
        }
        Ok(())
    }

    pub(super) fn finish(self, stream: bool) -> Needs {
        let mut needs = self.needs;
        if stream {
            needs = needs.with(Need::Streaming);
        }
        if self.operation == Operation::CountTokens {
            // What fits no window can be counted all the same.
            needs.answer = Tokens::default();
            return needs;
        }
        let bytes = self.prompt_bytes.saturating_sub(self.payload_bytes);
        needs.prompt = Tokens((bytes / BYTES_PER_TOKEN) as u64);
        needs
    }

    /// Whether what went by may be sent twice.
    pub(super) const fn replay(&self, dialect: Dialect) -> Replay {
        // Answers are kept by default here.
        let stores = matches!(dialect, Dialect::OpenAiResponses);
        match self.stored {
            _ if self.effects => Replay::Unsafe,
            None | Some(true) if stores => Replay::Keyed,
            _ => Replay::Safe,
        }
    }

    pub(super) fn need(&mut self, need: Need) {
        self.needs = self.needs.with(need);
    }

    fn openai(&mut self, name: &str, s: &mut Scanner<'_>) -> Result<(), Fault> {
        match name {
            "parallel_tool_calls" if s.bool_or_skip()? == Some(true) => {
                self.need(Need::ParallelTools);
            }
            "response_format" => s.object_or_skip(|s, member| self.format(s, member))?,
            "n" if s.count_or_skip()?.is_some_and(|n| n > 1) => self.need(Need::ManyChoices),
            "logprobs" if s.bool_or_skip()? == Some(true) => self.need(Need::Logprobs),
            "top_logprobs" if s.count_or_skip()?.is_some_and(|n| n > 0) => {
                self.need(Need::Logprobs);
            }
            "reasoning_effort" if s.string_or_skip()?.is_some_and(|e| !e.is("none")) => {
                self.need(Need::Reasoning);
            }
            "modalities" => s.array_or_skip(|s| {
                if s.string_or_skip()?.is_some_and(|kind| kind.is("audio")) {
                    self.need(Need::Audio);
                }
                Ok(())
            })?,
            "web_search_options" if s.skip()? != "null" => self.need(Need::ProviderTools),
            "reasoning" if s.skip()?.starts_with('{') => self.need(Need::Reasoning),
            "parallel_tool_calls"
            | "n"
            | "logprobs"
            | "top_logprobs"
            | "reasoning_effort"
            | "web_search_options"
            | "reasoning" => {}
            _ => drop(s.skip()?),
        }
        Ok(())
    }

    fn anthropic(&mut self, name: &str, s: &mut Scanner<'_>) -> Result<(), Fault> {
        match name {
            "thinking" => s.object_or_skip(|s, member| {
                if !member.is("type") {
                    return s.skip().map(drop);
                }
                if s.string_or_skip()?.is_some_and(|kind| !kind.is("disabled")) {
                    self.need(Need::Reasoning);
                }
                Ok(())
            }),
            "output_config" => s.object_or_skip(|s, member| {
                if !member.is("format") {
                    return s.skip().map(drop);
                }
                s.object_or_skip(|s, member| self.format(s, member))
            }),
            "output_format" => s.object_or_skip(|s, member| self.format(s, member)),
            "mcp_servers" => s.array_or_skip(|s| {
                self.need(Need::ProviderTools);
                self.effects = true;
                s.skip().map(drop)
            }),
            _ => s.skip().map(drop),
        }
    }

    /// A member of the object that says which form the answer must have.
    pub(super) fn format(&mut self, s: &mut Scanner<'_>, member: Member<'_>) -> Result<(), Fault> {
        if !member.is("type") {
            return s.skip().map(drop);
        }
        match s.string_or_skip()? {
            Some(kind) if kind.is("json_schema") => self.need(Need::JsonSchema),
            Some(kind) if kind.is("json_object") => self.need(Need::JsonObject),
            _ => {}
        }
        Ok(())
    }

    fn tool(&mut self, dialect: Dialect, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut need = Need::Tools;
        s.object_or_skip(|s, member| {
            if !member.is("type") {
                return s.skip().map(drop);
            }
            let own = match dialect {
                Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::CohereV2 => "function",
                Dialect::AnthropicMessages | Dialect::Gemini | Dialect::BedrockConverse => "custom",
            };
            if let Some(kind) = s.string_or_skip()?.filter(|kind| !kind.is(own)) {
                need = Need::ProviderTools;
                self.effects |= has_effects(kind);
            }
            Ok(())
        })?;
        self.need(need);
        Ok(())
    }

    fn message(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut calls = 0;
        s.object_or_skip(|s, member| {
            if member.is("content") {
                s.array_or_skip(|s| {
                    calls += usize::from(self.part(s)?);
                    Ok(())
                })
            } else if member.is("tool_calls") {
                s.array_or_skip(|s| {
                    calls += 1;
                    s.skip().map(drop)
                })
            } else {
                s.skip().map(drop)
            }
        })?;
        if calls > 1 {
            self.need(Need::ParallelTools);
        }
        Ok(())
    }

    /// One content part or block; whether it is a tool call. The type may stand after what it
    /// describes, so what the members hold is weighed at the end.
    pub(super) fn part(&mut self, s: &mut Scanner<'_>) -> Result<bool, Fault> {
        let mut kind = None;
        let mut payload = 0;
        let mut by_url = false;
        s.object_or_skip(|s, member| match &*member.key.decode() {
            "type" => {
                kind = s.string_or_skip()?;
                Ok(())
            }
            "file_data" => {
                payload += s.skip()?.len();
                Ok(())
            }
            "image_url" if s.peek()? == Kind::String => address(s, &mut payload, &mut by_url),
            "image_url" => s.object_or_skip(|s, member| {
                if member.is("url") {
                    return address(s, &mut payload, &mut by_url);
                }
                s.skip().map(drop)
            }),
            "source" | "input_audio" | "file" => s.object_or_skip(|s, member| {
                let written = s.skip()?;
                if member.is("data") || member.is("file_data") {
                    payload += written.len();
                }
                by_url |= member.is("url");
                Ok(())
            }),
            "content" => s.array_or_skip(|s| self.part(s).map(drop)),
            _ => s.skip().map(drop),
        })?;
        self.payload_bytes += payload;
        match kind.map(|kind| kind.decode()).as_deref() {
            Some("image_url" | "image" | "input_image") if by_url => self.need(Need::ImageUrls),
            Some("image_url" | "image" | "input_image") => self.need(Need::Images),
            Some("input_audio") => self.need(Need::Audio),
            Some("file" | "input_file" | "document" | "container_upload") => self.need(Need::Files),
            Some("tool_use") => return Ok(true),
            _ => {}
        }
        Ok(false)
    }
}

/// Whether a provider-side tool leaves something behind: it calls servers of others, or runs code in
/// a place that stays. Searching does not.
fn has_effects(kind: Str<'_>) -> bool {
    ["mcp", "code_", "shell"]
        .iter()
        .any(|beginning| kind.starts_with(beginning))
}

/// An image's address: a picture carried along, or one to be fetched.
fn address(s: &mut Scanner<'_>, payload: &mut usize, by_url: &mut bool) -> Result<(), Fault> {
    if let Some(url) = s.string_or_skip()? {
        if url.starts_with("data:") {
            *payload += url.len();
        } else {
            *by_url = true;
        }
    }
    Ok(())
}
