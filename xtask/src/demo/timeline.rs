//! The trail of a story as a small timeline.

use serde_json::Value;

/// Colours, on a terminal alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn good(&self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(&self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// One line an attempt: when it began, where it went, how it ended, how long it took.
pub(crate) fn draw(attempts: &[Value], paint: &Paint) -> Vec<String> {
    attempts.iter().map(|row| line(row, paint)).collect()
}

fn line(row: &Value, paint: &Paint) -> String {
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    let number = |name: &str| row[name].as_u64();
    let outcome = text("outcome");
    let status = number("status").map_or(String::new(), |status| format!(" HTTP {status}"));
    let ended = match outcome {
        "success" => paint.good(&format!("answered{status}")),
        "skipped" => paint.dim(&format!("skipped: {}", text("fail_reason"))),
        _ => {
            let phase = text("phase").replace('_', " ");
            paint.bad(&format!("{outcome} {phase}: {}{status}", text("class")))
        }
    };
    let key = row["key"]
        .as_str()
        .map_or(String::new(), |key| format!(" key {key}"));
    let waited = match number("waited_ms") {
        Some(waited) if waited > 0 => format!(", after a wait of {waited} ms"),
        _ => String::new(),
    };
    format!(
        "{:>6} ms  {} {:<12} {:<24}{key:<14} {ended} in {} ms{waited}",
        number("started_ms").unwrap_or_default(),
        number("attempt").map_or("-".to_owned(), |attempt| attempt.to_string()),
        text("action"),
        text("channel"),
        number("total_ms").unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn colours_go_to_terminals_alone() {
        let row = json!({"attempt": 1, "outcome": "success", "status": 200, "action": "direct",
            "channel": "north/m", "key": "k", "started_ms": 3, "total_ms": 4, "waited_ms": 0});
        let plain = draw(std::slice::from_ref(&row), &Paint::new(false)).join("");
        assert!(plain.contains("answered HTTP 200 in 4 ms") && !plain.contains('\x1b'));
        assert!(
            draw(&[row], &Paint::new(true))
                .join("")
                .contains("\x1b[32m")
        );
    }
}
