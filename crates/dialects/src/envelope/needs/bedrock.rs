//! What a request in Bedrock's dialect needs.

use backstop_chat::Need;
use backstop_units::Tokens;

use super::NeedsScan;
use crate::scan::{Fault, Scanner};

impl NeedsScan {
    /// Walks over the value of the top-level member `name`.
    pub(super) fn bedrock(&mut self, name: &str, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let start = s.at();
        match name {
            "messages" => {
                s.array_or_skip(|s| self.bedrock_message(s))?;
                self.prompt_bytes += s.at() - start;
            }
            "system" => {
                s.skip()?;
                self.prompt_bytes += s.at() - start;
            }
            "toolConfig" => {
                s.object_or_skip(|s, member| {
                    if !member.is("tools") {
                        return s.skip().map(drop);
                    }
                    s.array_or_skip(|s| self.bedrock_tool(s))
                })?;
                self.prompt_bytes += s.at() - start;
            }
            "inferenceConfig" => s.object_or_skip(|s, member| {
                if member.is("maxTokens") {
                    let most = Tokens(s.count_or_skip()?.unwrap_or(0));
                    self.needs.answer = self.needs.answer.max(most);
                    return Ok(());
                }
                s.skip().map(drop)
            })?,
            "outputConfig" => s.object_or_skip(|s, member| {
                if member.is("textFormat") && s.skip()?.starts_with('{') {
                    self.need(Need::JsonSchema);
                    return Ok(());
                }
                if member.is("textFormat") {
                    return Ok(());
                }
                s.skip().map(drop)
            })?,
            "additionalModelRequestFields" => s.object_or_skip(|s, member| {
                let asks = matches!(
                    &*member.key.decode(),
                    "thinking" | "reasoning_config" | "reasoningConfig" | "reasoning_effort"
                );
                let written = s.skip()?;
                if asks && written != "null" && !written.contains("\"disabled\"") {
                    self.need(Need::Reasoning);
                }
                Ok::<(), Fault>(())
            })?,
            _ => drop(s.skip()?),
        }
        Ok(())
    }

    fn bedrock_message(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut calls = 0;
        s.object_or_skip(|s, member| {
            if !member.is("content") {
                return s.skip().map(drop);
            }
            s.array_or_skip(|s| {
                calls += usize::from(self.bedrock_block(s)?);
                Ok(())
            })
        })?;
        if calls > 1 {
            self.need(Need::ParallelTools);
        }
        Ok(())
    }

    /// One block; whether it is a call.
    fn bedrock_block(&mut self, s: &mut Scanner<'_>) -> Result<bool, Fault> {
        let mut called = false;
        s.object_or_skip(|s, member| {
            let need = match &*member.key.decode() {
                "image" => Need::Images,
                "document" | "video" => Need::Files,
                "audio" => Need::Audio,
                "toolResult" => {
                    return s.object_or_skip(|s, member| {
                        if !member.is("content") {
                            return s.skip().map(drop);
                        }
                        s.array_or_skip(|s| self.bedrock_block(s).map(drop))
                    });
                }
                name => {
                    called |= name == "toolUse";
                    return s.skip().map(drop);
                }
            };
            self.need(need);
            self.payload_bytes += s.skip()?.len();
            Ok(())
        })?;
        Ok(called)
    }

    /// One tool, or a mark for the cache among them.
    fn bedrock_tool(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        s.object_or_skip(|s, member| {
            match &*member.key.decode() {
                "toolSpec" => self.need(Need::Tools),
                "cachePoint" => {}
                _ => self.need(Need::ProviderTools),
            }
            s.skip().map(drop)
        })
    }
}
