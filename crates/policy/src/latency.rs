//! How long a channel makes its callers wait, as one number that rises at once and falls slowly.

use std::time::Duration;

use backstop_units::Moment;

/// A peak-sensitive, exponentially weighted average of the waits on one channel: a longer wait is
/// believed at once, a shorter one little by little. The idea is Finagle's and linkerd's peak EWMA.
///
/// Nobody asks a channel that looks slow, so its number would stay for ever. It therefore fades
/// while nothing is heard and nothing is out: after [`IDLE_FADE`](Self::IDLE_FADE) a bit more than
/// a third of it is left. A channel ten times slower than its neighbour is tried again after a
/// little over two minutes, by one request; what that one meets decides how it goes on.
///
/// ```
/// use std::time::Duration;
/// use backstop_policy::PeakEwma;
/// use backstop_units::Moment;
///
/// let (mut waits, now) = (PeakEwma::default(), Moment::START);
/// assert_eq!(waits.estimate(now, 0), None);
/// waits.on_success(now, Duration::from_millis(300));
/// waits.on_success(now, Duration::from_millis(900));
/// assert_eq!(waits.estimate(now, 0), Some(Duration::from_millis(900)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PeakEwma {
    /// Seconds, and when they were true.
    known: Option<(f64, Moment)>,
}

impl PeakEwma {
    /// How fast shorter waits pull the number down: after this long of them about a third of the
    /// difference is left. 10 s, as in linkerd's balancer.
    pub const SETTLE: Duration = Duration::from_secs(10);

    /// How fast the number fades while nothing is heard. Our choice: long enough that a slow
    /// channel gets little, short enough that one that has recovered is found within minutes.
    pub const IDLE_FADE: Duration = Duration::from_secs(60);

    /// The least that a failure counts for: a channel that fails at once must not look fast.
    /// Our choice; about what a first token takes.
    pub const LEAST_FAILURE: Duration = Duration::from_secs(1);

    /// The most that failures push the number to by themselves, six in a row at the latest. Our
    /// choice: more than a queue of dozens at a quick neighbour comes to, and little enough that a
    /// channel which is well again is found within minutes. Where everything fails, the circuit
    /// breaker is sooner at both.
    pub const MOST_FAILURE: Duration = Duration::from_secs(60);

    /// An attempt was answered after `waited`.
    pub fn on_success(&mut self, now: Moment, waited: Duration) {
        let sample = waited.as_secs_f64();
        let settled = match self.known {
            Some((old, at)) if sample < old => {
                let kept = (-now.since(at).as_secs_f64() / Self::SETTLE.as_secs_f64()).exp();
                old * kept + sample * (1.0 - kept)
            }
            _ => sample,
        };
        self.known = Some((settled, now));
    }

    /// An attempt failed after `waited`, for a reason that is the channel's: it counts as twice
    /// the wait known so far, and no less than it took.
    pub fn on_failure(&mut self, now: Moment, waited: Duration) {
        let (least, most) = (Self::LEAST_FAILURE, Self::MOST_FAILURE);
        let known = self.known.map_or(0.0, |(old, _)| old);
        let pushed = (2.0 * known).clamp(least.as_secs_f64(), most.as_secs_f64());
        let wait = pushed.max(known).max(waited.as_secs_f64());
        self.known = Some((wait, now));
    }

    /// The wait to expect at `now`; nothing before the first attempt has ended. While attempts are
    /// out the number stands: what they meet will say more than time could.
    #[must_use]
    pub fn estimate(&self, now: Moment, in_flight: u32) -> Option<Duration> {
        let (wait, at) = self.known?;
        let idle = now.since(at).as_secs_f64() / Self::IDLE_FADE.as_secs_f64();
        let left = if in_flight > 0 { 1.0 } else { (-idle).exp() };
        Some(Duration::from_secs_f64(wait * left))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1_000)
    }

    fn millis(waits: &PeakEwma, now: Moment, in_flight: u32) -> u128 {
        waits
            .estimate(now, in_flight)
            .expect("something was heard")
            .as_millis()
    }

    #[test]
    fn it_rises_at_once_falls_slowly_and_fades_when_idle() {
        let mut waits = PeakEwma::default();
        waits.on_success(at(0), Duration::from_millis(100));
        waits.on_success(at(0), Duration::from_secs(2));
        assert_eq!(millis(&waits, at(0), 0), 2_000);
        waits.on_success(at(10), Duration::from_millis(100));
        assert_eq!(millis(&waits, at(10), 1), 798, "a third of the way is left");
        waits.on_success(at(40), Duration::from_millis(100));
        assert_eq!(millis(&waits, at(40), 1), 134);
        assert_eq!(millis(&waits, at(100), 0), 49, "idle");
        assert_eq!(millis(&waits, at(100), 1), 134, "an attempt is out");
    }

    #[test]
    fn failures_push_up_to_a_bound() {
        let mut waits = PeakEwma::default();
        for want in [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            waits.on_failure(at(0), Duration::from_millis(1));
            assert_eq!(millis(&waits, at(0), 0), want);
        }
        waits.on_failure(at(0), Duration::from_secs(90));
        assert_eq!(millis(&waits, at(0), 0), 90_000, "what it took");
        waits.on_failure(at(0), Duration::from_millis(1));
        assert_eq!(millis(&waits, at(0), 0), 90_000, "never down");
    }

    proptest! {
        /// Within what was seen; a failure never makes a channel look better.
        #[test]
        fn an_estimate_lies_within_what_was_met(
            met in proptest::collection::vec((any::<bool>(), 0..40_000_u64, 0..90_000_u64), 1..20),
        ) {
            let (mut waits, mut now) = (PeakEwma::default(), 0);
            let mut longest = PeakEwma::MOST_FAILURE;
            for (fails, pause, waited) in met {
                now += pause;
                let (moment, waited) = (Moment::from_millis(now), Duration::from_millis(waited));
                longest = longest.max(waited);
                let before = waits.estimate(moment, 1);
                if fails {
                    waits.on_failure(moment, waited);
                    prop_assert!(waits.estimate(moment, 0) >= before);
                    prop_assert!(waits.estimate(moment, 0) >= Some(PeakEwma::LEAST_FAILURE));
                } else {
                    waits.on_success(moment, waited);
                }
                let now = waits.estimate(moment, 0).expect("known");
                prop_assert!(now <= longest + Duration::from_micros(1));
                prop_assert!(fails || now + Duration::from_micros(1) >= waited.min(longest));
            }
        }
    }
}
