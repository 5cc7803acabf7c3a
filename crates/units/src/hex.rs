//! Bytes as hexadecimal digits (RFC 4648 §8), in lower case.

/// Lower-case hexadecimal digits of `bytes`.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|n| DIGITS[usize::from(n)] as char).collect()
}

/// The `N` bytes that `text` writes in hexadecimal.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let high = (pair[0] as char).to_digit(16)?;
        let low = (pair[1] as char).to_digit(16)?;
        *byte = (high << 4 | low) as u8;
    }
    Some(bytes)
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(from_hex::<3>(&to_hex(&[0, 0x9f, 0xff])), Some([0, 0x9f, 0xff]));
        assert_eq!(from_hex::<2>("00zz"), None);
        assert_eq!(from_hex::<2>("00"), None);
    }
}
