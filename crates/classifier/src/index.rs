//! Finding the first of many patterns in plain words.

use crate::words::{BREAK, Prose};

/// How many words a ` .. ` may stand for.
const GAP: usize = 6;

/// A text with its words found and hashed, so that many indexes can walk it.
pub(crate) struct Words {
    text: Vec<u8>,
    words: Vec<Word>,
    /// Which of the words may open a pattern, by number.
    openers: Vec<u16>,
}

#[derive(Clone, Copy)]
struct Word {
    at: u16,
    bucket: u16,
}

impl Words {
    /// The words of a text; those that no pattern begins with are passed over in every search.
    pub(crate) fn new(prose: Prose, openings: &Openings) -> Self {
        let text = prose.into_bytes();
        let mut words = Vec::with_capacity(text.len() / 5 + 2);
        let mut openers = Vec::with_capacity(16);
        let last = text.len().saturating_sub(1);
        for space in memchr::memchr_iter(b' ', &text[..last]) {
            let at = u16::try_from(space + 1).expect("prose is bounded to a few thousand bytes");
            let hash = hash(&text[space + 1..]);
            if openings.has(hash) {
                openers.push(u16::try_from(words.len()).expect("as many words as bytes at most"));
            }
            let bucket = bucket(hash);
            words.push(Word { at, bucket });
        }
        Self {
            text,
            words,
            openers,
        }
    }
}

/// How the patterns of some indexes begin, as a filter: a word that it does not have opens none of
/// them. A few hundred beginnings in 8,192 places let about one other word in twenty through.
pub(crate) struct Openings {
    places: Box<[u64]>,
}

impl Openings {
    /// The beginnings of all patterns in the indexes.
    pub(crate) fn of<'i>(indexes: impl Iterator<Item = &'i Index>) -> Self {
        let mut places = vec![0_u64; 1 << (PLACES - 6)].into_boxed_slice();
        for head in indexes.flat_map(|index| &index.heads.items) {
            let place = place(hash_of_part(&head.words));
            places[place / 64] |= 1 << (place % 64);
        }
        Self { places }
    }

    fn has(&self, hash: u32) -> bool {
        let place = place(hash);
        self.places[place / 64] >> (place % 64) & 1 == 1
    }
}

/// The filter's places are numbered by this many bits of a hash.
const PLACES: u32 = 13;

fn place(hash: u32) -> usize {
    usize::try_from(hash >> (32 - PLACES)).expect("13 bits")
}

/// How patterns are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patterns {
    /// `rate_limit_*`: the whole code, words at `_`, any words at `*`.
    Codes,
    /// `model .. not found`: anywhere, a gap at ` .. `, `^` at the start of a message.
    Phrases,
}

/// Finds the first of many patterns in a text, in one walk over its words.
///
/// Patterns that begin alike share a head, so that a common word (`model`) is met once, and only
/// the words behind it are compared with the many ways its patterns go on.
pub(crate) struct Index {
    heads: Buckets<Head>,
    /// Patterns of scripts that put no spaces between words.
    dense: Vec<(memchr::memmem::Finder<'static>, usize)>,
}

/// What stands before a gap, or a pattern without one.
struct Head {
    words: Box<[u8]>,
    /// The patterns that end here, in order.
    ends: Vec<End>,
    /// What may follow within the gap.
    tails: Buckets<Tail>,
    /// The lowest-numbered pattern of all that begin so.
    lowest: usize,
}

struct Tail {
    words: Box<[u8]>,
    end: End,
}

/// The end of a pattern.
#[derive(Clone, Copy)]
struct End {
    rule: usize,
    from_start: bool,
    to_end: bool,
}

/// A head while the index is built.
type Opening = (Box<[u8]>, Vec<End>, Vec<Tail>);

/// A pattern taken apart: its head, what follows its gap, how it ends.
type Parts = (Box<[u8]>, Option<Box<[u8]>>, End);

/// A search in progress.
struct Search<'t, F> {
    text: &'t [u8],
    words: &'t [Word],
    fits: F,
    best: usize,
}

