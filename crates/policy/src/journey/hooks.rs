//! Hooks: asked about each channel afresh, before the first attempt on it and after the last.
//!
//! Nothing is held while a hook runs: it is asked before the permit, and after the settlement. What
//! it says cannot open a gate, only shut one or end the journey.

use backstop_units::Moment;

use super::action::{Action, Ending, FinalError};
use super::event::Event;
use super::start::blank_row;
use super::{Journey, Start, State};
use crate::hook::{Aftermath, HookError, HookStage};
use crate::sentence::{Category, Sentence};
use crate::trail::{AttemptRow, Outcome};

/// What goes on when the hooks have nothing to say.
#[derive(Debug)]
pub(super) enum Paused {
    /// The first attempt on a channel.
    Start(Start),
    /// The way on from a channel that failed.
    Leave,
    /// A whole answer on its way to the caller.
    Serve,
}

impl Journey {
    /// Begins on a channel, with the hooks' leave. A channel that is come back to, since nothing
    /// else was left, has it already.
    pub(super) fn ask_before(&mut self, start: Start) {
        if self.hooked && start.first {
            self.run_hook(HookStage::Before, Paused::Start(start));
        } else {
            self.ask_permit(start);
        }
    }

    /// Whether the hooks are asked about the failure before the channel is left.
    pub(super) fn ask_after_failure(&mut self) -> bool {
        if !self.hooked || self.leg.heard || self.leg.sends == 0 {
            return false;
        }
        let Some(failure) = self.leg.telling() else {
            return false;
        };
        let stage = HookStage::After(Aftermath::Failed(failure.verdict));
        self.leg.heard = true;
        self.run_hook(stage, Paused::Leave);
        true
    }

    /// Hands a whole answer over, with the hooks' leave.
    pub(super) fn ask_after_answer(&mut self) {
        if self.hooked {
            self.leg.heard = true;
            self.run_hook(HookStage::After(Aftermath::Answered), Paused::Serve);
        } else {
            self.serve();
        }
    }

    fn run_hook(&mut self, stage: HookStage, paused: Paused) {
        let channel = self.channel();
        self.actions.push_back(Action::RunHook { stage, channel });
        self.state = State::AskedHook(paused);
    }

    /// What the hooks said, or that they have said nothing so far.
    pub(super) fn on_hook(&mut self, now: Moment, paused: Paused, event: Event) {
        match event {
            Event::HookPassed => self.go_on(now, paused),
            Event::HookAnswered { hook } => self.answer_by(now, &paused, hook),
            Event::HookStopped {
                hook,
                error,
                allow_fallbacks,
            } => self.stop_by(now, &paused, hook, error, allow_fallbacks),
            _ if now >= self.end() => self.finish_deadline(now, None),
            _ => self.state = State::AskedHook(paused),
        }
    }

    /// Time has passed since the channel was chosen: gate 4 is asked again.
    fn go_on(&mut self, now: Moment, paused: Paused) {
        match paused {
            Paused::Start(_) if now >= self.end() => self.finish_deadline(now, None),
            Paused::Start(_) if self.gate(now, self.at).is_err() => self.leave_channel(now),
            Paused::Start(start) => self.ask_permit(start),
            Paused::Leave => self.leave_channel(now),
            Paused::Serve => self.serve(),
        }
    }

    /// The caller has, or gets, the whole answer.
    pub(super) fn serve(&mut self) {
        self.say_served();
        self.finish(Ending::Success);
    }

    fn answer_by(&mut self, now: Moment, paused: &Paused, hook: String) {
        self.note(now, paused, &format!("hook_answered:{hook}"));
        if matches!(paused, Paused::Leave) {
            self.close_leg();
        }
        self.say(Sentence::AnsweredByHook {
            to: self.channel().label(),
            hook: hook.clone(),
        });
        self.answered_by = Some(hook);
        self.finish(Ending::Success);
    }

    fn stop_by(
        &mut self,
        now: Moment,
        paused: &Paused,
        hook: String,
        error: HookError,
        allow_fallbacks: bool,
    ) {
        self.note(now, paused, &format!("hook_stopped:{hook}"));
        self.say(Sentence::StoppedByHook {
            to: self.channel().label(),
            hook,
            category: Category::of_stop(&error),
        });
        if matches!(paused, Paused::Serve) {
            // The provider did its work, and another would do it again.
            self.leg.forget_failures();
            self.leg.bound |= !self.terms.replay_safe;
        }
        self.like = error.class();
        self.leg.stopped = Some(error);
        if allow_fallbacks {
            self.leave_channel(now);
        } else {
            self.finish_stopped();
        }
    }

    /// The journey ends with the hook's error, whatever the primary's was.
    fn finish_stopped(&mut self) {
        self.close_leg();
        let channel = self.channel();
        let Some(mut error) = self.leg.error(&channel) else {
            return;
        };
        error.do_not_retry |= self.sends.total() > 1;
        self.say_failed(&error, true);
        self.finish(Ending::PolicyStop(error));
    }

    /// Who had a say stands in the trail: in a row of its own where nothing was sent, in the row of
    /// an answer that did not go out. A failure's row keeps its own reason.
    fn note(&mut self, now: Moment, paused: &Paused, reason: &str) {
        match paused {
            Paused::Start(start) => {
                let row = AttemptRow {
                    outcome: Outcome::Skipped,
                    fail_reason: Some(reason.to_owned()),
                    ..blank_row(&self.channel(), start.action, now)
                };
                self.trail.push(row);
            }
            Paused::Serve => {
                if let Some(row) = self.trail.last_mut() {
                    row.fail_reason = Some(reason.to_owned());
                }
            }
            Paused::Leave => {}
        }
    }
}

impl FinalError {
    /// Whether nobody had a part in it but the gateway: such an error gives way to any other.
    pub(super) const fn is_bare(&self) -> bool {
        self.verdict.is_none() && self.stopped.is_none()
    }
}
