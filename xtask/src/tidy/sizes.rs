//! No file and no function outgrows what a reader can hold. Tests may be as long as they need.

use super::house::{Complaint, House};
use super::source::Code;

/// Lines of a file, without its test module.
const FILE: usize = 800;

/// Lines of a function, signature and closing brace included.
const FUNCTION: usize = 120;

pub(super) fn check(house: &House) -> Vec<Complaint> {
    let rust = house.files.iter().filter(|f| f.path.ends_with(".rs"));
    let mut complaints = Vec::new();
    for file in rust.filter(|f| !is_test(&f.path)) {
        let code = Code::new(&file.text);
        let lines = code.lines();
        if lines > FILE {
            let what = format!("{lines} lines, more than {FILE}: two ideas in one file?");
            complaints.push(Complaint::new(&file.path, what));
        }
        for function in code.functions().iter().filter(|f| f.lines > FUNCTION) {
            let what = format!(
                "`{}` has {} lines, more than {FUNCTION}",
                function.name, function.lines
            );
            complaints.push(Complaint::new(&file.path, what).at(function.line));
        }
    }
    complaints
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path.contains("/benches/")
        || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_functions_are_seen_outside_of_tests() {
        let long_function = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(FUNCTION));
        let good_function = format!("fn good() {{\n{}}}\n", "    step();\n".repeat(FUNCTION - 2));
        let long_file = "// line\n".repeat(FILE + 1);
        let tested =
            format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{long_file}{long_function}}}\n");
        for (path, text, complaints) in [
            ("crates/a/src/lib.rs", &long_function, 1),
            ("crates/a/src/lib.rs", &good_function, 0),
            ("crates/a/src/lib.rs", &long_file, 1),
            ("crates/a/src/lib.rs", &tested, 0),
            ("crates/a/src/b/tests.rs", &long_file, 0),
            ("tests/tests/all.rs", &long_function, 0),
            ("docs/long.md", &long_file, 0),
        ] {
            let house = House::of_files(&[(path, text)]);
            assert_eq!(check(&house).len(), complaints, "{path}");
        }
    }
}
