//! What a channel can bear: retries as a share of its requests, plus a trickle.
//!
//! The bucket is kept in whole billionths of a retry, so that ten requests at a ratio of 0.2 pay
//! for two retries exactly, on every machine and in every order.

use std::time::Duration;

use backstop_units::Moment;

use crate::Error;

/// One retry, in the unit of the bucket.
const RETRY: u64 = 1_000_000_000;

/// How much a channel's callers may retry together.
///
/// Defaults: 0.2 retries a request, 1 a second, 10 of credit. The trickle is small on purpose: a
/// floor of ten a second, usual in proxies of large fleets, doubles the calls of a gateway that
/// sees ten requests a second (our own simulation of an outage).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetParams {
    per_request: u64,
    per_second: u64,
    credit: u64,
}

impl Default for BudgetParams {
    fn default() -> Self {
        Self {
            per_request: RETRY / 5,
            per_second: RETRY,
            credit: 10 * RETRY,
        }
    }
}

impl BudgetParams {
    /// `ratio` retries for each request, `per_second` more as time passes, both saved up to
    /// `credit`, which is there from the start. Below one of `credit` nothing is ever granted.
    ///
    /// # Errors
    /// When a number is negative or not finite, `ratio` is above 100, or another above a million.
    pub fn new(ratio: f64, per_second: f64, credit: f64) -> Result<Self, Error> {
        Ok(Self {
            per_request: checked("ratio", ratio, 100.0)?,
            per_second: checked("per_second", per_second, 1e6)?,
            credit: checked("credit", credit, 1e6)?,
        })
    }

    /// Retries earned by each request.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        retries(self.per_request)
    }

    /// Retries earned by each second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        retries(self.per_second)
    }

    /// Retries there from the start, and the most that are saved up.
    #[must_use]
    pub fn credit(&self) -> f64 {
        retries(self.credit)
    }
}

/// The retries a channel may still make. One a channel; requests of all callers draw on it.
///
/// Key walks and fallbacks do not draw on it; only a retry that costs does.
#[derive(Debug, Clone)]
pub struct RetryBudget {
    params: BudgetParams,
    saved: u64,
    counted: Moment,
}

impl RetryBudget {
    /// A budget that starts with its whole credit.
    #[must_use]
    pub const fn new(params: BudgetParams, now: Moment) -> Self {
        Self {
            params,
            saved: params.credit,
            counted: now,
        }
    }

    /// A request came for this channel (once a request, not once an attempt).
    pub fn on_request(&mut self, now: Moment) {
        self.trickle(now);
        self.save(self.params.per_request);
    }

    /// Takes one retry out, if there is one.
    pub fn try_spend(&mut self, now: Moment) -> bool {
        self.trickle(now);
        let left = self.saved.checked_sub(RETRY);
        self.saved = left.unwrap_or(self.saved);
        left.is_some()
    }

    /// Puts back a retry that was taken out and never started.
    pub fn refund(&mut self) {
        self.save(RETRY);
    }

    /// The retries that could be made at `now`, fractions included.
    #[must_use]
    pub fn balance(&self, now: Moment) -> f64 {
        let saved = (self.saved + self.earned(now)).min(self.params.credit);
        retries(saved)
    }

    /// Goes on under other settings, as after a reload; what was saved stays, up to the new credit.
    pub fn set_params(&mut self, params: BudgetParams, now: Moment) {
        self.trickle(now);
        self.params = params;
        self.save(0);
    }

    /// Books the time that passed. A `now` from before the last one books nothing.
    fn trickle(&mut self, now: Moment) {
        let earned = self.earned(now);
        self.counted = self.counted.max(now);
        self.save(earned);
    }

    /// What the time since the last booking is worth, at most the credit.
    fn earned(&self, now: Moment) -> u64 {
        let passed = now.since(self.counted).as_nanos();
        let second = Duration::from_secs(1).as_nanos();
        let earned = passed.saturating_mul(u128::from(self.params.per_second)) / second;
        u64::try_from(earned).map_or(self.params.credit, |earned| earned.min(self.params.credit))
    }

    fn save(&mut self, amount: u64) {
        self.saved = (self.saved + amount).min(self.params.credit);
    }
}

/// An amount in whole retries.
fn retries(amount: u64) -> f64 {
    amount as f64 / RETRY as f64
}

