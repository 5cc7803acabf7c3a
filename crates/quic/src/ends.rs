//! Both ends of a simulated connection.

use std::sync::Arc;

use quinn_proto::Endpoint;

use crate::configs::{ConfigError, Protection, watched};
use crate::earlier::fetch_ticket;
use crate::end::End;
use crate::inbound::Inbound;
use crate::receiving::Receiving;
use crate::recovery::SharedRecovery;
use crate::seeded::KeyLog;
use crate::setup::{Setup, client_config, engine_config};
use crate::watch::Watch;

/// Both ends of a simulated connection.
pub struct Ends {
    /// The client's.
    pub client: End,
    /// The server's.
    pub server: End,
    /// The secrets of the connection.
    pub key_log: KeyLog,
}

impl End {
    /// Both ends, as the simulator has them.
    ///
    /// # Errors
    /// Why there is no such connection.
    pub fn pair(setup: &Setup) -> Result<Ends, ConfigError> {
        let protection = match setup.config.encryption {
            true => Protection::Encrypted,
            false => Protection::SizesOnly,
        };
        let watch = Watch::default();
        let configs = watched(setup.seed.get(), protection, &watch)?;
        let (of_client, of_server) = (configs.endpoint_client.into(), configs.endpoint_server.into());
        let numbered = |endpoint, watch, recovery| {
            let inbound = Inbound::Numbered(Receiving::new(&setup.flows));
            End::new(endpoint, watch, recovery, inbound, setup)
        };
        let client = || {
            let recovery = SharedRecovery::new(&watch.client);
            let mut config = configs.client.clone();
            config.transport_config(Arc::new(client_config(setup, engine_config(setup, &recovery))));
            let endpoint = Endpoint::new(Arc::clone(&of_client), None, true, None);
            let mut client = numbered(endpoint, watch.client.clone(), recovery);
            client.client_config = Some(config);
            client
        };
        let server = || {
            let recovery = SharedRecovery::new(&watch.server);
            let mut config = configs.server.clone();
            config.transport_config(Arc::new(engine_config(setup, &recovery)));
            let endpoint = Endpoint::new(Arc::clone(&of_server), Some(Arc::new(config)), true, None);
            numbered(endpoint, watch.server.clone(), recovery)
        };
        if setup.config.zero_rtt {
            fetch_ticket(client(), server());
        }
        Ok(Ends { client: client(), server: server(), key_log: configs.key_log })
    }
}
