//! Two processes over the loopback interface: `serve`, and a run against it.
