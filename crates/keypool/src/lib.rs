//! Which key serves the next attempt.
//!
//! A [`Pool`] is what the operator configured. A [`Walk`] is what one request has learned about it:
//! which keys are *dead* (refused for good, never asked again by this request) and which are *used*
//! (rate limited, asked again once every living key was). [`Holds`] is what all requests have
//! learned together: which keys are held out for a while, and which one request may go and see
//! whether a refused key has come back.
//!
//! The crate leaves to others what a refusal looks like on the wire, how long to wait, and what a
//! request does when a pool is spent.
//!
//! The one invariant: a walk never returns a dead key, and never loses the last living one. Holding
//! out chooses between alternatives; where there is none, [`NoKey::Held`] names the key held for the
//! shortest time, for the caller to take after all.
//!
//! ```
//! use backstop_keypool::{Ask, Holds, Key, ModelList, Pool, Refusal, Permanent, Walk};
//! use backstop_units::{KeyId, ModelName, Moment, ProviderId, Roll};
//!
//! let provider = ProviderId::new("openai");
//! let key = |name| Key::new(KeyId::new(&provider, name), 1.0, ModelList::Any).expect("in range");
//! let pool = Pool::new(vec![key("a"), key("b")]).expect("two names");
//! let model = ModelName::new("gpt-4o");
//! let (mut walk, holds) = (Walk::new(None), Holds::default());
//! let ask = Ask { pool: &pool, model: &model, subset: None, now: Moment::START };
//! let first = walk.choose(&ask, &holds, Roll::LOWEST).expect("free").key.expect("has keys");
//! walk.refuse(&first, Refusal::Permanent(Permanent::Credential), None, Moment::START);
//! let next = walk.choose(&ask, &holds, Roll::LOWEST).expect("one left").key.expect("has keys");
//! assert_eq!((first.name(), next.name(), walk.granted()), ("a", "b", 1));
//! ```

mod error;
mod holds;
mod pool;
mod refusal;
mod walk;

pub use error::Error;
pub use holds::{Held, HoldParams, Holds, Lease, Row, Why};
pub use pool::{Key, ModelList, Pool};
pub use refusal::{Permanent, Refusal};
pub use walk::{Ask, Choice, Death, NoKey, Outlook, Walk};
