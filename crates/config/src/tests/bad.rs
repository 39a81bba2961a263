//! Files that are refused: what is wrong, where, and what an operator reads. The cases are data:
//! `corpus/bad.txt`.

use std::fmt::Write as _;

use super::faults;

const CORPUS: &str = include_str!("../../corpus/bad.txt");

/// One case of the corpus.
struct Case<'a> {
    file: &'static str,
    text: String,
    line: usize,
    path: &'a str,
    message: &'a str,
}

/// Reads the corpus; its head says how it is written.
fn cases() -> Vec<Case<'static>> {
    let mut cases: Vec<Case<'static>> = Vec::new();
    for line in CORPUS.lines() {
        if let Some(head) = line.strip_prefix("=== ") {
            let parts: Vec<&str> = head.splitn(4, " | ").collect();
            let [spelling, line, path, message] = parts[..] else {
                panic!("not a case: {head}");
            };
            cases.push(Case {
                file: if spelling == "json" {
                    "config.json"
                } else {
                    "backstop.toml"
                },
                text: String::new(),
                line: line.parse().expect("a line number"),
                path,
                message,
            });
        } else if let Some(case) = cases.last_mut()
            && !line.starts_with("##")
        {
            case.text.push_str(line);
            case.text.push('\n');
        }
    }
    cases
}

#[test]
fn each_bad_file_is_refused_where_it_is_bad() {
    let cases = cases();
    assert!(cases.len() >= 150, "{} cases", cases.len());
    let mut wrong = String::new();
    for case in cases {
        let found = faults(case.file, &case.text);
        let fault = found.iter().next().expect("refused for a reason");
        let text = found.to_string();
        let line = fault.position().map(|position| position.line);
        let good = found.len() == 1
            && line == Some(case.line)
            && fault.path() == case.path
            && fault.problem().to_string().contains(case.message)
            && text.starts_with(&format!("{}:{}:", case.file, case.line));
        if !good {
            let _ = writeln!(wrong, "--- {}\n{}=> {text}\n", case.message, case.text);
        }
        assert!(!text.contains("canary"), "{text}");
        assert!(!format!("{found:?}").contains("canary"), "{found:?}");
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn one_run_names_every_fault_in_the_order_of_the_file() {
    insta::assert_snapshot!(faults(
        "backstop.toml",
        r#"trail = "sometimes"

[server]
listen = 8080
drain = 5

[[providers.openai.keys]]
name = "a"
valeu = "sk-canary"

[[providers.openai.keys]]
value = 5

[routes.chat]
groups = [{ chanels = [] }, { channels = 5 }]
"#
    ));
    insta::assert_snapshot!(faults(
        "config.json",
        r#"{
  "server": { "listen": "0.0.0.0:8080" },
  "providers": {
    "openai": {
      "keys": [
        { "name": "a", "value": "env.MISSING_ONE" },
        { "name": "a", "value": "env.OPENAI_KEY_1", "weight": -1 }
      ],
      "network_config": { "max_retries": 5, "retry_backoff_initial": 9000, "retry_backoff_max": 5000 }
    },
    "lab": { "base_url": "http://lab.example.com" }
  },
  "routes": {
    "chat": ["openai/gpt-4o", "gorq/llama", "lab/m"]
  }
}"#
    ));
}
