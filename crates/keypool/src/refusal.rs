//! What a provider has against a key.

/// Why a key was refused, as far as the pool is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// For good: this request does not ask the key again, and the failed attempt is granted, not
    /// charged.
    Permanent(Permanent),
    /// For now: this request may ask it again once it has asked every other living key.
    RateLimited,
}

/// Why a key was refused for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permanent {
    /// The key itself was rejected.
    Credential,
    /// Its account is out of credit.
    Quota,
    /// It cannot reach the model.
    ModelAccess,
    /// The provider retired the model.
    ModelGone,
    /// It is refused where it comes from.
    RegionBlocked,
    /// Moderation or a guardrail refused the content; another key may be set otherwise. Walks the
    /// keys like the others, and holds none of them for later requests.
    ContentPolicy,
}

impl Permanent {
    /// Whether the account is to blame, whatever the model: when every key died so, the caller is
    /// told about our credentials and not about its own.
    #[must_use]
    pub const fn is_about_the_account(self) -> bool {
        matches!(self, Self::Credential | Self::Quota)
    }
}
