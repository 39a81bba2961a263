//! Finding the first of many patterns in plain words.

use std::collections::HashMap;

use crate::words::{BREAK, Prose};

/// How many words a ` .. ` may stand for.
const GAP: usize = 6;

/// A text with its words found and hashed, so that many indexes can walk it.
pub(crate) struct Words {
    text: Vec<u8>,
    words: Vec<Word>,
    /// The words that may open a pattern, with the hash of its head.
    openers: Vec<Opener>,
}

#[derive(Clone, Copy)]
struct Opener {
    /// The word's number.
    word: u16,
    hash: u32,
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
            let word = u16::try_from(words.len()).expect("as many words as bytes at most");
            let rest = &text[space + 1..];
            let mut short = 0;
            for (tier, hash) in hashes(rest).enumerate() {
                if tier == 0 {
                    short = bucket(hash);
                }
                if openings.has(hash) {
                    openers.push(Opener { word, hash });
                }
            }
            words.push(Word { at, bucket: short });
        }
        Self {
            text,
            words,
            openers,
        }
    }
}

/// How the patterns of some indexes begin, as a filter: a word that it does not have opens none of
/// them. A thousand beginnings in 16,384 places let about one other word in twenty through.
pub(crate) struct Openings {
    places: Box<[u64]>,
}

impl Openings {
    /// The beginnings of all patterns in the indexes.
    pub(crate) fn of<'i>(indexes: impl Iterator<Item = &'i Index>) -> Self {
        let mut places = vec![0_u64; 1 << (PLACES - 6)].into_boxed_slice();
        for head in indexes.flat_map(|index| &index.heads.items) {
            let place = place(head.hash);
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
const PLACES: u32 = 14;

fn place(hash: u32) -> usize {
    usize::try_from(hash >> (32 - PLACES)).expect("14 bits")
}

/// How patterns are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patterns {
    /// `rate_limit_*`: the whole code, words at `_`, any words at `*`.
    Codes,
    /// `model .. not found`: anywhere, a gap at ` .. `, `^` at the start of a message and `$` at its
    /// end, alternatives as in `(api key|token) .. expired`.
    Phrases,
}

/// Finds the first of many patterns in a text, in one walk over its words.
///
/// Patterns that begin alike share a head, so that a common word (`model`) is met once, and only
/// the words behind it are compared with the many ways its patterns go on.
pub(crate) struct Index {
    heads: Buckets<Head>,
    /// Patterns of scripts that put no spaces between words.
    dense: Vec<(memchr::memmem::Finder<'static>, Hit)>,
    /// Every spelling of every pattern.
    spellings: Vec<Box<str>>,
}

/// A pattern that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hit {
    /// Its number among the patterns.
    pub(crate) rule: usize,
    /// Which of its spellings.
    spelling: usize,
}

/// What stands before a gap, or a pattern without one.
struct Head {
    hash: u32,
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
    hit: Hit,
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
    best: Option<Hit>,
}

impl Index {
    pub(crate) fn new(style: Patterns, patterns: impl Iterator<Item = &'static str>) -> Self {
        let mut heads: Vec<Opening> = Vec::new();
        let mut places = HashMap::new();
        let mut dense = Vec::new();
        let mut written: Vec<Box<str>> = Vec::new();
        for (rule, pattern) in patterns.enumerate() {
            if style == Patterns::Phrases && !pattern.is_ascii() {
                let spelling = written.len();
                written.push(pattern.into());
                dense.push((memchr::memmem::Finder::new(pattern), Hit { rule, spelling }));
                continue;
            }
            for text in spellings(pattern) {
                let spelling = written.len();
                let (head, tail, end) = parts(style, &text, Hit { rule, spelling });
                written.push(text.into());
                let at = *places.entry(head.clone()).or_insert_with(|| {
                    heads.push((head, Vec::new(), Vec::new()));
                    heads.len() - 1
                });
                match tail {
                    Some(words) => heads[at].2.push(Tail { words, end }),
                    None => heads[at].1.push(end),
                }
            }
        }
        let heads = heads.into_iter().map(|(words, ends, tails)| Head {
            lowest: ends
                .iter()
                .chain(tails.iter().map(|tail| &tail.end))
                .map(|end| end.hit.rule)
                .min()
                .expect("a head was made for a pattern"),
            hash: longest_hash(&words),
            tails: Buckets::new(tails, |tail| short_hash(&tail.words)),
            words,
            ends,
        });
        Self {
            heads: Buckets::new(heads.collect(), |head| head.hash),
            dense,
            spellings: written,
        }
    }

    /// How the pattern was spelled that was found, without its alternatives.
    pub(crate) fn spelling(&self, hit: Hit) -> &str {
        &self.spellings[hit.spelling]
    }

    /// The lowest-numbered pattern that occurs in the text and `fits`.
    pub(crate) fn first(&self, words: &Words, fits: impl Fn(usize) -> bool) -> Option<Hit> {
        let mut search = Search {
            text: &words.text,
            words: &words.words,
            fits,
            best: None,
        };
        for opener in &words.openers {
            let i = usize::from(opener.word);
            let word = words.words[i];
            for head in self.heads.of(bucket(opener.hash)) {
                if head.hash == opener.hash
                    && search.improves(head.lowest)
                    && let Some(space) = part_at(&words.text, word.at.into(), &head.words)
                {
                    search.head(head, i, space);
                }
            }
        }
        if !self.dense.is_empty() && !words.text.is_ascii() {
            for (finder, hit) in &self.dense {
                let open = search.improves(hit.rule) && (search.fits)(hit.rule);
                if open && finder.find(&words.text).is_some() {
                    search.best = Some(*hit);
                }
            }
        }
        search.best
    }
}

impl<F: Fn(usize) -> bool> Search<'_, F> {
    /// Whether the rule stands above the best one so far.
    fn improves(&self, rule: usize) -> bool {
        self.best.is_none_or(|best| rule < best.rule)
    }

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
                if self.improves(tail.end.hit.rule)
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
        if self.improves(end.hit.rule)
            && (!end.from_start || starts())
            && (!end.to_end || ends())
            && (self.fits)(end.hit.rule)
        {
            self.best = Some(end.hit);
        }
    }
}

