//! The client that carries one attempt to a provider.
//!
//! An [`Upstream`] takes one finished request, finds or opens a connection, sends the request once
//! and hands back either the head of the answer with a body to read, or a [`Failure`] that says
//! what broke, whether the provider can have acted on the request, and whether the connection had
//! been used before. It never repeats a request and never follows a redirect: what happens after a
//! failure is decided by the policy, which asks for the next attempt. Which provider is asked and
//! how its request is built, what an answer means, and every clock after the response head except
//! the idle clock of [`Response::body_bounded`] belong to others.
//!
//! The one invariant: **dropping is cancelling.** When the future of [`Upstream::send`], or a
//! [`Response`] whose body has not ended, is dropped, an HTTP/1.1 connection is closed at once and
//! an HTTP/2 stream is reset at once; the provider is never left working for nobody.
//!
//! ```
//! use std::time::Duration;
//! use backstop_upstream::{Clocks, Options, Upstream};
//!
//! # async fn ask(request: http::Request<bytes::Bytes>) -> Result<(), Box<dyn std::error::Error>> {
//! let upstream = Upstream::new(Options::default())?;
//! let clocks = Clocks { connect: Duration::from_secs(5), headers: Duration::from_secs(60) };
//! let mut response = upstream.send(request, &clocks).await?;
//! while let Some(chunk) = response.chunk().await {
//!     println!("{} bytes", chunk?.len());
//! }
//! # Ok(())
//! # }
//! ```

mod client;
mod coding;
mod connect;
mod dial;
mod failure;
mod headers;
mod lanes;
mod options;
mod response;
mod sign;
mod token;
mod trust;

pub use client::{Clocks, Exchange, Upstream};
pub use dial::{BoxIo, Dial, Dialing, Io, TcpDial, Unresolved};
pub use failure::Failure;
pub use options::{Error, Options};
pub use response::{Collected, End, Response};
pub use sign::sign;
pub use token::{Token, Tokens};

#[cfg(test)]
mod tests;
