//! A light check of a 2xx body that is passed through as it came.

use backstop_chat::Usage;

use crate::dialect::Dialect;
use crate::scan::{Fault, Kind, Scanner};
use crate::{
    anthropic_messages, bedrock_converse, cohere_v2, gemini, openai_chat, openai_responses,
};

/// What the gateway notes of an answer it passes through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerFacts {
    /// Tokens spent, when the answer says so.
    pub usage: Option<Usage>,
    /// The model as the provider reports it.
    pub model: Option<String>,
    /// What the provider keeps it under, where the dialect knows of such a thing.
    pub id: Option<String>,
    /// The body is an error although its status was not: nothing else in it counts.
    pub error_inside: bool,
}

/// A provider's 2xx body or stream event that breaks its own contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Malformed {
    /// What is wrong with it, in fixed words that are safe to log.
    pub what: &'static str,
    /// It may be right as far as it goes, but ends too early.
    pub truncated: bool,
    /// Tokens spent on it all the same, where it says so.
    pub usage: Option<Usage>,
}

impl Malformed {
    pub(crate) const fn shape(what: &'static str) -> Self {
        Self {
            what,
            truncated: false,
            usage: None,
        }
    }

    /// The same with the tokens it tells of.
    pub(crate) const fn with_usage(self, usage: Option<Usage>) -> Self {
        Self { usage, ..self }
    }
}

impl From<Fault> for Malformed {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Syntax(_) => Self::shape("not valid JSON"),
            Fault::TooDeep => Self::shape("nested too deep"),
            Fault::Ended => Self {
                what: "JSON that ends inside a value",
                truncated: true,
                usage: None,
            },
        }
    }
}

/// Checks that `body` is a JSON object in the shape of a whole answer in `dialect`. White space
/// around it is fine: some providers pad slow answers to keep the connection alive.
///
/// # Errors
///
/// The body is empty, not JSON, or not an answer.
///
/// ```
/// use backstop_dialects::{Dialect, inspect_answer};
///
/// let body = br#"{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":9}}"#;
/// let facts = inspect_answer(Dialect::OpenAiChat, body)?;
/// assert_eq!(facts.usage.and_then(|usage| usage.input).map(|tokens| tokens.0), Some(9));
/// assert!(inspect_answer(Dialect::OpenAiChat, b"<html>").is_err());
/// # Ok::<(), backstop_dialects::Malformed>(())
/// ```
pub fn inspect_answer(dialect: Dialect, body: &[u8]) -> Result<AnswerFacts, Malformed> {
    if body.trim_ascii().is_empty() {
        return Err(Malformed {
            what: "an empty body",
            truncated: true,
            usage: None,
        });
    }
    let mut scanner = Scanner::over(body)?;
    if scanner.peek()? != Kind::Object {
        scanner.skip()?;
        return Err(Malformed::shape("not a JSON object"));
    }
    let facts = match dialect {
        Dialect::OpenAiChat => openai_chat::answer::inspect(&mut scanner)?,
        Dialect::OpenAiResponses => openai_responses::answer::inspect(&mut scanner)?,
        Dialect::AnthropicMessages => anthropic_messages::answer::inspect(&mut scanner)?,
        Dialect::Gemini => gemini::answer::inspect(&mut scanner)?,
        Dialect::CohereV2 => cohere_v2::answer::inspect(&mut scanner)?,
        Dialect::BedrockConverse => bedrock_converse::answer::inspect(&mut scanner)?,
    };
    scanner.finish()?;
    Ok(facts)
}

/// Whether the value that comes next says that something went wrong: anything but null, false,
/// nothing and an empty object or string.
pub(crate) fn says_error(s: &mut Scanner<'_>) -> Result<bool, Fault> {
    let written = s.skip()?;
    Ok(!matches!(written, "null" | "false" | "\"\"" | "0") && !is_hollow(written))
}

