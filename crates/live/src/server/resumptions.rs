//! Sessions whose client comes back on a new control connection, because its host has another address now.
//!
//! The client shows the secret of its session: 16 random bytes that the server gave it over the first control
//! connection, so a stranger cannot guess them. With a key, that connection was sealed, and the new one has
//! shown the key as well. A session may be resumed [`MOST`] times.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talkpath_kernel::random::random;
use talkpath_kernel::wire::Secret;

use crate::protocol::{Control, Request};

/// The number of times that a session may be resumed. We chose 16, so that a host which changes its address
/// every minute has a quarter of an hour.
const MOST: u32 = 16;

/// The sessions that may be resumed, by their secrets.
#[derive(Default)]
pub(super) struct Resumptions(Mutex<BTreeMap<Secret, Arc<Resumption>>>);

/// The place for the next control connection of a session.
#[derive(Default)]
pub(super) struct Resumption(Mutex<Place>);

#[derive(Default)]
struct Place {
    next: Option<(Control<Request>, SocketAddr)>,
    /// How often a connection was put here.
    count: u32,
}

impl Resumptions {
    /// Opens a place for a new session. Returns its secret and the place.
    ///
    /// # Errors
    /// Returns the system's error if it gives no random bytes.
    pub(super) fn open(&self) -> io::Result<(Secret, Arc<Resumption>)> {
        let secret = Secret(random::<16>()?);
        let place = Arc::<Resumption>::default();
        lock(&self.0).insert(secret, Arc::clone(&place));
        Ok((secret, place))
    }

    /// Closes the place of a session that is over.
    pub(super) fn close(&self, secret: &Secret) {
        lock(&self.0).remove(secret);
    }

    /// Gives the session with `secret` the control connection of a client at `from`. Returns the connection
    /// if there is no such session, or if the session was resumed too often.
    pub(super) fn resume(
        &self,
        secret: &Secret,
        control: Control<Request>,
        from: SocketAddr,
    ) -> Option<Control<Request>> {
        let Some(place) = lock(&self.0).get(secret).cloned() else { return Some(control) };
        let mut place = lock(&place.0);
        if place.count >= MOST {
            return Some(control);
        }
        place.count += 1;
        // A connection that the session has not taken yet is closed: the client has opened another one since.
        place.next = Some((control, from));
        None
    }
}

impl Resumption {
    /// Takes the next control connection and its client's address, if the client has come back.
    pub(super) fn take(&self) -> Option<(Control<Request>, SocketAddr)> {
        lock(&self.0).next.take()
    }
}

/// The address of a session's client. All flows of the session share it.
pub(super) struct ClientAddress(Mutex<IpAddr>);

impl ClientAddress {
    pub(super) fn new(address: IpAddr) -> Self {
        Self(Mutex::new(address.to_canonical()))
    }

    pub(super) fn get(&self) -> IpAddr {
        *lock(&self.0)
    }

    /// Sets the address. Returns the one before.
    pub(super) fn set(&self, address: IpAddr) -> IpAddr {
        std::mem::replace(&mut *lock(&self.0), address.to_canonical())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::wire::pair;
    use crate::protocol::OPENING_LIMIT;

    #[test]
    fn only_the_secret_of_a_session_gives_it_a_connection_and_only_so_often() {
        let sessions = Resumptions::default();
        let (secret, place) = sessions.open().unwrap();
        let control = || Control::new(pair().unwrap().1, OPENING_LIMIT).unwrap();
        let from = SocketAddr::from(([192, 0, 2, 7], 5000));
        let mut wrong = secret;
        wrong.0[15] ^= 1;
        assert!(sessions.resume(&wrong, control(), from).is_some() && place.take().is_none());
        for _ in 0..MOST {
            assert!(sessions.resume(&secret, control(), from).is_none());
            assert!(place.take().is_some_and(|(_, client)| client == from) && place.take().is_none());
        }
        assert!(sessions.resume(&secret, control(), from).is_some(), "too often");
        let (secret, _) = sessions.open().unwrap();
        sessions.close(&secret);
        assert!(sessions.resume(&secret, control(), from).is_some(), "it is over");
    }
}
