//! Makes the hosts of an emulated path: their namespaces, the cables between them, and the rings in which the
//! kernel leaves the packets of the cables.
//!
//! | file | what it does |
//! | --- | --- |
//! | `fork` | namespaces, and descriptors handed from process to process |
//! | `netlink` | the requests to rtnetlink(7) |
//! | `cable` | the hosts' devices, addresses and routes |
//! | `mounts` | files that a program of the user sees in the place of this machine's |
//! | `path_manager` | the further paths of the hosts' connections |
//! | `ring` | the emulator's end of a cable |

pub mod cable;
pub mod fork;
pub mod mounts;
pub mod netlink;
pub mod path_manager;
pub mod ring;
