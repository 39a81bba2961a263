//! Money by the calendar.

use std::time::Duration;

use backstop_units::MicroUsd;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, tz::TimeZone};

use crate::Period;

/// Which day and month it is (UTC), and how long each still lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    day: Date,
    of_day: u64,
}

impl Calendar {
    /// The calendar at so many seconds since 1970; times beyond the year 9999 are the last there is.
    #[must_use]
    pub fn at(unix_seconds: u64) -> Self {
        let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
        let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        Self {
            day: TimeZone::UTC.to_datetime(time).date(),
            of_day: unix_seconds % 86_400,
        }
    }

    /// The first day of the period.
    fn begun(self, period: Period) -> Date {
        match period {
            Period::Day => self.day,
            Period::Month => self.day.first_of_month(),
        }
    }

    /// How long the period still lasts.
    #[must_use]
    pub fn left(self, period: Period) -> Duration {
        let days = match period {
            Period::Day => 1,
            Period::Month => {
                let next = self.day.first_of_month().checked_add(1.month());
                let next = next.unwrap_or(Date::MAX);
                next.since(self.day)
                    .map_or(1, |span| u64::try_from(span.get_days()).unwrap_or(1))
            }
        };
        Duration::from_secs((days * 86_400).saturating_sub(self.of_day))
    }
}

/// What was spent in one period, and what may yet be spent by requests in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    begun: Option<Date>,
    spent: i64,
    /// Outlives the period: a request in flight at midnight is settled on the day after.
    reserved: i64,
}

impl Account {
    /// Sets `amount` aside, if anything of the budget is left: the last request before the end may
    /// overdraw it by its own reservation, and no more than one can.
    pub(crate) fn reserve(&mut self, amount: MicroUsd) {
        self.reserved = self.reserved.saturating_add(amount.0);
    }

    /// Whether anything of `budget` is left.
    pub(crate) fn has_left(&mut self, today: Calendar, period: Period, budget: MicroUsd) -> bool {
        self.turn(today, period);
        self.spent.saturating_add(self.reserved) < budget.0
    }

    /// Books `spent` in the place of what was set aside.
    pub(crate) fn settle(
        &mut self,
        today: Calendar,
        period: Period,
        reserved: MicroUsd,
        spent: MicroUsd,
    ) {
        self.turn(today, period);
        self.reserved = self.reserved.saturating_sub(reserved.0);
        self.spent = self.spent.saturating_add(spent.0);
    }

    /// What was spent before this process began.
    pub(crate) fn restore(&mut self, today: Calendar, period: Period, spent: MicroUsd) {
        self.turn(today, period);
        self.spent = self.spent.saturating_add(spent.0);
    }

    pub(crate) fn spent(&mut self, today: Calendar, period: Period) -> MicroUsd {
        self.turn(today, period);
        MicroUsd(self.spent)
    }

    /// A new period begins with nothing spent. A clock that was set back opens no new one.
    fn turn(&mut self, today: Calendar, period: Period) {
        let begun = today.begun(period);
        if self.begun.is_none_or(|kept| kept < begun) {
            self.begun = Some(begun);
            self.spent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30T00:00:00Z.
    const NOVEMBER_30: u64 = 1_795_996_800;

    #[test]
    fn a_period_lasts_until_its_calendar_turns() {
        for (at, day, month) in [
            (NOVEMBER_30, 86_400, 86_400),
            (NOVEMBER_30 + 80_000, 6_400, 6_400),
            (NOVEMBER_30 + 86_400, 86_400, 31 * 86_400),
            // 24 February of a leap year.
            (1_834_963_200, 86_400, 86_400 * 6),
        ] {
            let calendar = Calendar::at(at);
            assert_eq!(calendar.left(Period::Day).as_secs(), day, "{calendar:?}");
            assert_eq!(
                calendar.left(Period::Month).as_secs(),
                month,
                "{calendar:?}"
            );
        }
        assert!(Calendar::at(u64::MAX).left(Period::Month) > Duration::ZERO);
    }

    #[test]
    fn what_is_in_flight_at_midnight_is_booked_on_the_day_after() {
        let mut account = Account::default();
        let (before, after) = (
            Calendar::at(NOVEMBER_30),
            Calendar::at(NOVEMBER_30 + 86_400),
        );
        assert!(account.has_left(before, Period::Day, MicroUsd(10)));
        account.reserve(MicroUsd(10));
        assert!(!account.has_left(before, Period::Day, MicroUsd(10)));
        assert!(!account.has_left(after, Period::Day, MicroUsd(10)));
        account.settle(after, Period::Day, MicroUsd(10), MicroUsd(4));
        assert_eq!(account.spent(after, Period::Day), MicroUsd(4));
        // A clock set back by a day does not hand out the budget again.
        assert_eq!(account.spent(before, Period::Day), MicroUsd(4));
    }
}
