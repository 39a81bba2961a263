//! What a request in Google's dialect needs.

use backstop_chat::Need;
use backstop_units::Tokens;

use super::NeedsScan;
use crate::operation::Operation;
use crate::scan::{Fault, Scanner};

impl NeedsScan {
    /// Walks over the value of the top-level member `name`, in either spelling.
    pub(super) fn gemini(&mut self, name: &str, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let start = s.at();
        match name {
            "contents" => {
                s.array_or_skip(|s| self.gemini_content(s))?;
                self.prompt_bytes += s.at() - start;
            }
            "systemInstruction" | "system_instruction" => {
                s.skip()?;
                self.prompt_bytes += s.at() - start;
            }
            "tools" => {
                s.array_or_skip(|s| self.gemini_tool(s))?;
                self.prompt_bytes += s.at() - start;
            }
            "generationConfig" | "generation_config" => self.gemini_generation(s)?,
            "generateContentRequest" | "generate_content_request"
                if self.operation == Operation::CountTokens =>
            {
                s.object_or_skip(|s, member| self.gemini(&member.key.decode(), s))?;
            }
            "model" if self.operation != Operation::Generate => self.repeated_model(s)?,
            _ => drop(s.skip()?),
        }
        Ok(())
    }

    pub(super) fn gemini_content(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut calls = 0;
        s.object_or_skip(|s, member| {
            if member.is("parts") {
                return s.array_or_skip(|s| {
                    calls += usize::from(self.gemini_part(s)?);
                    Ok(())
                });
            }
            s.skip().map(drop)
        })?;
        if calls > 1 {
            self.need(Need::ParallelTools);
        }
        Ok(())
    }

    /// One part; whether it is a call.
    fn gemini_part(&mut self, s: &mut Scanner<'_>) -> Result<bool, Fault> {
        let mut called = false;
        s.object_or_skip(|s, member| match &*member.key.decode() {
            "functionCall" | "function_call" => {
                called = true;
                s.skip().map(drop)
            }
            "inlineData" | "inline_data" => self.gemini_media(s, false),
            "fileData" | "file_data" => self.gemini_media(s, true),
            "executableCode" | "executable_code" => {
                self.need(Need::ProviderTools);
                s.skip().map(drop)
            }
            _ => s.skip().map(drop),
        })?;
        Ok(called)
    }

    fn gemini_media(&mut self, s: &mut Scanner<'_>, by_url: bool) -> Result<(), Fault> {
        let mut need = Need::Files;
        s.object_or_skip(|s, member| match &*member.key.decode() {
            "mimeType" | "mime_type" => {
                need = match s.string_or_skip()? {
                    Some(kind) if kind.starts_with("image/") && by_url => Need::ImageUrls,
                    Some(kind) if kind.starts_with("image/") => Need::Images,
                    Some(kind) if kind.starts_with("audio/") => Need::Audio,
                    _ => Need::Files,
                };
                Ok(())
            }
            "data" => {
                self.payload_bytes += s.skip()?.len();
                Ok(())
            }
            _ => s.skip().map(drop),
        })?;
        self.need(need);
        Ok(())
    }

    fn gemini_tool(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        s.object_or_skip(|s, member| {
            let functions = member.is("functionDeclarations") || member.is("function_declarations");
            self.need(if functions {
                Need::Tools
            } else {
                Need::ProviderTools
            });
            s.skip().map(drop)
        })
    }

    fn gemini_generation(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let (mut json, mut schema) = (false, false);
        s.object_or_skip(|s, member| {
            match &*member.key.decode() {
                "maxOutputTokens" | "max_output_tokens" => {
                    let most = Tokens(s.count_or_skip()?.unwrap_or(0));
                    self.needs.answer = self.needs.answer.max(most);
                }
                "responseMimeType" | "response_mime_type" => {
                    json = s
                        .string_or_skip()?
                        .is_some_and(|kind| kind.is("application/json"));
                }
                "responseSchema"
                | "response_schema"
                | "responseJsonSchema"
                | "response_json_schema" => schema |= s.skip()? != "null",
                "candidateCount" | "candidate_count" => {
                    if s.count_or_skip()?.is_some_and(|n| n > 1) {
                        self.need(Need::ManyChoices);
                    }
                }
                "responseLogprobs" | "response_logprobs" => {
                    if s.bool_or_skip()? == Some(true) {
                        self.need(Need::Logprobs);
                    }
                }
                "responseModalities" | "response_modalities" => s.array_or_skip(|s| {
                    if s.string_or_skip()?
                        .is_some_and(|kind| kind.decode().eq_ignore_ascii_case("audio"))
                    {
                        self.need(Need::Audio);
                    }
                    Ok::<(), Fault>(())
                })?,
                "thinkingConfig" | "thinking_config" => self.gemini_thinking(s)?,
                _ => drop(s.skip()?),
            }
            Ok::<(), Fault>(())
        })?;
        if json {
            self.need(if schema {
                Need::JsonSchema
            } else {
                Need::JsonObject
            });
        }
        Ok(())
    }

    fn gemini_thinking(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut off = false;
        s.object_or_skip(|s, member| {
            let written = s.skip()?;
            off |= matches!(&*member.key.decode(), "thinkingBudget" | "thinking_budget")
                && written == "0";
            Ok::<(), Fault>(())
        })?;
        if !off {
            self.need(Need::Reasoning);
        }
        Ok(())
    }
}
