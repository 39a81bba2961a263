//! How this dialect counts: `input_tokens` includes cached tokens, `output_tokens` includes
//! reasoning.

use backstop_chat::Usage;
use backstop_units::Tokens;

use crate::json::Object;
use crate::scan::{Fault, Scanner};

/// The usage object that comes next; `None` for null or an object that counts nothing.
pub(super) fn scan(s: &mut Scanner<'_>) -> Result<Option<Usage>, Fault> {
    let mut usage = Usage::default();
    s.object_or_skip(|s, member| {
        match &*member.key.decode() {
            "input_tokens" => usage.input = count(s)?,
            "output_tokens" => usage.output = count(s)?,
            "input_tokens_details" => s.object_or_skip(|s, member| {
                if member.is("cached_tokens") {
                    usage.cache_read = count(s)?;
                } else if member.is("cache_write_tokens") {
                    usage.cache_write = count(s)?;
                } else {
                    s.skip()?;
                }
                Ok::<(), Fault>(())
            })?,
            "output_tokens_details" => s.object_or_skip(|s, member| {
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
    Ok((!usage.is_empty()).then_some(usage))
}

fn count(s: &mut Scanner<'_>) -> Result<Option<Tokens>, Fault> {
    Ok(s.count_or_skip()?.map(Tokens))
}

/// The members of a `usage` object. Clients need all of them; unknown counts read 0.
pub(super) fn write(usage: &Usage, out: &mut Object<'_>) {
    out.put("input_tokens", &usage.input.unwrap_or_default());
    out.object("input_tokens_details", |out| {
        out.put("cached_tokens", &usage.cache_read.unwrap_or_default());
        out.put_some("cache_write_tokens", usage.cache_write);
    });
    out.put("output_tokens", &usage.output.unwrap_or_default());
    out.object("output_tokens_details", |out| {
        out.put("reasoning_tokens", &usage.reasoning.unwrap_or_default());
    });
    out.put("total_tokens", &usage.total().unwrap_or_default());
}
