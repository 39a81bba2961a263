//! The six stories: what the providers do, what the caller asks, what must come out.

use std::time::Duration;

use anyhow::Result;
use backstop_faultsim::{End, Fault, Item, Script, Sim, Step};
use serde_json::json;

use super::caller::{Ask, Seen};
use super::trail::Trail;

/// The three scripted providers.
pub(crate) struct Providers {
    north: Sim,
    east: Sim,
    south: Sim,
}

/// One failure, from script to verdict.
pub(crate) struct Story {
    pub(crate) title: &'static str,
    pub(crate) plot: &'static str,
    pub(crate) ask: Ask,
    north: fn() -> Vec<Step>,
    want: Want,
    pub(crate) moral: &'static str,
}

/// What must come out.
struct Want {
    status: u16,
    outcome: &'static str,
    served_by: Option<&'static str>,
    action: Option<&'static str>,
    text: &'static str,
    /// How many attempts each provider saw in this story.
    attempts: [u64; 3],
    done: Option<bool>,
    error: bool,
}

impl Providers {
    /// Sets the stage: north does what the story says, the others are healthy.
    pub(crate) async fn start(story: &Story) -> Result<Self> {
        let bind = |steps| Sim::bind("127.0.0.1:0", Script::new().with_steps(steps));
        Ok(Self {
            north: bind((story.north)()).await?,
            east: bind(vec![answers("east", story.ask.stream)]).await?,
            south: bind(vec![answers("south", story.ask.stream)]).await?,
        })
    }

    /// The gateway's configuration: the keys are as scripted as the providers.
    pub(crate) fn config(&self) -> String {
        format!(
            r#"# Written by `cargo xtask demo`.
[server]
listen = "127.0.0.1:0"

[providers.north]
kind = "openai"
base_url = "{north}/v1"
network_config = {{ max_retries = 2, retry_backoff_initial = 150, retry_backoff_max = 600 }}
keys = [
  {{ name = "north-1", value = "demo-north-1" }},
  {{ name = "north-2", value = "demo-north-2" }},
  {{ name = "north-3", value = "demo-north-3" }},
]

[providers.east]
kind = "openai"
base_url = "{east}/v1"
keys = [{{ name = "east-1", value = "demo-east-1" }}]

[providers.south]
kind = "anthropic"
base_url = "{south}"
keys = [{{ name = "south-1", value = "demo-south-1" }}]

# One contract, two channels: the second answers when the first cannot.
[routes.chat-main]
groups = [
  {{ channels = ["north/gpt-4o"] }},
  {{ channels = ["east/gpt-4o"] }},
]

# Another model may answer here, and the caller is told.
[routes.chat-flex]
groups = [{{ channels = ["north/gpt-4o"] }}]
substitutions = [{{ channel = "south/claude-sonnet-4-5", on = ["transient", "rate_limit", "timeout"] }}]
"#,
            north = self.north.url(),
            east = self.east.url(),
            south = self.south.url(),
        )
    }

    fn attempts(&self) -> [u64; 3] {
        [&self.north, &self.east, &self.south].map(Sim::attempt_count)
    }
}

fn answers(name: &str, stream: bool) -> Step {
    if stream {
        Step::stream_text(["Hello ".to_owned(), format!("from {name}.")]).always()
    } else {
        Step::ok_text(format!("Hello from {name}.")).always()
    }
}

impl Story {
    /// What came out otherwise than it must.
    pub(crate) fn faults(&self, seen: &Seen, trail: &Trail, providers: &Providers) -> Vec<String> {
        let want = &self.want;
        let mut faults = Vec::new();
        let mut check = |what: &str, is: String, must: String| {
            if is != must {
                faults.push(format!("{what} is {is}, must be {must}"));
            }
        };
        check(
            "the status",
            seen.status.to_string(),
            want.status.to_string(),
        );
        check("the ending", trail.outcome.clone(), want.outcome.to_owned());
        check("the text", seen.text(), want.text.to_owned());
        if let Some(served_by) = want.served_by {
            let is = seen
                .header("x-backstop-provider")
                .unwrap_or_default()
                .to_owned();
            check("the provider", is, served_by.to_owned());
        }
        if let Some(action) = want.action {
            let is = seen
                .header("x-backstop-action")
                .unwrap_or_default()
                .to_owned();
            check("the action", is, action.to_owned());
        }
        if let Some(done) = want.done {
            check("[DONE]", seen.is_done().to_string(), done.to_string());
        }
        check(
            "an error",
            seen.error().is_some().to_string(),
            want.error.to_string(),
        );
        let is = format!("{:?}", providers.attempts());
        check(
            "what north, east and south saw",
            is,
            format!("{:?}", want.attempts),
        );
        faults
    }
}

