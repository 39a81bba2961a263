//! Live breakers, holds, budgets, sessions by id with the guards that settle them.
//!
//! What a running gateway remembers between requests and across reloads lives here, beside the
//! snapshot and keyed by id: one [`ChannelCell`] a channel (breaker, retry budget, counters), and
//! the holds on keys. The cores decide; this crate locks, asks, unlocks. No lock is held while
//! anyone waits, and each channel has its own, so a request takes a lock that nobody else wants.
//!
//! The one invariant: whatever is taken comes back. [`PermitGuard`], [`LeaseGuard`] and [`RetryGuard`]
//! are settled by the one who knows how the attempt ended, and by their drop when nobody does: a caller
//! who hangs up never leaves a probe's slot taken, nor a retry paid for that was not made.
//!
//! Names that callers type mint channels too. Those live in a bounded number of places, the least
//! recently used makes room, and what the configuration names is never pushed out.
//!
//! ```
//! use backstop_breaker::Outcome;
//! use backstop_state::{ChannelParams, Limits, Minted, State};
//! use backstop_units::{ChannelId, ModelName, Moment, ProviderId};
//!
//! let state = State::new(Limits::default());
//! let id = ChannelId::new(&ProviderId::new("openai"), &ModelName::new("gpt-4o"), &[]);
//! let channel = state.channel(&id, &ChannelParams::default(), Minted::ByConfig);
//! let now = Moment::START;
//! channel.on_request(now);
//! let permit = channel.permit(now).expect("a new channel is closed");
//! assert_eq!(channel.in_flight(), 1);
//! permit.settle(now, Outcome::Success);
//! assert_eq!(channel.in_flight(), 0);
//! ```

mod callers;
mod channel;
mod channels;
mod kept;
mod keys;
mod live;
mod quotas;
mod recent;
mod sessions;
mod sync;

pub use callers::AdmitGuard;
pub use channel::{
    Answering, ChannelCell, ChannelParams, ChannelView, Counts, PermitGuard, RetryGuard,
};
pub use channels::Minted;
pub use kept::Keeper;
pub use keys::LeaseGuard;
pub use live::{Limits, State};
