//! Random bytes that nobody can foresee (getrandom(2)).

/// Reads `N` bytes from the kernel's random source.
///
/// # Errors
/// Returns the system's error if the kernel has no random numbers.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let count = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    // getrandom(2): requests of up to 256 B are never cut short.
    if count == N { Ok(bytes) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}
