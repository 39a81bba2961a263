//! Thousands of broken streams and callers who leave, by chance and by number.
//!
//! A soak is played in scenes: one gateway under a configuration that chance has written, three
//! providers, and some cases at once before it. What happens in a case follows from the seed and
//! its number alone; how its steps interleave with others is the machine's business. Every case is
//! judged by what its caller heard, what the providers saw and what the ledger says, and those
//! three must agree.
//!
//! `cargo xtask soak journey` plays the long form; a short one is among the tests.

mod act;
mod breaks;
mod caller;
pub(crate) mod dice;
mod findings;
mod golden;
mod hangups;
mod scene;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

pub use findings::{Finding, Findings, Progress, Promise, percentile};

/// Cases in a scene.
const SCENE: u64 = 25;

/// Scenes played at one time. With the cases of each it keeps a machine of two cores busy and not
/// out of breath.
const SCENES: usize = 2;

/// How long a journey's record may be in coming, once its caller is gone or served.
const LEDGER_PATIENCE: Duration = Duration::from_secs(5);

/// What is to be played.
#[derive(Debug, Default)]
pub struct Soak {
    /// Where all chance comes from.
    pub seed: u64,
    /// How many streams break.
    pub breaks: u64,
    /// How many callers leave.
    pub hangups: u64,
    /// One case alone, such as `breaks/17`: its scene is played, and the case told in full.
    pub case: Option<String>,
    /// How far it has come.
    pub progress: Progress,
}

impl Soak {
    /// Plays the streams that break.
    pub async fn play_breaks(self: &Arc<Self>) -> Findings {
        let scenes = self.scenes("breaks", self.breaks);
        self.play(scenes, |soak, number| async move {
            breaks::play(&soak, number).await
        })
        .await
    }

    /// Plays the callers who leave.
    pub async fn play_hangups(self: &Arc<Self>) -> Findings {
        let scenes = self.scenes("hangups", self.hangups);
        self.play(scenes, |soak, number| async move {
            hangups::play(&soak, number).await
        })
        .await
    }

    /// The scenes of `cases` cases, or the one of the case that was asked for.
    fn scenes(&self, kind: &str, cases: u64) -> Vec<u64> {
        let all = 0..cases.div_ceil(SCENE);
        let Some(case) = &self.case else {
            return all.collect();
        };
        let wanted = case.split_once('/').filter(|(known, _)| *known == kind);
        let number = wanted.and_then(|(_, number)| number.parse::<u64>().ok());
        let scene = number.map(|number| number / SCENE);
        scene
            .filter(|scene| all.contains(scene))
            .into_iter()
            .collect()
    }

    async fn play<F>(
        self: &Arc<Self>,
        scenes: Vec<u64>,
        scene: impl Fn(Arc<Self>, u64) -> F,
    ) -> Findings
    where
        F: Future<Output = Findings> + Send + 'static,
    {
        let mut findings = Findings::default();
        let mut playing = JoinSet::new();
        for number in scenes {
            if playing.len() == SCENES
                && let Some(played) = playing.join_next().await
            {
                findings.merge(played.expect("a scene does not panic"));
            }
            playing.spawn(scene(Arc::clone(self), number));
        }
        while let Some(played) = playing.join_next().await {
            findings.merge(played.expect("a scene does not panic"));
        }
        findings
    }

    fn wants(&self, case: &str) -> bool {
        self.case.as_deref() == Some(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_in_one_scene() {
        let soak = |case: Option<&str>| Soak {
            case: case.map(str::to_owned),
            ..Soak::default()
        };
        for (case, cases, want) in [
            (None, 51, vec![0, 1, 2]),
            (Some("breaks/26"), 51, vec![1]),
            (Some("hangups/26"), 51, vec![]),
            (Some("breaks/99"), 51, vec![]),
            (Some("breaks"), 51, vec![]),
        ] {
            assert_eq!(soak(case).scenes("breaks", cases), want, "{case:?}");
        }
    }
}
