//! What a request for vectors needs.

use backstop_chat::{Encoding, Need};

use super::{BYTES_PER_TOKEN, NeedsScan};
use crate::dialect::Dialect;
use crate::scan::{Fault, Kind, Scanner};

impl NeedsScan {
    /// Walks over the value of the top-level member `name` of a request for vectors.
    pub(super) fn embedding(
        &mut self,
        dialect: Dialect,
        name: &str,
        s: &mut Scanner<'_>,
    ) -> Result<(), Fault> {
        match (dialect, name) {
            (Dialect::OpenAiChat, "input") => self.inputs(s),
            (Dialect::OpenAiChat, "encoding_format") => {
                if s.string_or_skip()?.is_some_and(|word| word.is("base64")) {
                    self.vectors.encoding = Encoding::Base64;
                }
                Ok(())
            }
            (Dialect::CohereV2, "texts") => s.array_or_skip(|s| {
                let bytes = s.skip()?.len();
                self.input(bytes);
                Ok(())
            }),
            (Dialect::CohereV2, "images") => s.array_or_skip(|s| {
                self.need(Need::Images);
                self.input(0);
                s.skip().map(drop)
            }),
            (Dialect::CohereV2, "inputs") => s.array_or_skip(|s| {
                self.input(0);
                s.object_or_skip(|s, _| s.array_or_skip(|s| self.part(s).map(drop)))
            }),
            (Dialect::Gemini, "content") => self.content(s),
            (Dialect::Gemini, "model") => self.repeated_model(s),
            (Dialect::Gemini, "requests") => {
                self.vectors.batch = true;
                s.array_or_skip(|s| {
                    s.object_or_skip(|s, member| match &*member.key.decode() {
                        "content" => self.content(s),
                        "model" => self.repeated_model(s),
                        _ => s.skip().map(drop),
                    })
                })
            }
            _ => s.skip().map(drop),
        }
    }

    /// One text, several, or the ids of the tokens of one or several.
    fn inputs(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        if s.peek()? == Kind::String {
            let bytes = s.skip()?.len();
            self.input(bytes);
            return Ok(());
        }
        let mut own_tokens = 0;
        s.array_or_skip(|s| {
            match s.peek()? {
                Kind::Number => {
                    s.skip()?;
                    own_tokens += 1;
                }
                Kind::Array => {
                    let mut tokens = 0;
                    s.array(|s| {
                        tokens += 1;
                        s.skip().map(drop)
                    })?;
                    self.tokens(tokens);
                }
                _ => {
                    let bytes = s.skip()?.len();
                    self.input(bytes);
                }
            }
            Ok::<(), Fault>(())
        })?;
        if own_tokens > 0 {
            self.tokens(own_tokens);
        }
        Ok(())
    }

    fn content(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let start = s.at();
        self.gemini_content(s)?;
        let bytes = s.at() - start;
        self.input(bytes);
        Ok(())
    }

    fn tokens(&mut self, tokens: usize) {
        self.need(Need::TokenInputs);
        self.input(tokens.saturating_mul(BYTES_PER_TOKEN));
    }

    /// One more input. Each has the window to itself, so the longest one counts.
    fn input(&mut self, bytes: usize) {
        self.prompt_bytes = self.prompt_bytes.max(bytes);
        self.vectors.inputs += 1;
        if self.vectors.inputs > 1 {
            self.need(Need::ManyInputs);
        }
    }

    /// The name of the model, where the path has said it already.
    pub(super) fn repeated_model(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        s.peek()?;
        let start = s.at();
        if s.string_or_skip()?.is_some() {
            self.repeated_models.push(start..s.at());
        }
        Ok(())
    }
}
