//! One check for each expectation. An expectation without one is a fault of its own.

mod answers;
mod attempts;
mod ledger;
mod never;
mod state;
mod stream;
mod timing;
mod wire;

use serde_json::Value;

use super::caller::{End, Heard};
use super::data::Scenario;
use super::metrics;
use super::phrase::{self, Holes};
use super::play::Played;

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The expectation, in the scenario's words.
    pub what: String,
    /// What is wrong; `None` when it holds.
    pub fault: Option<String>,
}

/// A scenario that was played.
pub(crate) struct Scene<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) played: &'a Played,
}

/// The outcome of one check: what is wrong, if anything.
pub(crate) type Checked = Result<(), String>;

/// Collects what was looked at.
#[derive(Default)]
pub(crate) struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    pub(crate) fn add(&mut self, what: impl Into<String>, checked: Checked) {
        self.0.push(Finding {
            what: what.into(),
            fault: checked.err(),
        });
    }
}

/// Looks at everything the scenario expects, and at what holds in every scenario.
pub(crate) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut findings = Findings::default();
    always(scene, &mut findings);
    answers::check(scene, &mut findings);
    stream::check(scene, &mut findings);
    attempts::check(scene, &mut findings);
    timing::check(scene, &mut findings);
    state::check(scene, &mut findings);
    ledger::check(scene, &mut findings);
    numbers(scene, &mut findings);
    wire::check(scene, &mut findings);
    never::check(scene, &mut findings);
    findings.0
}

/// What holds in every scenario: it went by the script, everybody was answered, the trail is what
/// the providers saw, and no key is anywhere.
fn always(scene: &Scene<'_>, findings: &mut Findings) {
    for (name, sim) in &scene.played.stage.sims {
        let deviations = sim.deviations();
        let checked = deviations
            .is_empty()
            .then_some(())
            .ok_or_else(|| format!("{deviations:?}"));
        findings.add(format!("{name} goes by its script"), checked);
    }
    for (heard, record) in &scene.played.requests {
        let checked = match (heard.end, record) {
            (End::Stuck, _) => Err("the caller waited in vain".to_owned()),
            (_, None) => Err("it has no record".to_owned()),
            _ => attempts::trail_is_the_wire(scene, heard),
        };
        findings.add(format!("{} ends, and is on record", heard.name()), checked);
    }
    findings.add("no key in any artefact", wire::no_secret(scene));
}

/// `metrics`.
fn numbers(scene: &Scene<'_>, findings: &mut Findings) {
    let played = scene.played;
    for (name, want) in &scene.scenario.expect.metrics {
        let checked = if let Some(holes) = phrase::read("in_flight at <t> ms", name) {
            state::glance_at(scene, &holes, "t")
                .and_then(|glance| equal(&glance.in_flight.into(), want))
        } else {
            match metrics::growth(name, &played.before, &played.after) {
                Some(grown) => equal(&grown.into(), want),
                None => Err("no row of the table of metrics has this name".to_owned()),
            }
        };
        findings.add(format!("metrics {name} = {want}"), checked);
    }
}

/// Reads `text` by the first phrase of `table` that fits, and runs its check.
pub(crate) fn by_table<'t, T: Copy>(
    table: &'t [(&'static str, T)],
    text: &'t str,
) -> Result<(T, Holes<'t>), String> {
    let found = table
        .iter()
        .find_map(|(pattern, check)| Some((*check, phrase::read(pattern, text)?)));
    found.ok_or_else(|| "nothing checks this".to_owned())
}

/// The part of an expectation that is for each place of the sequence.
pub(crate) fn by_place<'v>(scene: &Scene<'_>, value: &'v Value) -> Result<Vec<&'v Value>, String> {
    let places = scene.scenario.client.0.len();
    match value {
        Value::Array(all) if all.len() == places && places > 1 => Ok(all.iter().collect()),
        one if places == 1 => Ok(vec![one]),
        _ => Err(format!("it does not follow the sequence of {places}")),
    }
}

/// Runs `check` for every request of a place.
pub(crate) fn at_place(
    scene: &Scene<'_>,
    place: usize,
    check: impl Fn(&Heard) -> Checked,
) -> Checked {
    let mut any = false;
    for (heard, _) in scene.played.at_place(place) {
        any = true;
        check(heard).map_err(|fault| format!("{}: {fault}", heard.name()))?;
    }
    require(any, || format!("no request {place} was sent"))
}

pub(crate) fn equal(found: &Value, want: &Value) -> Checked {
    let same = match (found.as_f64(), want.as_f64()) {
        (Some(found), Some(want)) => (found - want).abs() < 1e-9,
        _ => found == want,
    };
    require(same, || format!("it is {found}"))
}

pub(crate) fn require(holds: bool, fault: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(fault()) }
}
