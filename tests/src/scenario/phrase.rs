//! Phrases with holes: how the words of a scenario find the check that they name.

/// What stood in the holes of a phrase.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holes<'t>(Vec<(&'static str, &'t str)>);

impl<'t> Holes<'t> {
    /// What stood in the hole `name`; empty when the phrase has none of that name.
    pub(crate) fn text(&self, name: &str) -> &'t str {
        let found = self.0.iter().find(|(hole, _)| *hole == name);
        found.map_or("", |(_, text)| text)
    }

    /// Whether the phrase has the hole `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(hole, _)| *hole == name)
    }

    /// The number in the hole `name`, in figures or as a word (`two`, `second`); `None` when it is
    /// none.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        const CARDINALS: [&str; 8] = [
            "zero", "one", "two", "three", "four", "five", "six", "seven",
        ];
        const ORDINALS: [&str; 8] = [
            "zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh",
        ];
        let text = self.text(name);
        let mut words = CARDINALS.iter().zip(ORDINALS);
        let word = words.position(|(cardinal, ordinal)| [*cardinal, ordinal].contains(&text));
        text.parse().ok().or(word.map(|at| at as u64))
    }
}

/// Reads `text` by `pattern`. In the pattern `<name>` stands for one word, `<name..>` for any text,
/// `*` for any text or none; everything else for itself.
pub(crate) fn read<'t>(pattern: &'static str, text: &'t str) -> Option<Holes<'t>> {
    let mut holes = Vec::new();
    matches(pattern, text, &mut holes).then_some(Holes(holes))
}

fn matches<'t>(
    pattern: &'static str,
    text: &'t str,
    holes: &mut Vec<(&'static str, &'t str)>,
) -> bool {
    let Some(at) = pattern.find(['<', '*']) else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(&pattern[..at]) else {
        return false;
    };
    let pattern = &pattern[at..];
    if let Some(after) = pattern.strip_prefix('*') {
        return cuts(rest).any(|cut| matches(after, &rest[cut..], holes));
    }
    let Some((hole, after)) = pattern[1..].split_once('>') else {
        return false;
    };
    let (name, wide) = match hole.strip_suffix("..") {
        Some(name) => (name, true),
        None => (hole, false),
    };
    let kept = holes.len();
    for cut in cuts(rest).skip(1) {
        let word = &rest[..cut];
        if !wide && word.ends_with(|c: char| c.is_whitespace() || c == ',') {
            break;
        }
        holes.truncate(kept);
        holes.push((name, word));
        if matches(after, &rest[cut..], holes) {
            return true;
        }
    }
    holes.truncate(kept);
    false
}

/// Every place at which a text may be cut in two.
fn cuts(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_reads_words_and_texts() {
        for (pattern, text, want) in [
            ("a call to <u>", "a call to beta", Some("u=beta")),
            ("a call to <u>", "a call to beta with it", None),
            ("a call to <u> *", "a call to beta with it", Some("u=beta")),
            ("text '<t..>'", "text 'and sun.'", Some("t=and sun.")),
            ("text '<t..>' *", "text '潮!' in one", Some("t=潮!")),
            ("[DONE]", "[DONE]", Some("")),
            ("<a>: <b..>", "x: y z", Some("a=x b=y z")),
        ] {
            let found = read(pattern, text).map(|holes| {
                let holes = holes.0.iter().map(|(name, text)| format!("{name}={text}"));
                holes.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref(), want, "{pattern} | {text}");
        }
        let holes = read("more than <n> calls", "more than two calls").unwrap();
        assert_eq!(holes.number("n"), Some(2));
    }
}
