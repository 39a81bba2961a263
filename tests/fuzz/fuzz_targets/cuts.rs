//! How an input is cut into chunks.

/// `body` in pieces of 1 to 16 bytes, and now and then an empty one; `seed` says which.
pub fn cut(body: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut state = u32::from(seed) + 1;
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        // Numbers spread well enough (Numerical Recipes, 7.1).
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (head, tail) = rest.split_at(rest.len().min((state >> 24) as usize % 17));
        rest = tail;
        Some(head)
    })
}