/// `value` in billionths, rounded to the nearest.
#[allow(
    clippy::cast_possible_truncation,
    reason = "checked: at most 1e15, not negative"
)]
fn checked(field: &'static str, value: f64, limit: f64) -> Result<u64, Error> {
    if !(0.0..=limit).contains(&value) {
        return Err(Error::BudgetOutOfRange {
            field,
            value,
            limit,
        });
    }
    Ok((value * RETRY as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn budget(ratio: f64, per_second: f64, credit: f64) -> RetryBudget {
        let params = BudgetParams::new(ratio, per_second, credit).expect("in range");
        RetryBudget::new(params, Moment::START)
    }

    #[test]
    fn the_default_is_a_fifth_of_requests_one_a_second_and_ten_of_credit() {
        assert_eq!(
            BudgetParams::default(),
            BudgetParams::new(0.2, 1.0, 10.0).expect("in range")
        );
    }

    #[test]
    fn ten_requests_pay_for_two_retries_exactly() {
        let mut budget = budget(0.2, 0.0, 2.0);
        for _ in 0..2 {
            assert!(budget.try_spend(Moment::START));
        }
        for _ in 0..10 {
            assert!(budget.balance(Moment::START) < 2.0);
            budget.on_request(Moment::START);
        }
        assert!(budget.try_spend(Moment::START));
        assert!(budget.try_spend(Moment::START));
        assert!(!budget.try_spend(Moment::START));
    }

    #[test]
    fn time_refills_up_to_the_credit_and_never_twice() {
        let mut budget = budget(0.0, 1.0, 3.0);
        let later = Moment::from_millis(2_500);
        while budget.try_spend(Moment::START) {}
        assert!((budget.balance(later) - 2.5).abs() < 1e-9);
        assert!(budget.try_spend(later));
        assert!(budget.try_spend(later));
        assert!(
            !budget.try_spend(Moment::START),
            "an older now books nothing"
        );
        assert!(!budget.try_spend(later));
        assert!((budget.balance(Moment::from_elapsed(Duration::MAX)) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_refund_returns_the_retry_and_a_reload_keeps_what_was_saved() {
        let mut budget = budget(0.0, 0.0, 1.0);
        assert!(budget.try_spend(Moment::START));
        assert!(!budget.try_spend(Moment::START));
        budget.refund();
        budget.refund();
        assert!((budget.balance(Moment::START) - 1.0).abs() < 1e-9);
        budget.set_params(BudgetParams::default(), Moment::START);
        assert!((budget.balance(Moment::START) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn senseless_numbers_are_refused() {
        for (ratio, per_second, credit, good) in [
            (0.0, 0.0, 0.0, true),
            (100.0, 1e6, 1e6, true),
            (-0.1, 1.0, 1.0, false),
            (f64::NAN, 1.0, 1.0, false),
            (0.2, f64::INFINITY, 1.0, false),
            (0.2, 1.0, 1e7, false),
        ] {
            assert_eq!(BudgetParams::new(ratio, per_second, credit).is_ok(), good);
        }
    }

    #[derive(Debug, Clone)]
    enum Event {
        Request,
        Spend,
        Refund,
        Pass(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            3 => Just(Event::Request),
            4 => Just(Event::Spend),
            1 => Just(Event::Refund),
            2 => (0_u64..3_000).prop_map(Event::Pass),
        ]
    }

    proptest! {
        #[test]
        fn no_more_is_granted_than_was_earned(
            ratio in 0.0..2.0_f64,
            per_second in 0.0..5.0_f64,
            credit in 0.0..20.0_f64,
            events in proptest::collection::vec(event(), 0..300),
        ) {
            let mut budget = budget(ratio, per_second, credit);
            let (mut requests, mut kept, mut millis) = (0.0, 0.0, 0_u64);
            for event in events {
                let now = Moment::from_millis(millis);
                match event {
                    Event::Request => {
                        budget.on_request(now);
                        requests += 1.0;
                    }
                    Event::Spend if budget.try_spend(now) => kept += 1.0,
                    Event::Refund if kept > 0.0 => {
                        budget.refund();
                        kept -= 1.0;
                    }
                    Event::Pass(by) => millis += by,
                    Event::Spend | Event::Refund => {}
                }
                let seconds = Duration::from_millis(millis).as_secs_f64();
                let earned = ratio * requests + per_second * seconds + credit;
                prop_assert!(kept <= earned + 1e-5, "{kept} of {earned}");
                prop_assert!(budget.balance(now) <= credit + 1e-9);
            }
        }
    }
}
