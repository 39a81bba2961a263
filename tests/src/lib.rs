//! A whole gateway for tests: the real server on a real socket, before providers that fail on
//! request.
//!
//! [`TestGateway`] starts the server from the text of a configuration, as an operator would write
//! it, and keeps it in the test's own runtime. [`Call`] is a client that does what SDKs do not:
//! it hangs up, sends what is no HTTP, and shows every byte of an answer. What the providers saw
//! is asked of `backstop_faultsim`. [`scenario`] plays whole stories from data.
//!
//! The one invariant: no test waits for time to pass. It waits for something to have happened, and
//! fails by name when that does not come ([`soon`], [`until`]).
//!
//! ```
//! use backstop_faultsim::{Script, Sim};
//! use backstop_tests::TestGateway;
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let openai = Sim::bind("127.0.0.1:0", Script::healthy()).await.unwrap();
//! let config = r#"
//!     [providers.openai]
//!     base_url = "env.OPENAI_URL"
//!     keys = ["env.OPENAI_KEY_1"]
//! "#;
//! let gateway = TestGateway::start(config, &[("openai", &openai)]).await;
//! let answer = gateway.chat(json!({"model": "openai/gpt-4o", "messages": []})).await;
//! assert_eq!(answer.status, 200);
//! # });
//! ```

mod client;
pub mod compat;
mod gateway;
mod page;
mod patience;
mod public;
mod recording;
pub mod scenario;
pub mod soak;
mod sources;
mod sse;
pub mod surface;
mod upstream;

pub use client::{Answer, Call, Live, Peer};
pub use gateway::TestGateway;
pub use page::Page;
pub use patience::{soon, until};
pub use public::public;
pub use recording::{Recording, recordings};
pub use sources::{CANARY, private_key, secret};
pub use sse::{Event, events};
pub use upstream::UpstreamDialect;
