//! `docs/architecture.md` lists every package of the workspace in its Rooms table, and no other.

use std::collections::BTreeSet;

use super::house::{Complaint, House};

const MAP: &str = "docs/architecture.md";

pub(super) fn check(house: &House) -> Vec<Complaint> {
    let Some(map) = house.file(MAP) else {
        return vec![Complaint::new(MAP, "the map is missing")];
    };
    let there: BTreeSet<&str> = house.packages.iter().map(|p| p.folder.as_str()).collect();
    let mut shown = BTreeSet::new();
    let mut complaints = Vec::new();
    for (line, room) in rooms(&map.text) {
        if !there.contains(room) {
            let what = format!("`{room}` is on the map, but not in the workspace");
            complaints.push(Complaint::new(MAP, what).at(line));
        } else if !shown.insert(room) {
            let what = format!("`{room}` is on the map twice");
            complaints.push(Complaint::new(MAP, what).at(line));
        }
    }
    for room in there.difference(&shown) {
        let what = format!("`{room}` is in the workspace, but not on the map");
        complaints.push(Complaint::new(MAP, what));
    }
    complaints
}

/// The rooms that rows of the section "Rooms" begin with, and the lines they stand on.
fn rooms(map: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(map.lines())
        .skip_while(|(_, line)| *line != "## Rooms")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter_map(|(number, line)| {
            let (room, _) = line.strip_prefix("| `")?.split_once('`')?;
            Some((number, room))
        })
}

#[cfg(test)]
mod tests {
    use super::super::house::Package;
    use super::*;

    fn house(map: &str, folders: &[&str]) -> House {
        let mut house = House::of_files(&[(MAP, map)]);
        house.packages = folders
            .iter()
            .map(|folder| Package {
                id: (*folder).to_owned(),
                name: (*folder).to_owned(),
                folder: (*folder).to_owned(),
            })
            .collect();
        house
    }

    const GOOD: &str = "# Map\n| `not/here` | above |\n## Rooms\n| room | is |\n|---|---|\n\
                        | `crates/units` | words |\n| `xtask` | chores |\n## Next\n| `x` | y |\n";

    #[test]
    fn the_map_and_the_workspace_must_agree() {
        for (map, folders, complaints) in [
            (GOOD, &["crates/units", "xtask"][..], 0),
            (GOOD, &["crates/units"], 1),
            (GOOD, &["crates/units", "xtask", "crates/new"], 1),
            (
                "## Rooms\n| `xtask` | a |\n| `xtask` | b |\n",
                &["xtask"],
                1,
            ),
            ("# Map\n", &["xtask"], 1),
        ] {
            assert_eq!(check(&house(map, folders)).len(), complaints, "{map}");
        }
    }

    #[test]
    fn a_complaint_says_where() {
        let complaints = check(&house(GOOD, &["crates/units"]));
        let text = complaints[0].to_string();
        assert_eq!(
            text,
            "docs/architecture.md:7: `xtask` is on the map, but not in the workspace"
        );
    }
}
