//! The functions that the fuzz targets of `fuzz/` call. Each function takes bytes that one host sends to the
//! other, and asserts what must hold. The tests in this file give the committed corpora to these functions.

pub(crate) mod wire;

use talkpath_kernel::spec::SessionSpec;
use talkpath_wire::machine::Machines;

/// Takes bytes on a control connection, before and after the handshake. If bit 0 of the first byte is set, a
/// client receives the bytes, else a server.
pub fn control(bytes: &[u8], machines: Machines) {
    let Some((&first, said)) = bytes.split_first() else { return };
    if first & 1 == 0 {
        crate::server::fuzzing::hear(first >> 1, said, machines);
    } else {
        crate::client::fuzzing::hear(first >> 1, said);
    }
}

/// Takes bytes as the description of a session, which a server lets in or refuses.
pub fn session_plan(bytes: &[u8], machines: Machines) {
    if let Ok(spec) = serde_json::from_slice::<SessionSpec>(bytes) {
        crate::server::fuzzing::take(&spec, machines);
    }
}

/// Takes bytes as the answers to a sender of STAMP. The bytes are records of a length (1 B) and as many
/// bytes. If the length is odd, the answer gets the time stamp of the packet that it names, so that the
/// fuzzer need not guess it.
pub fn stamp_answers(bytes: &[u8]) {
    crate::stamp::receive_answers(bytes);
}

#[cfg(test)]
mod tests {
    use super::wire::line;
    use super::*;

    const MACHINES: Machines = Machines::made_by(talkpath_transport::new_machine);

    /// Reads the files that `fuzz/corpus` has for `target`.
    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    #[test]
    fn what_the_corpora_say_breaks_neither_end() {
        let (control, plans) = (corpus("live_control"), corpus("session_plan"));
        assert!(control.len() >= 8 && plans.len() >= 3, "{} and {}", control.len(), plans.len());
        control.iter().for_each(|bytes| super::control(bytes, MACHINES));
        plans.iter().for_each(|bytes| session_plan(bytes, MACHINES));
        assert!(plans.iter().any(|bytes| serde_json::from_slice::<SessionSpec>(bytes).is_ok()));
    }

    #[test]
    fn answers_of_the_corpus_break_no_sender_of_stamp() {
        let answers = corpus("stamp_answers");
        assert!(answers.len() >= 3, "{}", answers.len());
        answers.iter().for_each(|bytes| stamp_answers(bytes));
    }

    #[test]
    fn a_guest_of_the_corpus_is_let_in_and_a_stranger_is_not() {
        let session = line(&crate::protocol::Request::Session(SessionSpec {
            flows: Vec::new(),
            warm_up_ns: 0,
            duration_ns: 1,
            drain_ns: 0,
        }));
        use crate::server::fuzzing::{GUEST, INTRODUCED, KEYED, hear};
        let begins = |how| hear(how, &session, MACHINES);
        assert!(begins(INTRODUCED | GUEST) && begins(INTRODUCED | GUEST | KEYED));
        assert!(!begins(INTRODUCED | KEYED), "it is not sealed");
        assert!(!begins(GUEST) && !begins(GUEST | KEYED), "there was no hello");
    }
}
