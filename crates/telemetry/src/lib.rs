//! What an operator sees while the gateway runs: a log and a page of metrics.
//!
//! This crate decides how evidence is written down: the form of a log line, the name, unit and
//! labels of each metric. It decides nothing about a request, and it does not know what happened
//! until a driver tells it. The one invariant: nothing a caller or a provider typed becomes a label
//! or a raw byte on a terminal. A label is either a fixed word of the code (`&'static str`) or a
//! name the operator configured; every other name becomes [`OTHER`]. Control characters in a log
//! line are written as escapes.
//!
//! ```
//! use std::time::Duration;
//! use backstop_telemetry::{Configured, Metrics, RequestEnd};
//!
//! let metrics = Metrics::new();
//! metrics.configure(&Configured { routes: &["fast"], providers: &[], channels: &[] });
//! metrics.request_ended(&RequestEnd {
//!     route: "fast", dialect: "openai-chat", operation: "generate", outcome: "success", attempts: 1,
//!     duration: Duration::from_millis(420), first_output: None,
//! });
//! assert!(metrics.render().contains(r#"route="fast"} 1"#));
//! ```

mod escape;
mod logs;
mod metrics;
mod routing;

pub use logs::{Error, Format, Options, init_logs};
pub use metrics::{
    AttemptEnd, BreakerState, Channel, Configured, InFlight, LedgerFacts, Metrics, OTHER,
    RequestEnd,
};
pub use routing::{Level, routing};
