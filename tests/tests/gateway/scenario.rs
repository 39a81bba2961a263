//! Every scenario of the project, played.

use backstop_tests::scenario::{Outcome, own, play, read};

#[test]
fn all_scenarios_end_as_they_should() {
    let scenarios = read(&own()).expect("scenarios that can be read");
    let (mut played, mut wrong) = (0, Vec::new());
    for scenario in &scenarios {
        let outcome = play(scenario);
        if let Outcome::Waits(needs) = &outcome {
            println!("{} waits: needs {}", scenario.id, needs.join(", "));
            continue;
        }
        played += 1;
        for (what, fault) in outcome.faults() {
            wrong.push(format!("{}: {what}: {fault}", scenario.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        played >= 39,
        "only {played} of {} were played",
        scenarios.len()
    );
}

/// Plays a scenario of the project after its text was changed.
fn changed(id: &str, change: impl Fn(&str) -> String) -> Outcome {
    let name = |path: &std::path::Path| {
        path.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(&id.to_lowercase()))
    };
    let files = std::fs::read_dir(own()).expect("the folder");
    let mut files = files.map(|entry| entry.expect("an entry").path());
    let file = files.find(|path| name(path)).expect("a scenario");
    let text = std::fs::read_to_string(file).expect("a text");
    let text = change(&text);
    let path = std::env::temp_dir().join(format!("backstop-scenario-{}.json", std::process::id()));
    std::fs::write(&path, text).expect("a place to write");
    let scenarios = read(&path);
    let _ = std::fs::remove_file(&path);
    match scenarios {
        Ok(scenarios) => play(&scenarios[0]),
        Err(refused) => panic!("{refused}"),
    }
}

#[test]
fn a_scenario_that_expects_something_else_fails() {
    // Each row: a scenario, what is changed, and a word of the fault.
    for (id, from, to, word) in [
        (
            "F29",
            "\"max_retries\": 2",
            "\"max_retries\": 3",
            "Unexpected",
        ),
        (
            "F29",
            "\"max_retries\": 2",
            "\"max_retries\": 1",
            "LeftOver",
        ),
        ("F29", "[800, 1200]", "[0, 799]", "it took"),
        ("F29", "\"req-77\"}", "\"req-78\"}", "it is"),
        (
            "F29",
            "\"upstream_calls{alpha}\": 3",
            "\"upstream_calls{alpha}\": 2",
            "it is",
        ),
        (
            "F29",
            "\"client_status\": 503",
            "\"client_status\": 502",
            "it is",
        ),
        ("F29", "a fourth call", "a third call", "3 calls were made"),
        (
            "F29",
            "a fourth call",
            "a thing nobody thought of",
            "nothing checks this",
        ),
        (
            "F29",
            "\"gap_1_ms\"",
            "\"gap_some_ms\"",
            "it names no number",
        ),
        (
            "F03",
            "\"ttft_timeout\"",
            "\"headers_timeout\"",
            "reason is",
        ),
        ("F03", "any event of alpha", "any event of beta", "there is"),
        ("F03", "\"finish stop\", ", "", "there is"),
        ("F03", "text 'Moon '", "text 'Sun '", "it is"),
        (
            "F04",
            "\"input_tokens\": 12}",
            "\"input_tokens\": 13}",
            "it is",
        ),
        (
            "F30",
            "\"at 720 ms\": \"half_open\"",
            "\"at 720 ms\": \"closed\"",
            "it is",
        ),
        (
            "F30",
            "a probe still out at 1500 ms",
            "a probe still out at 800 ms",
            "it happened",
        ),
        (
            "F33",
            "works on at 700 ms",
            "works on at 300 ms",
            "it ended at",
        ),
    ] {
        let outcome = changed(id, |text| {
            assert!(text.contains(from), "{id}: {from}");
            text.replacen(from, to, 1)
        });
        let faults = outcome.faults();
        let found = faults.iter().any(|(_, fault)| fault.contains(word));
        assert!(found, "{id}, {to}: {faults:?}");
    }
}

#[test]
#[should_panic(expected = "unknown field `client_mood`")]
fn an_expectation_of_an_unknown_kind_is_refused() {
    let _ = changed("F29", |text| {
        text.replacen(
            "\"client_status\"",
            "\"client_mood\": 1, \"client_status\"",
            1,
        )
    });
}
