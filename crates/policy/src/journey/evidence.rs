//! Whose failure it is, when another channel failed the same way.
//!
//! A request that makes every provider fall over (a schema their parser cannot take, a prompt that
//! crashes a worker) would open the circuit of each channel it visits, and take the route away from
//! everyone else. So a failure that a provider calls its own, status 5xx, counts against the first
//! channel and key it is met on, retries there included. When the same status and code come back
//! from another channel, or from another key, it is evidence about the request: later ones are
//! settled as ignored. A provider that says it is overloaded speaks of itself, wherever it is met.
//!
//! The price is small: in an outage of several channels the later ones are counted once the first
//! one is open, since journeys then begin with them.

use backstop_breaker::Outcome as Health;
use backstop_classifier::{Code, Kind, Verdict};
use backstop_units::{ChannelId, KeyId};

/// The providers' own failures that this journey has met.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    met: Vec<Met>,
}

/// A failure, and where it was met first.
#[derive(Debug)]
struct Met {
    status: u16,
    code: Option<Code>,
    channel: ChannelId,
    key: Option<KeyId>,
}

impl Evidence {
    /// What the breaker learns of a failure that would count as `health`.
    pub(super) fn weigh(
        &mut self,
        failure: &Verdict,
        health: Health,
        channel: &ChannelId,
        key: Option<&KeyId>,
    ) -> Health {
        let own = failure.kind != Some(Kind::Overloaded) && health == Health::Failure;
        let Some(status) = failure.status.filter(|status| own && *status >= 500) else {
            return health;
        };
        let same = |met: &&Met| met.status == status && met.code == failure.code;
        match self.met.iter().find(same) {
            Some(met) if met.channel == *channel && met.key.as_ref() == key => health,
            Some(_) => Health::Ignored,
            None => {
                self.met.push(Met {
                    status,
                    code: failure.code,
                    channel: channel.clone(),
                    key: key.cloned(),
                });
                health
            }
        }
    }
}
