//! A caller's key: made once, shown once, kept as a hash.

use std::fmt;
use std::str::FromStr;

use backstop_units::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Error;

/// How our keys begin, so that scanners for leaked secrets can find them.
const PREFIX: &str = "bsk-";
/// How a hash is spelled in configuration.
const SCHEME: &str = "sha256:";

/// A new key from 32 bytes of the driver's chance: 256 bits, so a plain hash of it cannot be
/// searched for.
#[must_use]
pub fn mint(chance: &[u8; 32]) -> Secret {
    let mut key = PREFIX.to_owned();
    URL_SAFE_NO_PAD.encode_string(chance, &mut key);
    Secret::new(key)
}

/// The SHA-256 of a caller's key: what is stored, looked up and shown in lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// The hash of a key as it was presented.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// Whether both are the same, in time that does not depend on where they differ.
    #[must_use]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell two apart in a log.
        write!(
            f,
            "{SCHEME}{:02x}{:02x}{:02x}…",
            self.0[0], self.0[1], self.0[2]
        )
    }
}

impl FromStr for KeyHash {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text.strip_prefix(SCHEME).ok_or(Error::Hash)?.as_bytes();
        let mut hash = [0; 32];
        if digits.len() != 64 {
            return Err(Error::Hash);
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(Error::Hash);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).map_err(|_| Error::Hash)?;
        }
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back_as_it_is_spelled() {
        let hash = KeyHash::of("abc");
        let text = hash.to_string();
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            text,
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(text.parse(), Ok(hash));
        assert!(!format!("{hash:?}").contains("cfea"));
        let upper = text.to_uppercase().replace("SHA256", "sha256");
        assert_eq!(upper.parse(), Ok(hash));
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        let short = "sha256:ba78".to_owned();
        let bare = KeyHash::of("abc").to_string()[7..].to_owned();
        let odd = format!("sha256:{}", "g".repeat(64));
        let wide = format!("sha256:{}", "é".repeat(32));
        for text in [short, bare, odd, wide, String::new()] {
            assert_eq!(text.parse::<KeyHash>(), Err(Error::Hash), "{text}");
        }
    }

    #[test]
    fn a_minted_key_is_long_and_marked() {
        let key = mint(&[7; 32]);
        assert!(key.expose().starts_with(PREFIX));
        assert_eq!(key.expose().len(), PREFIX.len() + 43);
        assert!(!mint(&[8; 32]).is(key.expose()));
    }
}
