//! How this dialect counts: `prompt_tokens` includes cached tokens, `completion_tokens` includes
//! reasoning.

use backstop_chat::Usage;
use backstop_units::Tokens;

use crate::scan::{Fault, Scanner};

/// The usage object that comes next; `None` for null or an object that counts nothing.
pub(super) fn scan(s: &mut Scanner<'_>) -> Result<Option<Usage>, Fault> {
    let mut usage = Usage::default();
    let mut hits = None;
    s.object_or_skip(|s, member| {
        match &*member.key.decode() {
            "prompt_tokens" => usage.input = count(s)?,
            "completion_tokens" => usage.output = count(s)?,
            "prompt_cache_hit_tokens" => hits = count(s)?,
            "prompt_tokens_details" => s.object_or_skip(|s, member| {
                if member.is("cached_tokens") {
                    usage.cache_read = count(s)?;
                } else if member.is("cache_write_tokens") {
                    usage.cache_write = count(s)?;
                } else {
                    s.skip()?;
                }
                Ok::<(), Fault>(())
            })?,
            "completion_tokens_details" => s.object_or_skip(|s, member| {
                if member.is("reasoning_tokens") {
                    usage.reasoning = count(s)?;
                } else {
                    s.skip()?;
                }
                Ok::<(), Fault>(())
            })?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    // DeepSeek's own spelling, for answers that lack the details.
    usage.cache_read = usage.cache_read.or(hits);
    Ok((!usage.is_empty()).then_some(usage))
}

fn count(s: &mut Scanner<'_>) -> Result<Option<Tokens>, Fault> {
    Ok(s.count_or_skip()?.map(Tokens))
}
