//! How this dialect counts: `tokens.input_tokens` is what the model read, cached tokens and its own
//! preamble included; `billed_units` is what costs, and is never taken for it.

use backstop_chat::Usage;
use backstop_units::Tokens;

use crate::json::Object;
use crate::scan::{Fault, Scanner};

/// The usage object that comes next; `None` for null or an object that counts nothing.
pub(super) fn scan(s: &mut Scanner<'_>) -> Result<Option<Usage>, Fault> {
    let mut usage = Usage::default();
    s.object_or_skip(|s, member| {
        match &*member.key.decode() {
            "tokens" => s.object_or_skip(|s, member| {
                match &*member.key.decode() {
                    "input_tokens" => usage.input = count(s)?,
                    "output_tokens" => usage.output = count(s)?,
                    "reasoning_tokens" => usage.reasoning = count(s)?,
                    _ => drop(s.skip()?),
                }
                Ok::<(), Fault>(())
            })?,
            "cached_tokens" => usage.cache_read = count(s)?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    Ok((!usage.is_empty()).then_some(usage))
}

/// A whole number; some versions write it with a fraction of zero.
fn count(s: &mut Scanner<'_>) -> Result<Option<Tokens>, Fault> {
    let written = s.skip()?;
    let whole = written.strip_suffix(".0").unwrap_or(written);
    Ok(whole.parse().ok().map(Tokens))
}

/// The members of a `usage` object.
pub(super) fn write(usage: &Usage, out: &mut Object<'_>) {
    out.object("tokens", |out| {
        out.put_some("input_tokens", usage.input);
        out.put_some("output_tokens", usage.output);
        out.put_some("reasoning_tokens", usage.reasoning);
    });
    out.put_some("cached_tokens", usage.cache_read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_billed_is_not_what_was_read() {
        let wire = r#"{"billed_units":{"input_tokens":8,"output_tokens":8},
            "tokens":{"input_tokens":503.0,"output_tokens":11},"cached_tokens":448}"#;
        let usage = scan(&mut Scanner::new(wire))
            .expect("JSON")
            .expect("counts");
        assert_eq!(usage.input, Some(Tokens(503)));
        assert_eq!(usage.output, Some(Tokens(11)));
        assert_eq!(usage.cache_read, Some(Tokens(448)));
        assert_eq!(
            scan(&mut Scanner::new(r#"{"billed_units":{"input_tokens":8}}"#)),
            Ok(None)
        );
    }
}
