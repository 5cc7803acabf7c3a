//! The flags of `talkpath ui`.

use clap::Args;

#[derive(Debug, Args)]
pub struct UiArgs {
    /// The port of the page, on 127.0.0.1 alone (default: 7161, or another one if that is taken)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Open no browser: the address is printed in any case
    #[arg(long)]
    pub no_open: bool,
}
