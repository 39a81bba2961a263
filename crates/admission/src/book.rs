//! What one caller has used, and what it may use yet.

use backstop_units::{MicroUsd, Moment, Tokens};

use crate::account::{Account, Calendar};
use crate::{Denied, Limits, Period, Window};

/// When something happens: by the process's own clock, and by the calendar.
#[derive(Debug, Clone, Copy)]
pub struct At {
    now: Moment,
    today: Calendar,
}

impl At {
    /// `now`, at so many seconds since 1970.
    #[must_use]
    pub fn new(now: Moment, unix_seconds: u64) -> Self {
        Self {
            now,
            today: Calendar::at(unix_seconds),
        }
    }
}

/// What a request may use at most, or what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask {
    /// Prompt and answer together.
    pub tokens: Tokens,
    /// Zero where no price is known.
    pub money: MicroUsd,
}

/// A place for one request. Given back by [`Book::settle`], exactly once: it can be neither copied
/// nor used twice.
#[derive(Debug)]
#[must_use = "an unsettled reservation is held for ever"]
pub struct Reservation {
    ask: Ask,
    made: Moment,
}

/// What a caller has used, for those who look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Requests in the last minute.
    pub requests: u64,
    /// Tokens in the last minute, reserved ones included.
    pub tokens: u64,
    /// Requests at this moment.
    pub in_flight: u32,
    /// Money spent today.
    pub day: MicroUsd,
    /// Money spent this month.
    pub month: MicroUsd,
}

/// The book of one caller. Outlives a reload: limits are an argument, not a part of it.
#[derive(Debug, Clone, Default)]
pub struct Book {
    requests: Window,
    tokens: Window,
    in_flight: u32,
    day: Account,
    month: Account,
}

impl Book {
    /// Takes a request in, if every limit has room for it. What is refused leaves no trace.
    ///
    /// # Errors
    /// Names the first limit without room, those first that no waiting helps.
    pub fn admit(&mut self, at: At, limits: &Limits, ask: Ask) -> Result<Reservation, Denied> {
        let At { now, today } = at;
        for (account, period, budget) in [
            (&mut self.month, Period::Month, limits.money_per_month),
            (&mut self.day, Period::Day, limits.money_per_day),
        ] {
            if budget.is_some_and(|budget| !account.has_left(today, period, budget)) {
                let retry_after = today.left(period);
                return Err(Denied::Money {
                    period,
                    retry_after,
                });
            }
        }
        if limits.in_flight.is_some_and(|most| self.in_flight >= most) {
            return Err(Denied::InFlight);
        }
        if let Some(limit) = limits.tokens_per_minute {
            self.tokens
                .room(now, limit.0, ask.tokens.0)
                .map_err(|retry_after| Denied::Tokens { retry_after })?;
        }
        if let Some(limit) = limits.requests_per_minute {
            self.requests
                .room(now, u64::from(limit), 1)
                .map_err(|retry_after| Denied::Requests { retry_after })?;
        }
        self.requests.add(now, 1);
        self.tokens.add(now, ask.tokens.0);
        self.in_flight += 1;
        self.day.reserve(ask.money);
        self.month.reserve(ask.money);
        Ok(Reservation { ask, made: now })
    }

    /// The request is over: `used` takes the place of what was reserved.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a reservation is used up by settling it"
    )]
    pub fn settle(&mut self, at: At, reservation: Reservation, used: Ask) {
        let At { now, today } = at;
        let Reservation { ask, made } = reservation;
        self.in_flight = self.in_flight.saturating_sub(1);
        self.tokens.replace(now, made, ask.tokens.0, used.tokens.0);
        self.day.settle(today, Period::Day, ask.money, used.money);
        self.month
            .settle(today, Period::Month, ask.money, used.money);
    }

    /// What a caller had spent before this process began, as the ledger knows.
    pub fn restore(&mut self, at: At, day: MicroUsd, month: MicroUsd) {
        self.day.restore(at.today, Period::Day, day);
        self.month.restore(at.today, Period::Month, month);
    }

    /// How the caller stands.
    pub fn standing(&mut self, at: At) -> Standing {
        Standing {
            requests: self.requests.held(at.now),
            tokens: self.tokens.held(at.now),
            in_flight: self.in_flight,
            day: self.day.spent(at.today, Period::Day),
            month: self.month.spent(at.today, Period::Month),
        }
    }
}

