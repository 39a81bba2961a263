//! A scripted provider over real HTTP, for tests, demo and drills.
//!
//! It speaks the OpenAI and Anthropic dialects, streaming or not, and does on purpose what
//! providers do by accident: refuses keys, runs into limits, cuts streams, resets connections,
//! falls silent. A [`Script`] says per attempt what happens; without one it is in good health.
//! It writes down every attempt, so that a test can ask what the provider saw and when the
//! connection was closed.
//!
//! It decides nothing about how a gateway should react, and it is HTTP/1.1 by hand, because a
//! proper library would not let it misbehave. HTTP/2 and TLS are by the libraries, up to where they
//! fail: a [`Door`] says how connections begin, and whether they do.
//!
//! The invariant: an attempt takes the first step that is not used up and whose conditions it
//! meets; one that finds none is answered 599 and recorded as unexpected.
//!
//! ```
//! use backstop_faultsim::{End, Fault, Script, Sim, Step};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let script = Script::new().step(Step::fault(Fault::RateLimited).header("retry-after", "3"));
//! let sim = Sim::new(script.step(Step::stream_text(["Hel", "lo"]).then(End::Cut)));
//! let mut caller = sim.connect();
//! caller.write_all(b"POST /v1/messages HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
//! let mut answer = String::new();
//! caller.read_to_string(&mut answer).await.unwrap();
//! assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"));
//! assert_eq!(sim.attempts()[0].path(), "/v1/messages");
//! # });
//! ```

// The script: what happens.
mod fault;
mod script;

// Choosing and making an answer.
mod answer;
mod asked;
mod completion;
mod encode;
mod healthy;
mod playbook;

// Serving it.
mod conn;
mod door;
mod h2;
mod play;
mod receive;
mod sim;
mod wire;

// What is written down.
mod attempt;
mod desk;
mod log;

mod error;

pub use asked::Dialect;
pub use attempt::{Attempt, Ending, Progress};
pub use conn::{CloseKind, PeerClose};
pub use door::Door;
pub use error::Error;
pub use fault::Fault;
pub use log::{Event, Observer};
pub use receive::Broken;
pub use script::{
    Coding, Count, Damage, End, Frame, Item, On, Otherwise, Pace, Repeat, Script, Step, When,
};
pub use sim::{Deviation, Sim};
pub use wire::Wire;
