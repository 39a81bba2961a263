//! What an API account family needs on the wire: address, signature, dialect, quirks.
//!
//! A [`Provider`] is a [`Row`] of the registry with an operator's address, keys and headers. From a
//! [`Call`] it builds one request, afresh for every attempt. Sending it, choosing the key and
//! reading the answer belong to others.
//!
//! The one invariant: nothing of the caller's reaches the provider but the body it is given and the
//! few headers its [`Adapter`] names. No credential, cookie or `x-stainless-*` header can pass,
//! because headers are written from nothing.
//!
//! ```
//! use backstop_providers::{Address, Call, Provider, row};
//! use backstop_units::{ModelName, ProviderId, RequestId, Secret};
//!
//! let openai = Provider::new(ProviderId::new("openai"), row("openai").expect("a known row"))?;
//! let (model, id) = (ModelName::new("gpt-4o"), RequestId::new("req-1"));
//! let key = Secret::new("sk-example");
//! let call = Call { key: Some(&key), ..Call::new(&model, "{}".into(), &id) };
//! let request = openai.build(&call)?;
//! assert_eq!(request.uri(), "https://api.openai.com/v1/chat/completions");
//! # Ok::<(), backstop_providers::Error>(())
//! ```

mod adapter;
mod address;
mod anthropic;
mod azure;
mod bedrock;
mod call;
mod cohere;
mod credential;
mod error;
mod gemini;
mod openai;
mod provider;
mod registry;
mod segment;
mod setting;
mod token_source;
mod vertex;

pub use adapter::{Adapter, Signature, ToSign};
pub use address::Address;
pub use call::{Call, Kept};
pub use credential::{AwsKey, Credential, KeyForm};
pub use error::Error;
pub use provider::{Provider, may_be_configured};
pub use registry::{Row, row, rows};
pub use setting::{Needed, Setting, When};
pub use token_source::{Grant, TokenSource};
