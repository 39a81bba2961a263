//! The one spot where the server reads clocks and rolls dice.
#![allow(
    clippy::disallowed_methods,
    reason = "cores take time and chance as arguments; this is where they come from"
)]

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use backstop_units::{Moment, Roll};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

/// The process's clock. It is tokio's, so a test that pauses that one pauses this one.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment::from_elapsed(self.start.elapsed())
    }

    /// The moment as tokio's timers want it.
    #[must_use]
    pub fn instant(&self, moment: Moment) -> Instant {
        self.start
            .checked_add(moment.elapsed())
            .unwrap_or_else(|| Instant::now() + std::time::Duration::from_secs(86_400 * 365))
    }

    /// Wall time, for date headers alone.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Where rolls come from.
#[derive(Debug, Default)]
pub struct Chance {
    fixed: Option<Roll>,
    seeded: Option<Mutex<StdRng>>,
}

impl Chance {
    /// The same rolls every time, for drills and tests.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            fixed: None,
            seeded: Some(Mutex::new(StdRng::seed_from_u64(seed))),
        }
    }

    /// Always this roll, for tests: with [`Roll::LOWEST`] what is weighted is taken in its listed
    /// order. Ids stay real ones.
    #[must_use]
    pub const fn fixed(roll: Roll) -> Self {
        Self {
            fixed: Some(roll),
            seeded: None,
        }
    }

    /// The next roll.
    #[must_use]
    pub fn roll(&self) -> Roll {
        if let Some(roll) = self.fixed {
            return roll;
        }
        Roll::new(self.number(|rng| rng.random::<f64>(), || rand::rng().random::<f64>()))
            .unwrap_or(Roll::MIDDLE)
    }

    /// A number nobody can guess or meets twice, for request ids.
    #[must_use]
    pub fn id(&self) -> u128 {
        self.number(|rng| rng.random::<u128>(), || rand::rng().random::<u128>())
    }

    fn number<T>(&self, seeded: impl FnOnce(&mut StdRng) -> T, real: impl FnOnce() -> T) -> T {
        match &self.seeded {
            Some(rng) => seeded(&mut rng.lock().unwrap_or_else(PoisonError::into_inner)),
            None => real(),
        }
    }
}
