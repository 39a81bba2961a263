//! The marks that scripted text may hold: `{{n}}`, `{{pad:4000}}`, `{{model}}`, `{{key}}`, with
//! spaces inside the braces or without.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What the marks stand for in one place of one answer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fill<'a> {
    /// `{{n}}`: the count of a repeated item, from 0.
    pub(crate) n: u32,
    /// `{{model}}`: the model asked for.
    pub(crate) model: &'a str,
    /// `{{key}}`: the presented secret, for providers that echo it.
    pub(crate) key: &'a str,
}

impl Fill<'_> {
    /// `text` with its marks filled in. Unknown marks stay as they are. With `json`, values are
    /// escaped to stand inside a JSON string.
    pub(crate) fn apply<'t>(&self, text: &'t str, json: bool) -> Cow<'t, str> {
        if !text.contains("{{") {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            out.push_str(&rest[..open]);
            rest = &rest[open..];
            let taken = rest
                .find("}}")
                .filter(|close| self.put(&rest[2..*close], json, &mut out));
            if let Some(close) = taken {
                rest = &rest[close + 2..];
            } else {
                out.push('{');
                rest = &rest[1..];
            }
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    fn put(&self, mark: &str, json: bool, out: &mut String) -> bool {
        match mark.trim() {
            "n" => {
                let _ = write!(out, "{}", self.n);
            }
            "model" => put_text(self.model, json, out),
            "key" => put_text(self.key, json, out),
            _ => {
                let Some(count) = mark
                    .trim()
                    .strip_prefix("pad:")
                    .and_then(|n| n.parse().ok())
                else {
                    return false;
                };
                out.extend(std::iter::repeat_n('x', count));
            }
        }
        true
    }
}

fn put_text(text: &str, json: bool, out: &mut String) {
    if json {
        let quoted = serde_json::Value::from(text).to_string();
        out.push_str(&quoted[1..quoted.len() - 1]);
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_filled_in() {
        let fill = Fill {
            n: 7,
            model: "m\"1",
            key: "sk",
        };
        let rows = [
            ("plain", false, "plain"),
            ("w{{n}} ", false, "w7 "),
            ("w{{ n }} {{ pad:2 }}", false, "w7 xx"),
            ("{{pad:3}}|{{n}}{{n}}", false, "xxx|77"),
            ("{\"m\":\"{{model}}\"}", true, "{\"m\":\"m\\\"1\"}"),
            ("{{model}}", false, "m\"1"),
            ("{{key}}", false, "sk"),
            ("{{what}} {{n", false, "{{what}} {{n"),
            ("{{{n}}}", false, "{7}"),
            ("{\"a\":{\"b\":{{n}}}}", true, "{\"a\":{\"b\":7}}"),
            ("{{pad:x}}", false, "{{pad:x}}"),
        ];
        for (text, json, want) in rows {
            assert_eq!(fill.apply(text, json), want, "{text}");
        }
    }
}