impl Reservation {
    /// What was reserved.
    #[must_use]
    pub const fn ask(&self) -> Ask {
        self.ask
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const NOON: u64 = 1_795_996_800 + 43_200;

    fn at(millis: u64) -> At {
        At::new(Moment::from_millis(millis), NOON + millis / 1_000)
    }

    fn ask(tokens: u64, money: i64) -> Ask {
        Ask {
            tokens: Tokens(tokens),
            money: MicroUsd(money),
        }
    }

    #[test]
    fn the_first_limit_without_room_is_named() {
        let none = Limits::default();
        for (limits, taken, want) in [
            (
                Limits {
                    requests_per_minute: Some(2),
                    ..none
                },
                2,
                Denied::Requests {
                    retry_after: Some(Duration::from_secs(61)),
                },
            ),
            (
                Limits {
                    requests_per_minute: Some(0),
                    ..none
                },
                0,
                Denied::Requests { retry_after: None },
            ),
            (
                Limits {
                    tokens_per_minute: Some(Tokens(250)),
                    ..none
                },
                2,
                Denied::Tokens {
                    retry_after: Some(Duration::from_secs(61)),
                },
            ),
            (
                Limits {
                    tokens_per_minute: Some(Tokens(99)),
                    ..none
                },
                0,
                Denied::Tokens { retry_after: None },
            ),
            (
                Limits {
                    in_flight: Some(2),
                    ..none
                },
                2,
                Denied::InFlight,
            ),
            (
                Limits {
                    money_per_day: Some(MicroUsd(11)),
                    ..none
                },
                2,
                Denied::Money {
                    period: Period::Day,
                    retry_after: Duration::from_secs(43_200),
                },
            ),
            (
                Limits {
                    money_per_day: Some(MicroUsd(11)),
                    money_per_month: Some(MicroUsd(20)),
                    ..none
                },
                2,
                Denied::Money {
                    period: Period::Month,
                    retry_after: Duration::from_secs(43_200),
                },
            ),
        ] {
            let mut book = Book::default();
            for _ in 0..taken {
                let _held = book.admit(at(0), &limits, ask(100, 10)).expect("room");
            }
            let denied = book
                .admit(at(0), &limits, ask(100, 10))
                .expect_err("none left");
            assert_eq!(denied, want);
            // What was refused left no trace.
            assert_eq!(book.standing(at(0)).in_flight, taken);
            assert_eq!(book.standing(at(0)).requests, u64::from(taken));
        }
    }

    #[test]
    fn settling_makes_room_again() {
        let limits = Limits {
            tokens_per_minute: Some(Tokens(100)),
            in_flight: Some(1),
            ..Limits::default()
        };
        let mut book = Book::default();
        let held = book.admit(at(0), &limits, ask(100, 0)).expect("room");
        book.settle(at(10), held, ask(30, 0));
        let held = book.admit(at(20), &limits, ask(70, 0)).expect("room again");
        book.settle(at(30), held, ask(0, 0));
        assert_eq!(book.standing(at(30)).tokens, 30);
    }

    #[test]
    fn what_was_spent_before_counts() {
        let limits = Limits {
            money_per_month: Some(MicroUsd(100)),
            ..Limits::default()
        };
        let mut book = Book::default();
        book.restore(at(0), MicroUsd(0), MicroUsd(100));
        assert!(book.admit(at(0), &limits, ask(1, 1)).is_err());
    }

    proptest! {
        /// Any order of requests and settlements: never more in flight than the limit, and never more
        /// money than the budget and one reservation.
        #[test]
        fn limits_hold_in_every_order(
            steps in proptest::collection::vec((0_u64..3_000, 0_usize..4, 1_i64..50), 1..120),
            most in 1_u32..5,
            budget in 1_i64..300,
        ) {
            let limits = Limits {
                in_flight: Some(most),
                money_per_day: Some(MicroUsd(budget)),
                ..Limits::default()
            };
            let mut book = Book::default();
            let mut held = Vec::new();
            let mut now = 0;
            let mut dearest = 0;
            for (step, what, money) in steps {
                now += step;
                if what == 0 && !held.is_empty() {
                    let reservation: Reservation = held.remove(0);
                    let used = reservation.ask();
                    book.settle(at(now), reservation, used);
                } else if let Ok(reservation) = book.admit(at(now), &limits, ask(1, money)) {
                    dearest = dearest.max(money);
                    held.push(reservation);
                }
                let standing = book.standing(at(now));
                prop_assert!(standing.in_flight <= most);
                prop_assert!(standing.day.0 <= budget + dearest);
            }
            let open: i64 = held.iter().map(|held| held.ask().money.0).sum();
            prop_assert!(book.standing(at(now)).day.0 + open <= budget + dearest);
        }
    }
}
