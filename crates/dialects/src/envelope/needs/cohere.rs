//! What a request in Cohere's dialect needs, beyond messages and tools.

use backstop_chat::Need;

use super::NeedsScan;
use crate::scan::{Fault, Scanner};

impl NeedsScan {
    /// Walks over the value of the top-level member `name`.
    pub(super) fn cohere(&mut self, name: &str, s: &mut Scanner<'_>) -> Result<(), Fault> {
        match name {
            "response_format" => {
                let (mut json, mut schema) = (false, false);
                s.object_or_skip(|s, member| {
                    match &*member.key.decode() {
                        "type" => {
                            json = s
                                .string_or_skip()?
                                .is_some_and(|kind| kind.is("json_object"));
                        }
                        "schema" | "json_schema" => schema |= s.skip()? != "null",
                        _ => drop(s.skip()?),
                    }
                    Ok::<(), Fault>(())
                })?;
                if json && schema {
                    self.need(Need::JsonSchema);
                } else if json {
                    self.need(Need::JsonObject);
                }
            }
            "thinking" => s.object_or_skip(|s, member| {
                if !member.is("type") {
                    return s.skip().map(drop);
                }
                if s.string_or_skip()?.is_some_and(|kind| !kind.is("disabled")) {
                    self.need(Need::Reasoning);
                }
                Ok(())
            })?,
            "logprobs" => {
                if s.bool_or_skip()? == Some(true) {
                    self.need(Need::Logprobs);
                }
            }
            "documents" => s.array_or_skip(|s| {
                self.need(Need::Files);
                s.skip().map(drop)
            })?,
            _ => drop(s.skip()?),
        }
        Ok(())
    }
}
