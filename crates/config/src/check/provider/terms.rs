//! `network_config`, `timeouts` and `breaker` of a provider: what its channels begin with.

use std::time::Duration;

use backstop_backoff::{Backoff, BudgetParams, Jitter};
use backstop_breaker::{OpenTime, Params, RatioRule};
use backstop_policy::{Clocks, HintUse, RetryTerms};

use crate::check::Check;
use crate::fault::Problem;
use crate::path::FieldPath;
use crate::raw::{
    Millis, RawBreaker, RawBudget, RawHint, RawJitter, RawNetwork, RawTimeouts, Span,
};

/// More retries than this on one channel are a mistake; a route's `max_attempts` ends a request far
/// earlier.
pub(in crate::check) const MOST_RETRIES: u64 = 100;

impl Check<'_> {
    pub(super) fn retry(&mut self, at: &FieldPath, raw: Option<&RawNetwork>) -> RetryTerms {
        let default = RawNetwork::default();
        let raw = raw.unwrap_or(&default);
        RetryTerms {
            max_retries: self.max_retries(&at.field("max_retries"), raw.max_retries, 0),
            backoff: self.backoff(at, raw),
            budget: self.budget(&at.field("retry_budget"), raw.retry_budget.as_ref()),
            hint: match raw.retry_hint {
                Some(RawHint::Record) => HintUse::Record,
                Some(RawHint::Honour) | None => HintUse::Honour,
            },
        }
    }

    pub(in crate::check) fn max_retries(
        &mut self,
        at: &FieldPath,
        typed: Option<u32>,
        base: u32,
    ) -> u32 {
        let number = self.count(at, typed.map(u64::from), u64::from(base), (0, MOST_RETRIES));
        u32::try_from(number).expect("either a u32 as typed or the u32 it defaults to")
    }

    fn backoff(&mut self, at: &FieldPath, raw: &RawNetwork) -> Backoff {
        let initial = raw.retry_backoff_initial.map(|Span(wait)| wait);
        let max = raw.retry_backoff_max.map(|Span(wait)| wait);
        let jitter = match raw.jitter {
            Some(RawJitter::Full) => Jitter::Full,
            Some(RawJitter::Proportional) | None => Jitter::Proportional,
        };
        // Whichever of the two is not typed gives way to the one that is.
        let (shortest, longest) = (Duration::from_millis(500), Duration::from_secs(5));
        let (initial, max) = match (initial, max) {
            (Some(initial), Some(max)) => (initial, max),
            (Some(initial), None) => (initial, longest.max(initial)),
            (None, Some(max)) => (shortest.min(max), max),
            (None, None) => (shortest, longest),
        };
        let backoff = Backoff::new(initial, max, jitter).map_err(Problem::Backoff);
        let field = match &backoff {
            Err(Problem::Backoff(backstop_backoff::Error::InitialAboveMax { .. })) => {
                "retry_backoff_initial"
            }
            _ if raw.retry_backoff_max.is_some() => "retry_backoff_max",
            _ => "retry_backoff_initial",
        };
        self.take(&at.field(field), backoff).unwrap_or_default()
    }

    fn budget(&mut self, at: &FieldPath, raw: Option<&RawBudget>) -> BudgetParams {
        let Some(raw) = raw else {
            return BudgetParams::default();
        };
        let budget = BudgetParams::new(
            raw.ratio.unwrap_or(0.2),
            raw.per_second.unwrap_or(1.0),
            raw.credit.unwrap_or(10.0),
        );
        let at = match &budget {
            Err(backstop_backoff::Error::BudgetOutOfRange { field, .. }) => at.field(field),
            _ => at.clone(),
        };
        self.take(&at, budget.map_err(Problem::Backoff))
            .unwrap_or_default()
    }

    pub(super) fn clocks(&mut self, at: &FieldPath, raw: Option<&RawTimeouts>) -> Clocks {
        let default = Clocks::default();
        let Some(raw) = raw else { return default };
        let mut clock = |name, typed: Option<Millis>, default| {
            let bounds = (Duration::from_millis(1), Duration::from_secs(24 * 60 * 60));
            self.duration(&at.field(name), typed, default, bounds)
        };
        Clocks {
            connect: clock("connect_ms", raw.connect_ms, default.connect),
            headers: clock("headers_ms", raw.headers_ms, default.headers),
            first_output: clock("first_output_ms", raw.first_output_ms, default.first_output),
            idle: clock("idle_ms", raw.idle_ms, default.idle),
        }
    }

    pub(super) fn breaker(&mut self, at: &FieldPath, raw: Option<&RawBreaker>) -> Params {
        let mut params = Params::default();
        let Some(raw) = raw else { return params };
        if raw.enabled == Some(false) {
            if let Some(field) = first_typed(raw) {
                self.fault(&at.field(field), Problem::Disabled { field });
            }
            return Params::never();
        }
        if let Some(failures) = raw.failures {
            params = self.rule(at, params, params.with_streak(failures));
        }
        let ratio = RatioRule::default();
        let ratio = RatioRule {
            min_success: raw.success_ratio.unwrap_or(ratio.min_success),
            min_samples: raw.min_samples.unwrap_or(ratio.min_samples),
            window: raw.window_ms.map_or(ratio.window, |Millis(window)| window),
        };
        params = self.rule(at, params, params.with_ratio(ratio));
        let open = OpenTime::default();
        let first = raw.open_ms.map_or(open.first, |Millis(first)| first);
        let open = OpenTime {
            first,
            growth: raw.growth.unwrap_or(open.growth),
            longest: raw
                .max_open_ms
                .map_or(open.longest.max(first), |Millis(longest)| longest),
        };
        self.rule(at, params, params.with_open(open))
    }

    /// The breaker with a further rule, or without it and a fault at the field it came from.
    fn rule(
        &mut self,
        at: &FieldPath,
        before: Params,
        after: Result<Params, backstop_breaker::Error>,
    ) -> Params {
        use backstop_breaker::Error;
        let at = match &after {
            Err(Error::NoFailures) => at.field("failures"),
            Err(Error::NoShare { .. }) => at.field("success_ratio"),
            Err(Error::NoSamples) => at.field("min_samples"),
            Err(Error::Window { .. }) => at.field("window_ms"),
            Err(Error::OpenTime { first, longest }) if first > longest => at.field("max_open_ms"),
            Err(Error::OpenTime { .. }) => at.field("open_ms"),
            Err(Error::Growth { .. }) => at.field("growth"),
            _ => at.clone(),
        };
        self.take(&at, after.map_err(Problem::Breaker))
            .unwrap_or(before)
    }
}

/// The first number that is typed for a breaker.
fn first_typed(raw: &RawBreaker) -> Option<&'static str> {
    [
        ("failures", raw.failures.is_some()),
        ("success_ratio", raw.success_ratio.is_some()),
        ("min_samples", raw.min_samples.is_some()),
        ("window_ms", raw.window_ms.is_some()),
        ("open_ms", raw.open_ms.is_some()),
        ("growth", raw.growth.is_some()),
        ("max_open_ms", raw.max_open_ms.is_some()),
    ]
    .into_iter()
    .find_map(|(field, typed)| typed.then_some(field))
}
