//! A short hash of octets: equal on every machine and in every version, and no protection.

/// FNV-1a, 64 bits (draft-eastlake-fnv: offset basis and prime).
pub fn fnv1a(octets: impl IntoIterator<Item = u8>) -> u64 {
    octets.into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_hashes_that_the_draft_prints() {
        assert_eq!(fnv1a([]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(*b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(*b"foobar"), 0x8594_4171_f739_67e8);
    }
}
