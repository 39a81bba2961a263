//! Which of a stream's choices were seen, and which have ended.

/// A bit for each choice. Choices beyond the 128th are not followed.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Choices {
    seen: u128,
    finished: u128,
}

impl Choices {
    pub(crate) fn note(&mut self, index: u64, finished: bool) {
        let bit = u32::try_from(index)
            .ok()
            .and_then(|index| 1_u128.checked_shl(index))
            .unwrap_or(0);
        self.seen |= bit;
        if finished {
            self.finished |= bit;
        }
    }

    pub(crate) const fn all_finished(self) -> bool {
        self.seen == self.finished
    }
}
