//! Choice inside a group: the order in which one request tries channels of the same contract.
//!
//! | choice | who comes first |
//! |---|---|
//! | `priority` | the lowest priority; equals by weight |
//! | `weighted` | by weight |
//! | `least_latency` | of two drawn by weight, the one with the shorter expected wait |
//! | `least_busy` | the fewest attempts in flight; equals by weight |
//!
//! The expected wait is the channel's recent one ([`PeakEwma`](crate::PeakEwma)) times the attempts
//! that it would have in flight. Drawing two and taking the better one, instead of the best of all,
//! keeps requests that decide at the same moment from all running to the same channel. A channel of
//! which nothing is known yet counts as the middle one of its group: it is neither flooded as if it
//! were fast nor left waiting for a first chance.
//!
//! A session's channel comes before all its equals, whatever the choice among them.

use std::sync::Arc;
use std::time::Duration;

use backstop_units::Roll;

use crate::plan::Ask;
use crate::route::{Channel, Choice, Group};

/// What is going on at a channel, when a request is planned. The default is a channel that nobody
/// has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Attempts that are out.
    pub in_flight: u32,
    /// The wait to expect for a request of this kind; `None` as long as nothing is known.
    pub latency: Option<Duration>,
}

/// The channels of a group in the order this request tries them, drained ones last: they take no
/// part in chance. One roll orders all others: what is left of it after a choice is again uniform,
/// and serves the next.
pub(crate) fn ordered(group: &Group, ask: &Ask<'_>, roll: &mut Roll) -> Vec<Arc<Channel>> {
    let (left, drained): (Vec<&Arc<Channel>>, Vec<_>) = group
        .channels
        .iter()
        .partition(|channel| channel.weight > 0.0);
    let mut line = Line::new(group.choice, left, ask);
    let mut order = Vec::with_capacity(group.channels.len());
    while !line.left.is_empty() {
        let chosen = line.next(ask, roll);
        order.push(Arc::clone(line.left.remove(chosen).channel));
    }
    order.extend(drained.into_iter().cloned());
    order
}

/// The channels that are still to be placed.
struct Line<'a> {
    choice: Choice,
    left: Vec<Waiting<'a>>,
    /// The wait, in seconds, of a channel that nothing is known of.
    middle: f64,
}

struct Waiting<'a> {
    channel: &'a Arc<Channel>,
    load: Load,
}

impl<'a> Line<'a> {
    fn new(choice: Choice, channels: Vec<&'a Arc<Channel>>, ask: &Ask<'_>) -> Self {
        let alone = channels.len() < 2;
        let load = |channel: &Channel| match choice {
            Choice::LeastLatency | Choice::LeastBusy if !alone => (ask.load)(channel),
            _ => Load::default(),
        };
        let left: Vec<Waiting<'_>> = channels
            .into_iter()
            .map(|channel| Waiting {
                channel,
                load: load(channel),
            })
            .collect();
        let known = left.iter().filter_map(|one| one.load.latency);
        let middle = median(known.collect());
        Self {
            choice,
            left,
            middle,
        }
    }

    /// The place of the channel that comes next.
    fn next(&self, ask: &Ask<'_>, roll: &mut Roll) -> usize {
        let mut equals = self.equals();
        if let Some(bound) = self.bound(&equals, ask) {
            return bound;
        }
        let first = self.draw(&equals, roll);
        if self.choice != Choice::LeastLatency || equals.len() < 2 {
            return first;
        }
        equals.retain(|place| *place != first);
        let second = self.draw(&equals, roll);
        if self.wait(second) < self.wait(first) {
            second
        } else {
            first
        }
    }

    /// The places among which chance decides.
    fn equals(&self) -> Vec<usize> {
        let rank = |one: &Waiting<'_>| match self.choice {
            Choice::Priority => one.channel.priority,
            Choice::LeastBusy => one.load.in_flight,
            Choice::Weighted | Choice::LeastLatency => 0,
        };
        let first = self.left.iter().map(rank).min().unwrap_or(0);
        let places = 0..self.left.len();
        places
            .filter(|place| rank(&self.left[*place]) == first)
            .collect()
    }

    /// The place of the session's channel, if it may come now. Load is not an order of the
    /// operator's, so a busier channel is no reason to leave.
    fn bound(&self, equals: &[usize], ask: &Ask<'_>) -> Option<usize> {
        let all: Vec<usize>;
        let among = match self.choice {
            Choice::LeastBusy => {
                all = (0..self.left.len()).collect();
                &all
            }
            _ => equals,
        };
        ask.session.iter().find_map(|binding| {
            let mut places = among.iter().copied();
            places.find(|place| self.left[*place].channel.id == binding.channel)
        })
    }

    fn draw(&self, places: &[usize], roll: &mut Roll) -> usize {
        pick(places, |place| self.left[place].channel.weight, roll)
    }

    /// The wait to expect at a place, in seconds.
    fn wait(&self, place: usize) -> f64 {
        let load = self.left[place].load;
        let wait = load
            .latency
            .map_or(self.middle, |known| known.as_secs_f64());
        wait * (f64::from(load.in_flight) + 1.0)
    }
}

/// The middle of what is known; with nothing known any number does, since all are then equal.
fn median(mut known: Vec<Duration>) -> f64 {
    known.sort_unstable();
    let middle = known.len() / 2;
    match known.len() {
        0 => 1.0,
        odd if odd % 2 == 1 => known[middle].as_secs_f64(),
        _ => (known[middle - 1] + known[middle]).as_secs_f64() / 2.0,
    }
}

/// Picks one of `places` by weight, and leaves in `roll` what the choice did not use of it.
fn pick(places: &[usize], weight: impl Fn(usize) -> f64, roll: &mut Roll) -> usize {
    let total: f64 = places.iter().map(|place| weight(*place)).sum();
    let mut at = roll.fraction() * total;
    for place in places {
        let share = weight(*place);
        if at < share {
            *roll = Roll::new(at / share).unwrap_or(Roll::LOWEST);
            return *place;
        }
        at -= share;
    }
    *roll = Roll::LOWEST;
    places.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
