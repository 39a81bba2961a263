//! The two ways in which a vector's numbers are written.

use backstop_chat::{Encoding, Json, Vector};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::answer::Malformed;
use crate::json::{Array, Object};

const UNREADABLE: Malformed = Malformed::shape("a vector whose numbers cannot be read");

/// Puts a vector into `out` as the member `name`, written as `encoding` says.
pub(super) fn put(
    out: &mut Object<'_>,
    name: &str,
    vector: &Vector,
    encoding: Encoding,
) -> Result<(), Malformed> {
    match (vector, encoding) {
        (Vector::Numbers(numbers), Encoding::Float) => out.put(name, numbers),
        (Vector::Base64(text), Encoding::Base64) => out.put(name, text),
        (Vector::Numbers(numbers), Encoding::Base64) => out.put(name, &packed(numbers)?),
        (Vector::Base64(text), Encoding::Float) => out.put(name, &unpacked(text)?),
    }
    Ok(())
}

/// The same as an entry of an array: always as numbers.
pub(super) fn push(out: &mut Array<'_>, vector: &Vector) -> Result<(), Malformed> {
    match vector {
        Vector::Numbers(numbers) => out.put(numbers),
        Vector::Base64(text) => out.put(&unpacked(text)?),
    }
    Ok(())
}

/// 32-bit floats, the least significant byte first, in base64
/// (platform.openai.com/docs/api-reference/embeddings, and what its clients unpack).
fn packed(numbers: &Json) -> Result<String, Malformed> {
    let numbers: Vec<f32> = serde_json::from_str(numbers.as_str()).map_err(|_| UNREADABLE)?;
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    Ok(STANDARD.encode(bytes))
}

fn unpacked(text: &str) -> Result<Vec<f32>, Malformed> {
    let bytes = STANDARD.decode(text).map_err(|_| UNREADABLE)?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().copied().map(f32::from_le_bytes).collect();
    // JSON has no spelling for what is not a number.
    if !rest.is_empty() || numbers.iter().any(|number| !number.is_finite()) {
        return Err(UNREADABLE);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn json(text: &str) -> Json {
        let raw: &RawValue = serde_json::from_str(text).expect("JSON");
        Json::from(raw)
    }

    #[test]
    fn what_openai_s_clients_unpack_is_what_was_packed() {
        // struct.pack("<3f", 0.5, -1.25, 3.0e-2)
        assert_eq!(
            packed(&json("[0.5,-1.25,3.0e-2]")).as_deref(),
            Ok("AAAAPwAAoL+PwvU8")
        );
        assert_eq!(unpacked("AAAAPwAAoL+PwvU8"), Ok(vec![0.5, -1.25, 0.03]));
        for bad in ["AAAAPw", "AAAA", "AADAfw==", "not base64"] {
            assert_eq!(unpacked(bad), Err(UNREADABLE), "{bad}");
        }
        assert_eq!(packed(&json(r#"["x"]"#)), Err(UNREADABLE));
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same_to_the_bit(bits in proptest::collection::vec(any::<u32>(), 0..40)) {
            let numbers: Vec<f32> = bits.into_iter().map(f32::from_bits).filter(|n| n.is_finite()).collect();
            let written = serde_json::to_string(&numbers).expect("numbers");
            let back = unpacked(&packed(&json(&written)).expect("packed")).expect("unpacked");
            let bits = |all: &[f32]| all.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&numbers));
        }
    }
}
