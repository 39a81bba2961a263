//! `not`: what must not happen. Each entry is found in a table by its words and has a check of its
//! own; one that is in no table is a fault.

mod callers;
mod calls;
mod evidence;
mod time;

use super::{Checked, Findings, Scene};
use crate::scenario::phrase::{self, Holes};

/// A check that an entry names: it fails when the thing happened.
type Never = fn(&Scene<'_>, &Holes<'_>) -> Checked;

/// The phrases that name a check, ours first, then those of other files of the format.
type Row = (&'static [&'static str], Never);

const TABLES: [&[Row]; 4] = [calls::TABLE, callers::TABLE, time::TABLE, evidence::TABLE];

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for entry in &scene.scenario.expect.not {
        let found = TABLES
            .iter()
            .copied()
            .flatten()
            .find_map(|(phrases, check)| {
                let mut phrases = phrases.iter();
                let holes = phrases.find_map(|pattern| phrase::read(pattern, entry))?;
                Some((check, holes))
            });
        let checked = match found {
            Some((check, holes)) => check(scene, &holes),
            None => Err("nothing checks this".to_owned()),
        };
        findings.add(format!("not: {entry}"), checked);
    }
}
