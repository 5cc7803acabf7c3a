//! The media that links of a network share, and which links are on which.

use talkpath_units::Instant;

use crate::carried::Carried;
use crate::dscp::Dscp;
use crate::link::Link;
use crate::network::config::NetworkConfig;
use crate::wifi::{AccessCategory, Air, Medium, Ppdu, PpduLimits, Senders, WifiAir, WifiConfig};

/// All media.
#[derive(Debug)]
pub(super) struct Media {
    airs: Vec<Air>,
    /// By link: where it is.
    places: Vec<Option<MediumPlace>>,
}

/// Where a link is.
#[derive(Clone, Copy, Debug)]
struct MediumPlace {
    medium: u32,
    /// The link's first queue at the medium; it has one for each access category.
    queue: u32,
}

impl Media {
    /// The media that the links of `config` bring. `None` if they bring none.
    pub(super) fn new(config: &NetworkConfig<'_>) -> Option<Box<Self>> {
        let is_wifi = |(_, link): &(&str, &crate::LinkConfig)| matches!(link.medium, Medium::Wifi(_));
        if !config.links.iter().any(is_wifi) {
            return None;
        }
        let mut airs = Vec::new();
        // The name of the link that brings each medium.
        let mut names: Vec<&str> = Vec::new();
        for (name, link) in &config.links {
            let Medium::Wifi(wifi) = &link.medium else { continue };
            let own = match &wifi.air {
                WifiAir::Own(own) => own.clone(),
                // A name that no link brings is a medium of its own: the scenario has no such name.
                WifiAir::Of(of) if !brings_wifi(config, of) => WifiConfig::plain(),
                WifiAir::Of(_) => continue,
            };
            airs.push(Air::new(&own, config.seed, name));
            names.push(name);
        }
        let mut places = Vec::new();
        for (index, (name, link)) in (0..).zip(&config.links) {
            let Medium::Wifi(wifi) = &link.medium else {
                places.push(None);
                continue;
            };
            let of = match &wifi.air {
                WifiAir::Of(of) if names.contains(&of.as_str()) => of,
                _ => *name,
            };
            let medium = names.iter().position(|known| *known == of).unwrap_or(0);
            let queue = airs[medium].add_link(index, name, wifi.sender, wifi.rate);
            places.push(Some(MediumPlace { medium: medium as u32, queue }));
        }
        Some(Box::new(Self { airs, places }))
    }

    /// The number of media.
    pub(super) fn len(&self) -> usize {
        self.airs.len()
    }

    /// When something next happens on a medium.
    pub(super) fn next(&self, medium: u32) -> Instant {
        self.airs[medium as usize].next()
    }

    /// A packet with this codepoint has come to `link`. Returns the link's medium if its [`Self::next`] may
    /// have changed.
    pub(super) fn on_packet<T: Carried>(
        &mut self,
        link: u32,
        dscp: Dscp,
        links: &[Link<T>],
        now: Instant,
    ) -> Option<u32> {
        // The links of the hosts come after the configured ones.
        let MediumPlace { medium, queue } = (*self.places.get(link as usize)?)?;
        let queue = queue + AccessCategory::of(dscp) as u32;
        self.airs[medium as usize].on_packet(queue, links, now).then_some(medium)
    }

    /// Does what is due on a medium.
    pub(super) fn advance<T: Carried>(&mut self, medium: u32, links: &mut [Link<T>], now: Instant) {
        self.airs[medium as usize].advance(links, now);
    }

    /// Takes one of the links that [`Self::advance`] changed. A link may come several times.
    pub(super) fn pop_touched(&mut self, medium: u32) -> Option<u32> {
        self.airs[medium as usize].pop_touched()
    }
}

fn brings_wifi(config: &NetworkConfig<'_>, name: &str) -> bool {
    config.links.iter().any(|(known, link)| {
        let Medium::Wifi(wifi) = &link.medium else { return false };
        *known == name && matches!(wifi.air, WifiAir::Own(_))
    })
}

impl<T: Carried> Senders for [Link<T>] {
    fn has_frames(&self, link: u32, category: AccessCategory) -> bool {
        self[link as usize].has_frames(category)
    }

    fn fill(
        &mut self,
        link: u32,
        category: AccessCategory,
        limits: &PpduLimits,
        now: Instant,
    ) -> Option<Ppdu> {
        self[link as usize].fill(category, limits, now)
    }

    fn settle(
        &mut self,
        link: u32,
        category: AccessCategory,
        attempts: u32,
        span: (Instant, Instant),
        is_received: &mut dyn FnMut() -> bool,
    ) -> bool {
        self[link as usize].settle(category, attempts, span, is_received)
    }
}
