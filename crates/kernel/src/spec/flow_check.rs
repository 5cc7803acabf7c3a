//! Checks that both ends can do what the description of a flow says.

use talkpath_model::{Demand, LEAST_DRAWN, MessageSize, WorkloadConfig};
use talkpath_units::Bytes;

use super::FlowSpec;
use crate::wire::FILE_HEADER;

impl FlowSpec {
    /// Checks that both ends can do what the spec says. The server checks it again, because anybody may send
    /// a session to it.
    ///
    /// # Errors
    /// Returns a text that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.check_demand()?;
        self.check_file()?;
        self.transport.check()?;
        self.check_message_sizes()
    }

    fn check_demand(&self) -> Result<(), String> {
        match self.workload.demand() {
            Demand::Clocked { messages: 0, .. } | Demand::Clocked { nanos: 0, .. } => {
                Err("a clocked workload needs a rate above zero".to_owned())
            }
            Demand::Greedy { bytes: None, .. } if !self.features().is_acknowledged => {
                Err("bulk over udp needs `bytes`: nothing would ever hold it back".to_owned())
            }
            Demand::Greedy { .. } if self.has_echo() => {
                Err("bulk and file have no echo: use voice, cbr or burst".to_owned())
            }
            Demand::Clocked { .. } | Demand::Bursts { .. } | Demand::Greedy { .. } => Ok(()),
        }
    }

    fn check_file(&self) -> Result<(), String> {
        let WorkloadConfig::File { bytes, size, header, .. } = self.workload else {
            return match self.file {
                None => Ok(()),
                Some(_) => Err(FILE_MISMATCH.to_owned()),
            };
        };
        // On a transport that keeps messages, each message has a header with the position of its bytes in the
        // file.
        let header_size = if self.features().keeps_messages { FILE_HEADER } else { 0 };
        if bytes == Bytes::ZERO || size <= header || header.get() != header_size {
            return Err("a file's messages must carry something of it".to_owned());
        }
        match &self.file {
            Some(file) => file.check(),
            None => Err(FILE_MISMATCH.to_owned()),
        }
    }

    fn check_message_sizes(&self) -> Result<(), String> {
        let most = self.transport.largest_message();
        let largest = self.workload.demand().largest_message().map_or(1, Bytes::get);
        if largest == 0 || largest > most {
            return Err(format!("a message of {largest} B does not fit: at least 1 B, at most {most} B"));
        }
        if let Some(MessageSize::Uniform { min, max }) = self.workload.sizes()
            && (min < LEAST_DRAWN || min > max)
        {
            return Err(format!(
                "messages of {min} to {max}: the least of sizes that vary is {LEAST_DRAWN} or more, and at most the \
                 most"
            ));
        }
        Ok(())
    }
}

const FILE_MISMATCH: &str = "a file workload has a file, and no other has";
