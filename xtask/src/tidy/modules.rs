//! Every Rust file opens with a `//!` line that says what it is for.

use super::house::{Complaint, House};

pub(super) fn check(house: &House) -> Vec<Complaint> {
    let rust = house.files.iter().filter(|f| f.path.ends_with(".rs"));
    rust.filter(|file| !opens_with_purpose(&file.text))
        .map(|file| Complaint::new(&file.path, "does not open with a `//!` sentence").at(1))
        .collect()
}

fn opens_with_purpose(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let said = first.strip_prefix("//!");
    said.is_some_and(|said| said.chars().any(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_something() {
        for (text, good) in [
            ("//! Breakers, live.\nuse a;\n", true),
            ("//!\nuse a;\n", false),
            ("use a;\n", false),
            ("// A remark.\n", false),
            ("\n//! Late.\n", false),
            ("", false),
        ] {
            let house = House::of_files(&[("crates/a/src/lib.rs", text)]);
            assert_eq!(check(&house).is_empty(), good, "{text:?}");
        }
        let other = House::of_files(&[("README.md", "no rust")]);
        assert!(check(&other).is_empty());
    }
}