impl Index {
    pub(crate) fn new(style: Patterns, patterns: impl Iterator<Item = &'static str>) -> Self {
        let mut heads: Vec<Opening> = Vec::new();
        let mut dense = Vec::new();
        for (rule, pattern) in patterns.enumerate() {
            if style == Patterns::Phrases && !pattern.is_ascii() {
                dense.push((memchr::memmem::Finder::new(pattern), rule));
                continue;
            }
            let (head, tail, end) = parts(style, pattern, rule);
            let at = heads.iter().position(|(words, ..)| *words == head);
            let at = at.unwrap_or_else(|| {
                heads.push((head, Vec::new(), Vec::new()));
                heads.len() - 1
            });
            match tail {
                Some(words) => heads[at].2.push(Tail { words, end }),
                None => heads[at].1.push(end),
            }
        }
        let heads = heads.into_iter().map(|(words, ends, tails)| Head {
            lowest: ends
                .iter()
                .chain(tails.iter().map(|tail| &tail.end))
                .map(|end| end.rule)
                .min()
                .expect("a head was made for a pattern"),
            tails: Buckets::new(tails, |tail| &tail.words),
            words,
            ends,
        });
        Self {
            heads: Buckets::new(heads.collect(), |head| &head.words),
            dense,
        }
    }

    /// The lowest-numbered pattern that occurs in the text and `fits`.
    pub(crate) fn first(&self, words: &Words, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let mut search = Search {
            text: &words.text,
            words: &words.words,
            fits,
            best: usize::MAX,
        };
        for i in words.openers.iter().map(|i| usize::from(*i)) {
            let word = words.words[i];
            for head in self.heads.of(word.bucket) {
                if head.lowest < search.best
                    && let Some(space) = part_at(&words.text, word.at.into(), &head.words)
                {
                    search.head(head, i, space);
                }
            }
        }
        if !self.dense.is_empty() && !words.text.is_ascii() {
            for (finder, rule) in &self.dense {
                let open = *rule < search.best && (search.fits)(*rule);
                if open && finder.find(&words.text).is_some() {
                    search.best = *rule;
                }
            }
        }
        (search.best != usize::MAX).then_some(search.best)
    }
}

impl<F: Fn(usize) -> bool> Search<'_, F> {
    /// A head begins with the word numbered `first` and ends before `space`.
    fn head(&mut self, head: &Head, first: usize, space: usize) {
        let word = self.words[first].at.into();
        for end in &head.ends {
            self.end(*end, word, space);
        }
        if head.tails.is_empty() {
            return;
        }
        let behind = self.words[first..]
            .iter()
            .skip_while(|word| usize::from(word.at) <= space);
        for next in behind.take(GAP + 1) {
            let at = next.at.into();
            for tail in head.tails.of(next.bucket) {
                if tail.end.rule < self.best
                    && let Some(space) = part_at(self.text, at, &tail.words)
                {
                    self.end(tail.end, word, space);
                }
            }
            if self.text[at..].starts_with(BREAK) {
                return;
            }
        }
    }

    /// A pattern began at `word` and ended before `space`.
    fn end(&mut self, end: End, word: usize, space: usize) {
        let text = self.text;
        let starts = || word == 1 || text[..word].ends_with(BREAK);
        let ends = || space + 1 == text.len() || text[space + 1..].starts_with(BREAK);
        if end.rule < self.best
            && (!end.from_start || starts())
            && (!end.to_end || ends())
            && (self.fits)(end.rule)
        {
            self.best = end.rule;
        }
    }
}

/// Takes a pattern apart.
fn parts(style: Patterns, pattern: &str, rule: usize) -> Parts {
    let boxed = |part: &str| part.trim().as_bytes().into();
    let (body, gap, from_start, to_end) = match style {
        Patterns::Phrases => {
            let body = pattern.strip_prefix('^').unwrap_or(pattern);
            (body.to_owned(), " .. ", pattern.starts_with('^'), false)
        }
        Patterns::Codes => {
            let body = pattern.trim_matches('*').replace('_', " ");
            (
                body,
                "*",
                !pattern.starts_with('*'),
                !pattern.ends_with('*'),
            )
        }
    };
    let end = End {
        rule,
        from_start,
        to_end,
    };
    match body.split_once(gap) {
        Some((head, tail)) => (boxed(head), Some(boxed(tail)), end),
        None => (boxed(&body), None, end),
    }
}

