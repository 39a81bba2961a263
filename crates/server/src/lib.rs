//! The listener that turns a caller's request into a journey.
//!
//! This crate reads a caller's HTTP request within limits, has it planned, turns the crank of its
//! journey ([`backstop_policy::Journey`]) and answers in the caller's dialect. It decides nothing
//! about what follows a failure; it owns the order in which bytes, locks and clocks are touched.
//!
//! The invariant: a request is one future. Its journey, its upstream connection and its guards live
//! in it, no task is spawned for it, and dropping it (the caller hung up) settles all of them.
//!
//! ```no_run
//! # async fn example(parts: backstop_server::Parts) -> std::io::Result<()> {
//! use backstop_server::{ConnectionLimits, Gateway, serve};
//!
//! let (gateway, _reloader) = Gateway::new(parts);
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! serve(listener, gateway, ConnectionLimits::default(), std::future::pending()).await
//! # }
//! ```

mod answer;
mod array;
mod caller;
mod clock;
mod departure;
mod drive;
mod error;
mod framing;
mod gateway;
mod handle;
mod heads;
mod hook;
mod intake;
mod journal;
mod kept;
mod models;
mod outlet;
mod plan;
mod pulse;
mod request_id;
mod scrub;
mod serve;
mod stall;
mod status;
mod surface;
mod terms;
mod tls;

pub use backstop_policy::{Aftermath, HookDecision, HookError};
pub use clock::{Chance, Clock};
pub use gateway::{Gateway, Parts, Reloader};
pub use handle::handle;
pub use hook::{Hook, HookAsk, Say};
pub use outlet::AnswerBody;
pub use plan::{PlanAsk, plan_for};
pub use serve::{ConnectionLimits, serve, serve_connection, serve_over};
pub use tls::{Tls, TlsError};
