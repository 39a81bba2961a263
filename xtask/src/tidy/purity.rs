//! Cores are ordinary values: nothing they are built from brings a runtime or a socket along.

use std::collections::{HashMap, VecDeque};

use super::house::{Complaint, House, Node};

/// The vocabulary and the cores, by folder under `crates/`. One that does not exist yet is passed
/// over: the map check knows what exists.
const CORES: [&str; 12] = [
    "units",
    "backoff",
    "breaker",
    "classifier",
    "keypool",
    "stream",
    "chat",
    "dialects",
    "providers",
    "admission",
    "policy",
    "config",
];

/// What a core may not be built from, at any depth.
const BANNED: [&str; 2] = ["tokio", "hyper"];

pub(super) fn check(house: &House) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for package in &house.packages {
        let is_core = package
            .folder
            .strip_prefix("crates/")
            .is_some_and(|folder| CORES.contains(&folder));
        if !is_core {
            continue;
        }
        for banned in BANNED {
            if let Some(path) = path(&house.graph, &package.id, banned) {
                let what = format!("a core may not depend on {banned}: {}", path.join(" > "));
                complaints.push(Complaint::new(&package.folder, what));
            }
        }
    }
    complaints
}

/// The names on the shortest way from package `from` to one called `to`, both included.
fn path<'a>(graph: &'a HashMap<String, Node>, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut came_from: HashMap<&str, &str> = HashMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(id) = queue.pop_front() {
        let node = graph.get(id)?;
        if node.name == to {
            let ids = std::iter::successors(Some(id), |id| came_from.get(id).copied());
            let mut names: Vec<&str> = ids.map(|id| graph[id].name.as_str()).collect();
            names.reverse();
            return Some(names);
        }
        for next in &node.uses {
            if next != from && !came_from.contains_key(next.as_str()) {
                came_from.insert(next, id);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::house::Package;
    use super::*;

    /// A house whose packages are `crates/<name>` for each core or driver named in `ours`.
    fn house(ours: &[&str], edges: &[(&str, &[&str])]) -> House {
        let mut house = House::default();
        for name in ours {
            house.packages.push(Package {
                id: (*name).to_owned(),
                name: format!("backstop-{name}"),
                folder: format!("crates/{name}"),
            });
        }
        for (name, uses) in edges {
            let node = Node {
                name: (*name).to_owned(),
                uses: uses.iter().map(|u| (*u).to_owned()).collect(),
            };
            house.graph.insert((*name).to_owned(), node);
        }
        house
    }

    #[test]
    fn a_runtime_is_found_at_any_depth_and_only_in_cores() {
        let edges: [(&str, &[&str]); 6] = [
            ("stream", &["bytes"]),
            ("policy", &["stream", "middle"]),
            ("server", &["tokio"]),
            ("middle", &["tokio", "policy"]),
            ("bytes", &[]),
            ("tokio", &["bytes"]),
        ];
        let complaints = check(&house(&["stream", "policy", "server"], &edges));
        assert_eq!(
            complaints,
            [Complaint::new(
                "crates/policy",
                "a core may not depend on tokio: policy > middle > tokio"
            )]
        );
    }
}
