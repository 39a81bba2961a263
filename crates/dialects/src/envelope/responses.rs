//! What a Responses request needs: its conversation is a list of items.

use backstop_chat::Need;
use backstop_units::Tokens;

use super::needs::NeedsScan;
use crate::scan::{Fault, Kind, Scanner};

impl NeedsScan {
    /// A top-level member that only this dialect has.
    pub(super) fn responses(&mut self, name: &str, s: &mut Scanner<'_>) -> Result<(), Fault> {
        let start = s.at();
        match name {
            "input" => {
                let mut calls = 0_u32;
                s.array_or_skip(|s| self.item(s, &mut calls))?;
                self.prompt_bytes += s.at() - start;
            }
            "instructions" => {
                s.array_or_skip(|s| self.item(s, &mut 0))?;
                self.prompt_bytes += s.at() - start;
            }
            "max_output_tokens" => {
                self.needs.answer = Tokens(s.count_or_skip()?.unwrap_or(0));
            }
            "parallel_tool_calls" if s.bool_or_skip()? == Some(true) => {
                self.need(Need::ParallelTools);
            }
            "text" => s.object_or_skip(|s, member| {
                if !member.is("format") {
                    return s.skip().map(drop);
                }
                s.object_or_skip(|s, member| self.format(s, member))
            })?,
            "reasoning" => s.object_or_skip(|s, member| {
                let said = s.skip()?;
                let asked = member.is("effort") && !matches!(said, "null" | "\"none\"");
                if asked {
                    self.need(Need::Reasoning);
                }
                Ok::<(), Fault>(())
            })?,
            "include" => s.array_or_skip(|s| {
                let name = s.string_or_skip()?;
                if name.is_some_and(|name| name.is("message.output_text.logprobs")) {
                    self.need(Need::Logprobs);
                }
                Ok::<(), Fault>(())
            })?,
            "top_logprobs" if s.count_or_skip()?.is_some_and(|n| n > 0) => {
                self.need(Need::Logprobs);
            }
            "previous_response_id" => self.goes_on(s)?,
            "conversation" if s.peek()? == Kind::Object => {
                self.need(Need::StoredState);
                s.object(|s, member| {
                    if member.is("id") {
                        return self.goes_on(s);
                    }
                    s.skip().map(drop)
                })?;
            }
            "conversation" => self.goes_on(s)?,
            "prompt" if s.skip()? != "null" => self.need(Need::StoredState),
            "background" if s.bool_or_skip()? == Some(true) => {
                self.need(Need::StoredState);
                self.effects = true;
            }
            "store" => self.stored = s.bool_or_skip()?,
            "parallel_tool_calls" | "top_logprobs" | "prompt" | "background" => {}
            _ => drop(s.skip()?),
        }
        Ok(())
    }

    /// The id of what is gone on from, unless it is null.
    fn goes_on(&mut self, s: &mut Scanner<'_>) -> Result<(), Fault> {
        if s.peek()? == Kind::Null {
            return s.skip().map(drop);
        }
        self.need(Need::StoredState);
        self.goes_on_from = s.string_or_skip()?.map(|id| id.decode().into_owned());
        Ok(())
    }

