//! Both spellings as trees, and where things stand in them.

use super::*;

fn at(file: &str, text: &str, path: &FieldPath) -> (usize, usize) {
    let file = Path::new(file);
    let document = Document::parse(file, text, Spelling::of(file, text)).unwrap();
    let missing = Problem::Missing { accepted: "x" };
    let Position { line, column } = document.fault(path.clone(), missing).position.unwrap();
    (line, column)
}

#[test]
fn values_and_names_are_found_in_both_spellings() {
    let top = FieldPath::default();
    let keys = top.field("providers").field("openai").field("keys");
    let toml = "# é\n[providers.openai]\nbase_url = \"ä\"\nkeys = [\n  { value = 1 },\n]\n[[routes.a.groups]]\n[[routes.a.groups]]\nname = \"n\"\n";
    let json = "{\"providers\": {\"openai\": {\n  \"ä\": 1, \"b\": 2,\n  \"keys\": [\n    {\"value\": 1}]}}}";
    let groups = top.field("routes").field("a").field("groups");
    let openai = top.field("providers").field("openai");
    for (file, text, path, want) in [
        ("a.toml", toml, &keys, (4, 1)),
        ("a.toml", toml, &keys.item(0), (5, 3)),
        ("a.toml", toml, &keys.item(0).field("value"), (5, 13)),
        (
            "a.toml",
            toml,
            &keys.item(0).field("gone").field("deeper"),
            (5, 3),
        ),
        ("a.toml", toml, &openai.field("base_url"), (3, 12)),
        ("a.toml", toml, &openai, (2, 12)),
        ("a.toml", toml, &groups.item(1).field("name"), (9, 8)),
        ("a.toml", toml, &groups.item(1), (8, 1)),
        ("a.json", json, &openai.field("b"), (2, 16)),
        ("a.json", json, &keys, (3, 3)),
        ("a.json", json, &keys.item(0).field("value"), (4, 15)),
        ("a.json", json, &keys.item(7), (3, 3)),
        ("a.json", json, &top.field("nowhere"), (1, 1)),
    ] {
        assert_eq!(at(file, text, path), want, "{file} {path}");
    }
}

#[test]
fn the_spelling_is_told_by_the_ending_then_by_the_text() {
    for (file, text, want) in [
        ("a.json", "x = 1", Spelling::Json),
        ("a.TOML", "{}", Spelling::Toml),
        ("a", " \n{}", Spelling::Json),
        ("a.conf", "x = 1", Spelling::Toml),
        ("a.conf", "", Spelling::Toml),
    ] {
        assert_eq!(Spelling::of(Path::new(file), text), want, "{file} {text:?}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let top = FieldPath::default().field("a");
    assert_eq!(at("a.json", "\u{feff}{\"a\": 1}", &top), (1, 7));
    assert_eq!(at("a.toml", "\u{feff}a = 1", &top), (1, 5));
}

#[test]
fn numbers_keep_their_size() {
    let text = "a = 18446744073709551615\nb = -9223372036854775808\nc = 0x10\nd = 1e3\ne = 1_000";
    let Ok(Node {
        value: Value::Table(entries),
        ..
    }) = toml::parse(text)
    else {
        panic!("good TOML");
    };
    let shown: Vec<String> = entries
        .iter()
        .map(|entry| match entry.node.value {
            Value::Unsigned(number) => number.to_string(),
            Value::Signed(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            _ => "?".to_owned(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "18446744073709551615",
            "-9223372036854775808",
            "16",
            "1000.0",
            "1000"
        ]
    );
}
