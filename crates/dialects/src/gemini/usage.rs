//! How this dialect counts: `promptTokenCount` includes cached tokens but not what tools added,
//! `candidatesTokenCount` excludes thoughts. Any count may be missing.

use backstop_chat::Usage;
use backstop_units::Tokens;

use crate::json::Object;
use crate::scan::{Fault, Scanner};

/// The usage object that comes next; `None` for null or an object that counts nothing.
pub(super) fn scan(s: &mut Scanner<'_>) -> Result<Option<Usage>, Fault> {
    let mut usage = Usage::default();
    let (mut by_tools, mut said) = (None, None);
    s.object_or_skip(|s, member| {
        match &*member.key.decode() {
            "promptTokenCount" => usage.input = count(s)?,
            "toolUsePromptTokenCount" => by_tools = count(s)?,
            "cachedContentTokenCount" => usage.cache_read = count(s)?,
            "candidatesTokenCount" => said = count(s)?,
            "thoughtsTokenCount" => usage.reasoning = count(s)?,
            _ => drop(s.skip()?),
        }
        Ok::<(), Fault>(())
    })?;
    usage.input = sum(usage.input, by_tools);
    usage.output = sum(said, usage.reasoning);
    Ok((!usage.is_empty()).then_some(usage))
}

fn count(s: &mut Scanner<'_>) -> Result<Option<Tokens>, Fault> {
    Ok(s.count_or_skip()?.map(Tokens))
}

fn sum(one: Option<Tokens>, other: Option<Tokens>) -> Option<Tokens> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// The members of a `usageMetadata` object.
pub(super) fn write(usage: &Usage, out: &mut Object<'_>) {
    out.put_some("promptTokenCount", usage.input);
    out.put_some("cachedContentTokenCount", usage.cache_read);
    let said = usage.output.map(|output| {
        let thought = usage.reasoning.unwrap_or_default();
        Tokens(output.0.saturating_sub(thought.0))
    });
    out.put_some("candidatesTokenCount", said);
    out.put_some("thoughtsTokenCount", usage.reasoning);
    out.put_some("totalTokenCount", usage.total());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_and_tools_are_added_and_nothing_is_made_up() {
        let full = r#"{"promptTokenCount":11,"candidatesTokenCount":703,"thoughtsTokenCount":713,
            "totalTokenCount":1427,"cachedContentTokenCount":4,"promptTokensDetails":[{}]}"#;
        let usage = scan(&mut Scanner::new(full))
            .expect("JSON")
            .expect("counts");
        assert_eq!(usage.total(), Some(Tokens(1427)));
        assert_eq!(usage.output, Some(Tokens(1416)));
        assert_eq!(
            (usage.cache_read, usage.reasoning),
            (Some(Tokens(4)), Some(Tokens(713)))
        );
        let tools = r#"{"promptTokenCount":5,"toolUsePromptTokenCount":7}"#;
        let usage = scan(&mut Scanner::new(tools))
            .expect("JSON")
            .expect("counts");
        assert_eq!((usage.input, usage.output), (Some(Tokens(12)), None));
        for nothing in [r#"{"trafficType":"ON_DEMAND"}"#, "null", "{}"] {
            assert_eq!(scan(&mut Scanner::new(nothing)), Ok(None), "{nothing}");
        }
    }
}
