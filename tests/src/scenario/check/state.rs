//! `state`: breakers and holds, at the end or at a time.

use backstop_breaker::State as Breaker;
use serde_json::Value;

use super::{Checked, Findings, Scene, equal, require};
use crate::scenario::phrase::{self, Holes};
use crate::scenario::play::Glance;

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    let mut subject = String::new();
    for (name, want) in &scene.scenario.expect.state {
        // A name that begins with its time goes on about the subject before.
        let full = match name.split_once(" at ") {
            Some((named, _)) => {
                named.clone_into(&mut subject);
                name.clone()
            }
            None if name.starts_with("at ") => format!("{subject} {name}"),
            None => name.clone(),
        };
        findings.add(format!("state {name} = {want}"), holds(scene, &full, want));
    }
}

fn holds(scene: &Scene<'_>, name: &str, want: &Value) -> Checked {
    let (what, glance) = match name.split_once(" at ") {
        Some((what, time)) => {
            let holes = phrase::read("<t> ms", time).ok_or("its time is not understood")?;
            (what, glance_at(scene, &holes, "t")?)
        }
        None => (name, &scene.played.end),
    };
    if let Some(holes) = phrase::read("breaker{<u>}", what) {
        return equal(&breaker(glance, holes.text("u")).into(), want);
    }
    if let Some(holes) = phrase::read("cooldown{<k>}", what) {
        let held = glance.held.iter().any(|key| key == holes.text("k"));
        return equal(&if held { "held" } else { "none" }.into(), want);
    }
    if let Some(holes) = phrase::read("eligible_keys{<u>}", what) {
        return equal(&eligible(scene, glance, holes.text("u"))?.into(), want);
    }
    Err("nothing checks this".to_owned())
}

/// The state of a provider's breakers in one word.
pub(super) fn breaker(glance: &Glance, upstream: &str) -> &'static str {
    let of = |name: &str| name.split('/').next() == Some(upstream);
    let view = glance.channels.iter().find(|view| of(view.id.as_str()));
    match view.map(|view| view.breaker) {
        // A channel that nobody has used yet lets traffic through.
        None | Some(Breaker::Closed) => "closed",
        Some(Breaker::Open { .. }) => "open",
        Some(Breaker::HalfOpen { .. }) => "half_open",
    }
}

/// How many keys a request may be given: those that are not held, and where all are, the one that is
/// held least.
fn eligible(scene: &Scene<'_>, glance: &Glance, upstream: &str) -> Result<usize, String> {
    let mut upstreams = scene.scenario.upstreams.iter();
    let found = upstreams.find(|known| known.name == upstream);
    let keys = &found.ok_or("no upstream has this name")?.keys;
    let free = keys.iter().filter(|key| !glance.held.contains(key)).count();
    let asked = scene.played.calls_to(upstream);
    let at = scene.played.stage.start + glance.at.elapsed();
    let served = asked.iter().any(|call| call.arrived() >= at);
    require(served, || "no request got a key from then on".to_owned())?;
    Ok(free.max(1))
}

/// The latest look at the state up to the time in a hole.
pub(super) fn glance_at<'p>(
    scene: &'p Scene<'_>,
    holes: &Holes<'_>,
    hole: &str,
) -> Result<&'p Glance, String> {
    let ms = holes.number(hole).ok_or("its time is not understood")?;
    let mut glances = scene.played.glances.iter();
    let found = glances.rfind(|glance| glance.millis() <= u128::from(ms));
    // Whoever looks after the last request sees how that left it.
    found.ok_or_else(|| "nobody looked then".to_owned())
}
