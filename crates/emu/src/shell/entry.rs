//! The descriptors by which another process enters the network of a host.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::packet::Host;
use crate::world::{Means, Namespaces};

/// The descriptors by which a process enters the network of a host.
#[derive(Debug)]
pub struct HostEntry {
    /// The host's network namespace.
    network: OwnedFd,
    /// The user namespace that owns the network namespace. `None` if the process that made the network has
    /// the privilege to enter it as it is.
    user: Option<OwnedFd>,
}

impl HostEntry {
    /// Makes the entries of both hosts.
    pub(crate) fn both(namespaces: &Namespaces, means: Means) -> io::Result<[Self; 2]> {
        let entry = |host: Host| -> io::Result<Self> {
            let user = match means {
                Means::Privilege => None,
                Means::UserNamespace => Some(namespaces.user.try_clone()?),
            };
            Ok(Self { network: namespaces.hosts[host.index()].try_clone()?, user })
        };
        Ok([entry(Host::First)?, entry(Host::Second)?])
    }

    /// The descriptors in the order in which they are handed over.
    pub(super) fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        let all = [Some(&self.network), self.user.as_ref()];
        all.into_iter().flatten().map(|fd| fd.as_fd().try_clone_to_owned()).collect()
    }

    /// Makes the entry from the descriptors that [`HostEntry::descriptors`] returned. `None` if there are
    /// none.
    pub(super) fn from_descriptors(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        Some(Self { network: descriptors.next()?, user: descriptors.next() })
    }

    /// True if there is a user namespace that has to be entered first.
    pub(super) const fn has_user_namespace(&self) -> bool {
        self.user.is_some()
    }

    /// Enters the namespaces. The process must have one thread only (setns(2)).
    ///
    /// # Errors
    /// Returns the system's error.
    pub(super) fn enter(&self) -> io::Result<()> {
        let enter = |fd: &OwnedFd, kind| move_into_link_name_space(fd.as_fd(), Some(kind));
        if let Some(user) = &self.user {
            enter(user, LinkNameSpaceType::User)?;
        }
        Ok(enter(&self.network, LinkNameSpaceType::Network)?)
    }
}
