//! How this dialect counts: `inputTokens` excludes what was read from or written to the cache,
//! `totalTokens` includes all.

use backstop_chat::Usage;
use backstop_units::Tokens;

use crate::json::Object;
use crate::scan::{Fault, Scanner};

/// The usage object that comes next; `None` when it says nothing.
pub(super) fn scan(s: &mut Scanner<'_>) -> Result<Option<Usage>, Fault> {
    let (mut fresh, mut usage) = (None, Usage::default());
    s.object_or_skip(|s, member| {
        match &*member.key.decode() {
            "inputTokens" => fresh = s.count_or_skip()?,
            "outputTokens" => usage.output = s.count_or_skip()?.map(Tokens),
            "cacheReadInputTokens" => usage.cache_read = s.count_or_skip()?.map(Tokens),
            "cacheWriteInputTokens" => usage.cache_write = s.count_or_skip()?.map(Tokens),
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    usage.input = fresh.map(|fresh| Tokens(fresh).saturating_add(cached(&usage)));
    Ok((!usage.is_empty()).then_some(usage))
}

/// The members of a `usage` object. Clients read the three counts as numbers; unknown ones read 0.
pub(super) fn write(usage: &Usage, out: &mut Object<'_>) {
    // Cached tokens stand beside the input here, and some servers count more of them than there are.
    let all = usage.input.unwrap_or_else(|| cached(usage)).0;
    let read = usage.cache_read.map(|read| read.0.min(all));
    let rest = all - read.unwrap_or_default();
    let written = usage.cache_write.map(|written| written.0.min(rest));
    out.put("inputTokens", &(rest - written.unwrap_or_default()));
    out.put("outputTokens", &usage.output.unwrap_or_default());
    out.put("totalTokens", &usage.total().unwrap_or_default());
    out.put_some("cacheReadInputTokens", read);
    out.put_some("cacheWriteInputTokens", written);
}

fn cached(usage: &Usage) -> Tokens {
    let read = usage.cache_read.unwrap_or_default();
    read.saturating_add(usage.cache_write.unwrap_or_default())
}