/// The six stories.
pub(crate) fn stories() -> Vec<Story> {
    vec![
        revoked_key(),
        rate_limit(),
        provider_down(),
        substitution(),
        dies_before_output(),
        dies_after_output(),
    ]
}

fn revoked_key() -> Story {
    Story {
        title: "A revoked key",
        plot: "The first key that north is shown was revoked. Nobody waits for a dead key.",
        ask: Ask {
            model: "chat-main",
            stream: false,
        },
        north: || {
            vec![
                Step::fault(Fault::InvalidKey).nth(1),
                answers("north", false),
            ]
        },
        want: Want {
            status: 200,
            outcome: "success_after_retry",
            served_by: Some("north"),
            action: Some("retry"),
            text: "Hello from north.",
            attempts: [2, 0, 0],
            done: None,
            error: false,
        },
        moral: "the next key answered at once, and no retry was charged.",
    }
}

fn rate_limit() -> Story {
    Story {
        title: "A rate limit with Retry-After",
        plot: "North answers 429 and asks for 2 s on that key. Another key is fresh.",
        ask: Ask {
            model: "chat-main",
            stream: false,
        },
        north: || {
            let limited = Step::fault(Fault::RateLimited).header("retry-after", "2");
            vec![limited.nth(1), answers("north", false)]
        },
        want: Want {
            status: 200,
            outcome: "success_after_retry",
            served_by: Some("north"),
            action: Some("retry"),
            text: "Hello from north.",
            attempts: [2, 0, 0],
            done: None,
            error: false,
        },
        moral: "a fresh key waits by the formula only; the limited one is left alone.",
    }
}

fn provider_down() -> Story {
    Story {
        title: "A provider that is down",
        plot: "North answers 503, three times. East serves the same contract.",
        ask: Ask {
            model: "chat-main",
            stream: false,
        },
        north: || vec![Step::fault(Fault::Unavailable).always()],
        want: Want {
            status: 200,
            outcome: "success_after_fallback",
            served_by: Some("east"),
            action: Some("fallback"),
            text: "Hello from east.",
            attempts: [3, 1, 0],
            done: None,
            error: false,
        },
        moral: "two retries with backoff, then the other channel; the caller saw one answer.",
    }
}

fn substitution() -> Story {
    Story {
        title: "A permitted substitution",
        plot: "North is down and has no twin on this route, but the operator permits another model.",
        ask: Ask {
            model: "chat-flex",
            stream: false,
        },
        north: || vec![Step::fault(Fault::Unavailable).always()],
        want: Want {
            status: 200,
            outcome: "success_after_substitution",
            served_by: Some("south"),
            action: Some("substitution"),
            text: "Hello from south.",
            attempts: [3, 0, 1],
            done: None,
            error: false,
        },
        moral: "another model answered, in the caller's dialect, and the answer says so.",
    }
}

fn dies_before_output() -> Story {
    Story {
        title: "A stream that dies before output",
        plot: "North sends its startup events, then an error inside the 200.",
        ask: Ask {
            model: "chat-main",
            stream: true,
        },
        north: || {
            let failing = [
                role(),
                Item::data(json!({"error": {
                    "message": "The server had an error", "type": "server_error", "code": null,
                }})),
            ];
            vec![Step::sse(failing).nth(1), answers("north", true)]
        },
        want: Want {
            status: 200,
            outcome: "success_after_retry",
            served_by: Some("north"),
            action: Some("retry"),
            text: "Hello from north.",
            attempts: [2, 0, 0],
            done: Some(true),
            error: false,
        },
        moral: "what was held back was thrown away; the caller got one whole stream.",
    }
}

fn dies_after_output() -> Story {
    Story {
        title: "A stream that dies after output",
        plot: "North cuts the connection when the caller already has text. East stands by, unused.",
        ask: Ask {
            model: "chat-main",
            stream: true,
        },
        north: || {
            let pieces = [
                role(),
                text("Hello "),
                text("from").after(Duration::from_millis(50)),
            ];
            vec![Step::sse(pieces).then(End::Cut)]
        },
        want: Want {
            status: 200,
            outcome: "partial",
            served_by: Some("north"),
            action: Some("direct"),
            text: "Hello from",
            attempts: [1, 0, 0],
            done: Some(false),
            error: true,
        },
        moral: "nothing was replayed; the stream ended with an error and never looked finished.",
    }
}

fn role() -> Item {
    chunk(&json!({"role": "assistant", "content": ""}))
}

fn text(words: &str) -> Item {
    chunk(&json!({"content": words}))
}

fn chunk(delta: &serde_json::Value) -> Item {
    Item::data(json!({
        "id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    }))
}
