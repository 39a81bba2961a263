//! A rule in `clippy.toml` and an exception in `deny.toml` say why they are there.

use toml::{Table, Value};

use super::house::{Complaint, House};

/// Lists whose entries need a reason, as paths through each file.
const LISTS: [(&str, &[&str]); 7] = [
    ("clippy.toml", &["disallowed-methods"]),
    ("clippy.toml", &["disallowed-types"]),
    ("clippy.toml", &["disallowed-macros"]),
    ("deny.toml", &["advisories", "ignore"]),
    ("deny.toml", &["bans", "deny"]),
    ("deny.toml", &["bans", "skip"]),
    ("deny.toml", &["bans", "skip-tree"]),
];

pub(super) fn check(house: &House) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, list) in LISTS {
        let Some(file) = house.file(path) else {
            complaints.push(Complaint::new(path, "the file is missing"));
            continue;
        };
        match file.text.parse::<Table>() {
            Ok(table) => {
                let bare = entries(&Value::Table(table), list)
                    .filter(|entry| !has_reason(entry))
                    .map(|entry| format!("{}: no reason beside {entry}", list.join(".")));
                complaints.extend(bare.map(|what| Complaint::new(path, what)));
            }
            Err(error) => complaints.push(Complaint::new(path, error.message())),
        }
    }
    complaints.dedup();
    complaints
}

fn entries(file: &Value, list: &[&str]) -> std::vec::IntoIter<Value> {
    let mut value = Some(file);
    for key in list {
        value = value.and_then(|value| value.get(key));
    }
    let entries = value.and_then(Value::as_array).cloned();
    entries.unwrap_or_default().into_iter()
}

fn has_reason(entry: &Value) -> bool {
    let reason = entry.get("reason").and_then(Value::as_str);
    reason.is_some_and(|reason| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_needs_a_reason() {
        for (clippy, deny, complaints) in [
            ("", "", 0),
            (
                "disallowed-methods = [{ path = \"a::b\", reason = \"it blocks\" }]",
                "[bans]\nskip = [{ crate = \"syn@1\", reason = \"leaving with x\" }]",
                0,
            ),
            ("disallowed-methods = [\"a::b\"]", "", 1),
            (
                "disallowed-types = [{ path = \"a\", reason = \" \" }]",
                "",
                1,
            ),
            (
                "",
                "[advisories]\nignore = [\"RUSTSEC-1\", { id = \"R-2\" }]",
                2,
            ),
            ("no toml", "", 1),
        ] {
            let house = House::of_files(&[("clippy.toml", clippy), ("deny.toml", deny)]);
            assert_eq!(check(&house).len(), complaints, "{clippy}{deny}");
        }
        assert_eq!(
            check(&House::default()).len(),
            2,
            "both files must be there"
        );
    }
}