    /// One item; `calls` counts those that stand side by side.
    fn item(&mut self, s: &mut Scanner<'_>, calls: &mut u32) -> Result<(), Fault> {
        if s.peek()? != Kind::Object {
            return s.skip().map(drop);
        }
        let mut kind = None;
        s.object(|s, member| match &*member.key.decode() {
            "type" => {
                kind = s.string_or_skip()?;
                Ok(())
            }
            "content" | "output" => s.array_or_skip(|s| self.part(s).map(drop)),
            _ => s.skip().map(drop),
        })?;
        let kind = kind.map(|kind| kind.decode());
        if kind.as_deref() == Some("function_call") {
            *calls += 1;
            if *calls > 1 {
                self.need(Need::ParallelTools);
            }
            return Ok(());
        }
        match kind.as_deref() {
            None | Some("message" | "reasoning") => {}
            Some("function_call_output") => {}
            Some("item_reference") => self.need(Need::StoredState),
            Some(_) => self.need(Need::ProviderTools),
        }
        *calls = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::envelope::{Replay, read_envelope};
    use backstop_chat::Needs;

    fn needs(members: &str) -> Vec<Need> {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        let envelope = read_envelope(Dialect::OpenAiResponses, body.as_bytes());
        let needs: Needs = envelope.expect(&body).needs;
        needs.set.iter().collect()
    }

    #[test]
    fn what_a_request_needs() {
        use Need::*;
        let call = r#"{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}"#;
        let output = r#"{"type":"function_call_output","call_id":"1","output":"x"}"#;
        for (members, expected) in [
            (r#""input":"hi""#.to_owned(), vec![]),
            (r#""stream":true"#.into(), vec![Streaming]),
            (
                r#""tools":[{"type":"function","name":"f"}]"#.into(),
                vec![Tools],
            ),
            (
                r#""tools":[{"type":"web_search"}]"#.into(),
                vec![ProviderTools],
            ),
            (
                r#""tools":[{"type":"custom","name":"f"}]"#.into(),
                vec![ProviderTools],
            ),
            (
                format!(r#""input":[{call},{output},{call}]"#),
                vec![],
            ),
            (format!(r#""input":[{call},{call}]"#), vec![ParallelTools]),
            (
                r#""text":{"format":{"type":"json_schema"}}"#.into(),
                vec![JsonSchema],
            ),
            (
                r#""text":{"format":{"type":"text"},"verbosity":"low"}"#.into(),
                vec![],
            ),
            (r#""reasoning":{"effort":"low"}"#.into(), vec![Reasoning]),
            (r#""reasoning":{"effort":"none"}"#.into(), vec![]),
            (r#""reasoning":{"summary":"auto"}"#.into(), vec![]),
            (r#""top_logprobs":3"#.into(), vec![Logprobs]),
            (
                r#""include":["reasoning.encrypted_content"]"#.into(),
                vec![],
            ),
            (
                r#""include":["message.output_text.logprobs"]"#.into(),
                vec![Logprobs],
            ),
            (r#""previous_response_id":null"#.into(), vec![]),
            (
                r#""previous_response_id":"resp_1""#.into(),
                vec![StoredState],
            ),
            (r#""conversation":"conv_1""#.into(), vec![StoredState]),
            (r#""prompt":{"id":"pmpt_1"}"#.into(), vec![StoredState]),
            (r#""background":true"#.into(), vec![StoredState]),
            (r#""background":false"#.into(), vec![]),
            (
                r#""input":[{"type":"item_reference","id":"rs_1"}]"#.into(),
                vec![StoredState],
            ),
            (
                r#""input":[{"type":"web_search_call","id":"ws_1"}]"#.into(),
                vec![ProviderTools],
            ),
            (
                r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"https://a/b"}]}]"#.into(),
                vec![ImageUrls],
            ),
            (
                r#""input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA"}]}]"#.into(),
                vec![Images],
            ),
            (
                r#""input":[{"role":"user","content":[{"type":"input_file","file_data":"AA"}]}]"#.into(),
                vec![Files],
            ),
        ] {
            assert_eq!(needs(&members), expected, "{members}");
        }
    }

    #[test]
    fn what_a_request_goes_on_from() {
        for (members, expected) in [
            (r#""input":"hi""#, None),
            (r#""previous_response_id":null"#, None),
            (r#""previous_response_id":"resp_\u0031""#, Some("resp_1")),
            (r#""conversation":"conv_1""#, Some("conv_1")),
            (r#""conversation":{"x":1,"id":"conv_1"}"#, Some("conv_1")),
            (r#""conversation":null"#, None),
            (r#""prompt":{"id":"pmpt_1"}"#, None),
        ] {
            let body = format!(r#"{{"model":"m",{members}}}"#);
            let envelope = read_envelope(Dialect::OpenAiResponses, body.as_bytes()).expect(&body);
            assert_eq!(envelope.goes_on_from.as_deref(), expected, "{members}");
        }
    }

    #[test]
    fn what_may_be_sent_twice() {
        for (members, expected) in [
            ("", Replay::Keyed),
            (r#","store":true"#, Replay::Keyed),
            (r#","store":null"#, Replay::Keyed),
            (r#","store":false"#, Replay::Safe),
            (r#","store":false,"background":true"#, Replay::Unsafe),
            (
                r#","store":false,"tools":[{"type":"web_search"},{"type":"function","name":"f"}]"#,
                Replay::Safe,
            ),
            (
                r#","store":false,"tools":[{"type":"mcp","server_label":"x"}]"#,
                Replay::Unsafe,
            ),
            (
                r#","store":false,"tools":[{"type":"code_interpreter"}]"#,
                Replay::Unsafe,
            ),
        ] {
            let body = format!(r#"{{"model":"m"{members}}}"#);
            let envelope = read_envelope(Dialect::OpenAiResponses, body.as_bytes()).expect(&body);
            assert_eq!(envelope.replay, expected, "{members}");
        }
        for dialect in [Dialect::OpenAiChat, Dialect::AnthropicMessages] {
            let envelope = read_envelope(dialect, br#"{"model":"m","store":true}"#);
            assert_eq!(envelope.expect("sound").replay, Replay::Safe);
        }
        let servers = br#"{"model":"m","mcp_servers":[{"type":"url"}]}"#;
        let envelope = read_envelope(Dialect::AnthropicMessages, servers).expect("sound");
        assert_eq!(envelope.replay, Replay::Unsafe);
    }
}