/// The pattern once for every choice among its `(alternatives|in brackets)`.
fn spellings(pattern: &str) -> Vec<String> {
    let group = pattern.split_once('(').and_then(|(before, rest)| {
        let (choices, after) = rest.split_once(')')?;
        Some((before, choices, after))
    });
    let Some((before, choices, after)) = group else {
        return vec![pattern.to_owned()];
    };
    choices
        .split('|')
        .flat_map(|choice| spellings(&format!("{before}{choice}{after}")))
        .collect()
}

/// Takes a pattern apart.
fn parts(style: Patterns, pattern: &str, hit: Hit) -> Parts {
    let boxed = |part: &str| part.trim().as_bytes().into();
    let (body, gap, from_start, to_end) = match style {
        Patterns::Phrases => {
            let body = pattern.trim_start_matches('^').trim_end_matches('$');
            (
                body.to_owned(),
                " .. ",
                pattern.starts_with('^'),
                pattern.ends_with('$'),
            )
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
        hit,
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

/// Hashes of the first 4, 8 and 12 bytes, as many as there are (multiplicative, by the golden
/// ratio). Heads share first words, so that a longer hash tells apart what a shorter one would leave
/// to comparing.
fn hashes(text: &[u8]) -> impl Iterator<Item = u32> {
    let (fours, _) = text.as_chunks::<4>();
    fours.iter().take(3).scan(0_u32, |hash, four| {
        *hash = (hash.rotate_left(15) ^ u32::from_le_bytes(*four)).wrapping_mul(0x9E37_79B1);
        Some(*hash)
    })
}

/// The hash of a pattern's part, which in a text is followed by a space, over the first four bytes.
fn short_hash(part: &[u8]) -> u32 {
    let hash = hashes(&padded(part)).next();
    hash.expect("a part is four bytes that no text varies, or more")
}

/// The same over as many bytes as the part has, up to twelve.
fn longest_hash(part: &[u8]) -> u32 {
    let hash = hashes(&padded(part)).last();
    hash.expect("a part is four bytes that no text varies, or more")
}

fn padded(part: &[u8]) -> Vec<u8> {
    [part, b" "].concat()
}

fn bucket(hash: u32) -> u16 {
    u16::try_from(hash >> 23).expect("nine bits")
}

impl<T> Buckets<T> {
    fn new(items: Vec<T>, hash: impl Fn(&T) -> u32) -> Self {
        if items.is_empty() {
            return Self {
                starts: Box::default(),
                items: Box::default(),
            };
        }
        let place = |item: &T| bucket(hash(item));
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
        let hit = index.first(&Words::new(Prose::from_words(text), &openings), |_| true)?;
        Some(hit.rule)
    }

    #[test]
    fn the_first_pattern_wins_and_gaps_are_bounded() {
        let patterns = [
            "model .. not found",
            "^model",
            "not found",
            "(old key|old token) .. (expired|no longer valid)$",
        ];
        let index = Index::new(Patterns::Phrases, patterns.into_iter());
        for (text, want) in [
            (" the model a not found ", Some(0)),
            (" the model a b c d e f g not found ", Some(2)),
            (" the model | not found ", Some(2)),
            (" model x ", Some(1)),
            (" models x ", None),
            (" a | model x ", Some(1)),
            (" an old key expired ", Some(3)),
            (" an old token of ours is no longer valid ", Some(3)),
            (" an old key expired today ", None),
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
