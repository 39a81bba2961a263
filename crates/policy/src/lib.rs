//! What comes after each failure of a request.
//!
//! This crate holds the operator's plan for a name ([`Route`], [`Group`], [`Channel`],
//! [`Substitution`]), turns it into the plan of one request ([`Plan`]), and decides what follows
//! each thing that happens to it ([`Journey`]). It is where the answers of the classifier, the
//! breaker, the key pool and the backoff meet; none of them knows the others. It leaves to its
//! driver the clock, the sockets, the locks and the chance.
//!
//! The invariant: nothing is sent after meaningful output has reached the caller. The state after
//! the commit point is another variant of the machine, and no event leads from it to a send.
//!
//! | room | what it decides |
//! |---|---|
//! | [`conduct`] | gate 1: what a class of failure permits, as one table |
//! | [`phase_gate`], [`replay_gate`], [`budget_gate`] | gates 2, 3 and 4 |
//! | [`Plan`] | who may serve this request, in which order, and why others may not |
//! | [`Choice`], [`Load`], [`PeakEwma`] | the order inside a group |
//! | [`Session`] | what requests that belong together change about it |
//! | [`HookDecision`] | what code that wants a say may decide |
//! | [`Journey`] | the order of all decisions: events in, actions out |
//! | [`Sentence`] | the routing log |
//! | [`AttemptRow`] | the evidence |
//!
//! ```
//! use std::time::SystemTime;
//! use backstop_classifier::{Class, Evidence, Family, classify};
//! use backstop_policy::{Repeat, conduct};
//!
//! let answer = Evidence::response(Family::General, 401, b"{}", SystemTime::UNIX_EPOCH);
//! let revoked = classify(&answer);
//! assert_eq!(revoked.class, Class::Credential);
//! assert_eq!(conduct(&revoked).repeat, Repeat::NextKey);
//! ```

mod choice;
mod decision;
mod gates;
mod hook;
mod journey;
mod latency;
mod plan;
mod route;
mod sentence;
mod session;
mod trail;

pub use choice::Load;
pub use decision::{Conduct, Reach, Repeat, conduct};
pub use gates::{Sends, Shut, budget_gate, phase_gate, replay_gate};
pub use hook::{Aftermath, HookDecision, HookError, HookStage};
pub use journey::{Action, Cause, Ending, Event, FinalError, Journey, KeyFate, Terms};
pub use latency::PeakEwma;
pub use plan::{Ask, CallerFallback, Candidate, Excluded, Exclusion, Leg, Plan, Quota, single};
pub use route::{
    Channel, Choice, Clocks, CommitChoice, Group, HintUse, Lossy, RetryTerms, Route, RouteLimits,
    Substitution,
};
pub use sentence::{Category, Level, Sentence, recorded_status};
pub use session::{Binding, OnRefusal, Session};
pub use trail::{AttemptAction, AttemptRow, Outcome, Phase, UpstreamPhase};
