//! The messages of the control protocol.

use serde::{Deserialize, Serialize};
use talkpath_kernel::end::{Fingerprint, HostKeys};
use talkpath_kernel::log::Chunk;
use talkpath_kernel::progress::EndProgress;
use talkpath_kernel::spec::{SessionSpec, TransportSpec};
use talkpath_kernel::tag::TagKey;
use talkpath_kernel::udp_drops::UdpDrops;
use talkpath_units::from_hex;

use super::HELLO_SIZE;
use super::registrations::Registrations;

/// A message of the client. `hello` opens a control connection, and `data` opens the connection of a flow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Opens a control connection.
    Hello {
        /// The client's [`VERSION`](super::VERSION).
        version: u32,
        /// The first message of the handshake (seal.rs) in hexadecimal; empty without a key. The field is
        /// called `nonce` on the wire, so that servers up to version 7 can read the hello and can say which
        /// version they speak.
        #[serde(rename = "nonce")]
        opening: String,
        /// Characters that make the line longer than [`HELLO_SIZE`] bytes.
        filling: String,
    },
    /// Opens a TCP flow's data connection.
    Data {
        /// The flow's secret, in hexadecimal.
        secret: String,
    },
    /// Describes the run that the client wants.
    Session(SessionSpec),
    /// Continues a session whose client has another address, on this new control connection.
    Resume {
        /// The session's secret, in hexadecimal.
        secret: String,
    },
    /// Requests a reading of the server's clock.
    Probe {
        /// A number that the answer repeats.
        number: u32,
    },
    /// Requests the addresses from which flows over UDP registered.
    Registrations,
    /// Says when the run begins.
    Go {
        /// The beginning of the run on the server's clock, ns since 1970.
        start_ns: i64,
    },
    /// Requests the progress of the flows. It also shows the server that the client is alive.
    Ask,
    /// Says that the run is over.
    Stop,
    /// Requests the server's log of a flow.
    Report {
        /// The index of the flow in the session.
        flow: u32,
    },
    /// Ends the session.
    Bye,
}

/// A message of the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Accepts the hello.
    Welcome {
        /// The server's message of the handshake (seal.rs), if there is a key.
        answer: Option<String>,
    },
    /// Refuses the hello or the session.
    Refused {
        /// The reason, in words for a person.
        why: String,
        /// The index of the flow that the refusal is about, if it is about a single flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<u32>,
    },
    /// Refuses the session for now, because too few seats or too little memory is left.
    Busy {
        /// The reason, in words for a person.
        why: String,
    },
    /// Accepts the session.
    Ready {
        /// The admission of each flow, in the session's order.
        flows: Vec<Admission>,
        /// The options that the server cannot set, in words for a person.
        warnings: Vec<String>,
        /// The ports on which the server takes UDP at this address, if it offers more than one (`serve
        /// --also`).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ports: Vec<u16>,
        /// The session's secret, with which its client may continue it from another address: 16 random bytes
        /// in hexadecimal.
        #[serde(default)]
        resume: String,
    },
    /// Continues the session on this control connection.
    Resumed,
    /// Gives a reading of the server's clock.
    Probe {
        /// The number of the request.
        number: u32,
        /// When the server read the request, ns since 1970 on the server's clock.
        received_ns: i64,
        /// When the server wrote this answer, ns since 1970 on the server's clock.
        sent_ns: i64,
    },
    /// Gives the registrations of flows over UDP.
    Registrations(Registrations),
    /// Confirms the beginning of the run.
    Going {
        /// The beginning of the run on the server's clock, ns since 1970. It is later than requested if the
        /// requested time was past.
        start_ns: i64,
    },
    /// Gives the progress of the flows. Its two time stamps also make it a probe of the server's clock.
    Progress {
        /// The progress of each flow, in the session's order.
        flows: Vec<EndProgress>,
        /// When the server read the request, ns since 1970 on the server's clock.
        received_ns: i64,
        /// When the server wrote this answer, ns since 1970 on the server's clock.
        sent_ns: i64,
        /// The reason why the server wants the run to end, if there is one.
        trouble: Option<String>,
    },
    /// Confirms the end of the run.
    Stopped {
        /// The lateness of the server's pacer: p50, p99 and maximum, ns. Absent if it paced nothing.
        lateness_ns: Option<[u64; 3]>,
        /// The number of datagrams that the receiving sockets dropped, and the known causes.
        drops: UdpDrops,
        /// The registrations of the whole session.
        registrations: Registrations,
    },
    /// Gives a part of a flow's log.
    Rows(Box<Chunk>),
    /// Says that the flow's log is complete.
    End,
}

/// The secret and the keys with which a client joins a flow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Admission {
    /// The flow's secret, 16 random bytes in hexadecimal.
    pub(crate) secret: String,
    /// The token that each datagram of the flow carries.
    pub(crate) token: u32,
    /// The key of the tags of the flow's datagrams, 32 random bytes in hexadecimal. Absent without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag_key: Option<String>,
    /// The SHA-256 of the certificate that the server shows on the flow's QUIC connection, in hexadecimal.
    /// All flows of one connection have the same certificate. Absent for other transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<String>,
}

impl Admission {
    /// Returns the keys of the client's end of a flow. Returns `None` if the transport is not QUIC, because
    /// it needs no keys.
    ///
    /// # Errors
    /// Returns what is wrong with the admission if a QUIC flow has no certificate.
    pub(crate) fn quic_keys(&self, transport: &TransportSpec) -> Result<Option<HostKeys>, &'static str> {
        if !matches!(transport, TransportSpec::Quic(_)) {
            return Ok(None);
        }
        match self.certificate.as_deref().and_then(from_hex::<32>) {
            Some(octets) => Ok(Some(HostKeys::Client(Fingerprint(octets)))),
            None => Err("a QUIC flow has no certificate"),
        }
    }

    /// Returns the key of the tags of the flow's datagrams. Returns `None` if the datagrams have no tags.
    ///
    /// # Errors
    /// Returns what is wrong with the admission if the session is sealed and there is no valid key, or if it
    /// is not sealed and there is a key.
    pub(crate) fn tag_key(&self, is_sealed: bool) -> Result<Option<TagKey>, &'static str> {
        match (&self.tag_key, is_sealed) {
            (None, false) => Ok(None),
            (Some(key), true) => from_hex::<32>(key).map(|key| Some(TagKey(key))).ok_or(NO_TAG_KEY),
            (None, true) | (Some(_), false) => Err(NO_TAG_KEY),
        }
    }
}

const NO_TAG_KEY: &str = "a flow has no key for its datagrams";

impl Request {
    /// Makes a hello whose filling has [`HELLO_SIZE`] bytes.
    pub(crate) fn hello(version: u32, opening: &str) -> Self {
        Self::Hello { version, opening: opening.to_owned(), filling: ".".repeat(HELLO_SIZE) }
    }
}
