//! CRC-64/NVME for object_store, in the place of the crate of this name, whose tables for other checksums are
//! 0.7 MB of a program that calls none of them.
//!
//! The checksum is that of the NVM Command Set Specification of NVM Express (64b CRC). A request to S3 has it
//! only if `AWS_CHECKSUM_ALGORITHM` names it. Left out: all other checksums, and vector instructions.

/// The checksums that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrcAlgorithm {
    /// CRC-64/NVME.
    Crc64Nvme,
}

/// The checksum of what came so far.
#[derive(Clone, Debug)]
pub struct Digest {
    state: u64,
}

impl Digest {
    /// Of nothing.
    #[must_use]
    pub fn new(algorithm: CrcAlgorithm) -> Self {
        match algorithm {
            CrcAlgorithm::Crc64Nvme => Self { state: !0 },
        }
    }

    /// Goes on with `data`.
    pub fn update(&mut self, data: &[u8]) {
        for &byte in data {
            let index = (self.state as u8 ^ byte) as usize;
            self.state = TABLE[index] ^ (self.state >> 8);
        }
    }

    /// The checksum.
    #[must_use]
    pub fn finalize(&self) -> u64 {
        !self.state
    }
}

/// 0xad93d23594c93659 with its bits in the order in which they are sent.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;

/// What each byte does to the state.
static TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut state = index as u64;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 == 1 { (state >> 1) ^ POLYNOMIAL } else { state >> 1 };
            bit += 1;
        }
        table[index] = state;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_comes_out() {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
        digest.update(b"1234");
        digest.update(b"56789");
        assert_eq!(digest.finalize(), 0xae8b_1486_0a79_9888);
    }
}