/// Items by a hash of their first bytes, in one allocation.
struct Buckets<T> {
    /// Where each bucket begins among the items; one more than there are buckets.
    starts: Box<[u16]>,
    items: Box<[T]>,
}

/// How many buckets there are: enough that most words meet an empty one.
const BUCKETS: usize = 512;

/// A hash of the first four bytes (Knuth's multiplicative one); 0 for fewer.
fn hash(text: &[u8]) -> u32 {
    text.first_chunk::<4>().map_or(0, |first| {
        u32::from_le_bytes(*first).wrapping_mul(0x9E37_79B1)
    })
}

/// The hash of a part of a pattern, which in a text is followed by a space.
fn hash_of_part(part: &[u8]) -> u32 {
    let mut padded = part.to_vec();
    padded.push(b' ');
    assert!(
        padded.len() >= 4,
        "a pattern opens with four bytes that no text varies"
    );
    hash(&padded)
}

fn bucket(hash: u32) -> u16 {
    u16::try_from(hash >> 23).expect("nine bits")
}

impl<T> Buckets<T> {
    fn new(items: Vec<T>, words: impl Fn(&T) -> &[u8]) -> Self {
        if items.is_empty() {
            return Self {
                starts: Box::default(),
                items: Box::default(),
            };
        }
        let place = |item: &T| bucket(hash_of_part(words(item)));
        let mut placed: Vec<(u16, T)> =
            items.into_iter().map(|item| (place(&item), item)).collect();
        placed.sort_by_key(|(bucket, _)| *bucket);
        let start = |at: usize| placed.partition_point(|(bucket, _)| usize::from(*bucket) < at);
        let starts = (0..=BUCKETS)
            .map(|at| u16::try_from(start(at)).expect("a table has some hundred rows"))
            .collect();
        Self {
            starts,
            items: placed.into_iter().map(|(_, item)| item).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items whose first bytes hash so.
    fn of(&self, bucket: u16) -> &[T] {
        let at = usize::from(bucket);
        if self.items.is_empty() {
            return &[];
        }
        &self.items[usize::from(self.starts[at])..usize::from(self.starts[at + 1])]
    }
}

/// The space behind `part`, when it stands at `word` and ends where a word ends.
fn part_at(text: &[u8], word: usize, part: &[u8]) -> Option<usize> {
    let end = word + part.len();
    (text.get(word..end) == Some(part) && text.get(end) == Some(&b' ')).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(index: &Index, text: &str) -> Option<usize> {
        let openings = Openings::of(std::iter::once(index));
        index.first(&Words::new(Prose::from_words(text), &openings), |_| true)
    }

    #[test]
    fn the_first_pattern_wins_and_gaps_are_bounded() {
        let patterns = ["model .. not found", "^model", "not found"];
        let index = Index::new(Patterns::Phrases, patterns.into_iter());
        for (text, want) in [
            (" the model a not found ", Some(0)),
            (" the model a b c d e f g not found ", Some(2)),
            (" the model | not found ", Some(2)),
            (" model x ", Some(1)),
            (" models x ", None),
            (" a | model x ", Some(1)),
        ] {
            assert_eq!(first(&index, text), want, "{text}");
        }
    }

    #[test]
    fn code_patterns_are_whole_unless_starred() {
        let patterns = ["rate_limit", "*spend_*", "api_key*invalid"];
        let index = Index::new(Patterns::Codes, patterns.into_iter());
        for (text, want) in [
            (" rate limit ", Some(0)),
            (" rate limit exceeded ", None),
            (" org spend limit ", Some(1)),
            (" api key is invalid ", Some(2)),
            (" api key is invalid now ", None),
        ] {
            assert_eq!(first(&index, text), want, "{text}");
        }
    }
}