/// Whether an object or array, as written, has nothing in it.
pub(crate) fn is_hollow(written: &str) -> bool {
    let inside = written
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .or_else(|| written.strip_prefix('[')?.strip_suffix(']'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use backstop_units::Tokens;

    #[test]
    fn what_is_not_an_answer_is_malformed() {
        for (body, what) in [
            ("", "an empty body"),
            (" \n", "an empty body"),
            ("<html>", "not valid JSON"),
            ("[]", "not a JSON object"),
            ("{\"choices\":[", "JSON that ends inside a value"),
            ("{}", "no choices"),
            (r#"{"choices":[]}"#, "no choices"),
            (r#"{"choices":null}"#, "no choices"),
            (r#"{"choices":["x"]}"#, "a choice that is not an object"),
            (
                r#"{"choices":[{"index":0}]}"#,
                "a choice with neither message nor finish_reason",
            ),
            (r#"{"choices":[{"message":{}}]} x"#, "not valid JSON"),
        ] {
            let refused = inspect_answer(Dialect::OpenAiChat, body.as_bytes()).expect_err(body);
            assert_eq!(refused.what, what, "{body}");
        }
        for (body, what) in [
            ("{}", "not a message"),
            (r#"{"type":"message"}"#, "no content"),
            (r#"{"type":"message","content":"hi"}"#, "no content"),
            (r#"{"type":"completion","content":[]}"#, "not a message"),
        ] {
            let refused =
                inspect_answer(Dialect::AnthropicMessages, body.as_bytes()).expect_err(body);
            assert_eq!(refused.what, what, "{body}");
        }
    }

    #[test]
    fn what_a_malformed_answer_cost_is_told() {
        for (dialect, body) in [
            (
                Dialect::OpenAiChat,
                r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":0}}"#,
            ),
            (
                Dialect::OpenAiChat,
                r#"{"usage":{"prompt_tokens":11},"choices":[{"index":0}]}"#,
            ),
            (
                Dialect::AnthropicMessages,
                r#"{"type":"message","usage":{"input_tokens":11}}"#,
            ),
        ] {
            let refused = inspect_answer(dialect, body.as_bytes()).expect_err(body);
            let input = refused.usage.and_then(|usage| usage.input);
            assert_eq!(input, Some(Tokens(11)), "{body}");
        }
    }

    #[test]
    fn an_error_inside_a_success_is_seen() {
        for (dialect, body, error) in [
            (Dialect::OpenAiChat, r#"{"error":{"message":"no"}}"#, true),
            (Dialect::OpenAiChat, r#"{"error":"no"}"#, true),
            (
                Dialect::OpenAiChat,
                r#"{"choices":[{"error":{"code":502},"finish_reason":"error"}]}"#,
                true,
            ),
            (
                Dialect::OpenAiChat,
                r#"{"error":null,"choices":[{"message":{"content":"x"}}]}"#,
                false,
            ),
            (
                Dialect::AnthropicMessages,
                r#"{"type":"error","error":{"type":"api_error"}}"#,
                true,
            ),
        ] {
            let facts = inspect_answer(dialect, body.as_bytes()).expect(body);
            assert_eq!(facts.error_inside, error, "{body}");
        }
    }

    #[test]
    fn padding_and_filtered_answers_are_fine() {
        let padded = "\n   \n{\"model\":\"m\",\"choices\":[{\"message\":{\"content\":\"x\"}}],\
             \"usage\":{\"prompt_tokens\":12,\"completion_tokens\":4,\
             \"prompt_tokens_details\":{\"cached_tokens\":8},\
             \"completion_tokens_details\":{\"reasoning_tokens\":3}}}\n";
        let facts = inspect_answer(Dialect::OpenAiChat, padded.as_bytes()).expect("an answer");
        assert_eq!(facts.model.as_deref(), Some("m"));
        let usage = facts.usage.expect("usage");
        assert_eq!(usage.input, Some(Tokens(12)));
        assert_eq!(usage.cache_read, Some(Tokens(8)));
        assert_eq!(usage.reasoning, Some(Tokens(3)));

        let filtered = br#"{"choices":[{"finish_reason":"content_filter","index":0}]}"#;
        assert!(inspect_answer(Dialect::OpenAiChat, filtered).is_ok());

        let refused = br#"{"type":"message","content":[],"stop_reason":"refusal","usage":
            {"input_tokens":21,"cache_read_input_tokens":1733,"cache_creation_input_tokens":0,"output_tokens":5}}"#;
        let facts = inspect_answer(Dialect::AnthropicMessages, refused).expect("an answer");
        let usage = facts.usage.expect("usage");
        assert_eq!(
            usage.input,
            Some(Tokens(1754)),
            "cached tokens are part of the input"
        );
        assert_eq!(usage.cache_read, Some(Tokens(1733)));
    }
}
