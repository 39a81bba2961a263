//! The dialect that an input's first byte names, the same for every target.

use backstop_dialects::{Dialect, Stamp};

/// Each dialect with its letter. Letters never change meaning: kept inputs begin with them.
pub const DIALECTS: [(u8, Dialect); 6] = [
    (b'c', Dialect::OpenAiChat),
    (b'r', Dialect::OpenAiResponses),
    (b'a', Dialect::AnthropicMessages),
    (b'g', Dialect::Gemini),
    (b'o', Dialect::CohereV2),
    (b'b', Dialect::BedrockConverse),
];

/// What the gateway fills in where a provider says nothing.
pub const STAMP: Stamp<'static> = Stamp {
    id: "ours",
    model: "asked",
    created: 1_700_000_000,
};

/// The dialect of a letter; any other byte names one, too.
pub fn dialect(letter: u8) -> Dialect {
    let named = DIALECTS.iter().find(|(known, _)| *known == letter);
    named
        .unwrap_or(&DIALECTS[usize::from(letter) % DIALECTS.len()])
        .1
}

/// Panics when what was made of `input` bytes is out of all proportion.
pub fn in_proportion(input: usize, output: usize) {
    let most = 64 * input + 64 * 1024;
    assert!(output <= most, "{input} bytes became {output}");
}
