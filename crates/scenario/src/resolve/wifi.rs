//! Links over Wi-Fi: the key `wifi` of a link.

use talkpath_model::NamedLink;
use talkpath_path::{
    ATTEMPTS, Framing, LARGEST_AGGREGATE, LinkConfig, Medium, Offered, OtherStations, RateModel, WifiAir,
    WifiConfig, WifiLink, WifiSender,
};
use talkpath_units::Rate;

use crate::diagnostic::{Log, Place};
use crate::keys::{LARGEST_PACKET, OF_THE_WIFI, OTHERS, WIFI, WIFI_RATE};
use crate::quantity::Problem;
use crate::read::{KeyPath, unknown_name};
use crate::section::Section;
use crate::tree::{Meaning, Node, Value};

/// Returns the medium of a link, or `None` if it has mistakes.
pub(super) fn medium(
    link: &Section<'_>,
    rate: Option<&RateModel>,
    framing: Option<Framing>,
    log: &mut Log,
) -> Option<Medium> {
    let Some(node) = link.node("wifi") else { return Some(Medium::Wire) };
    let section = Section::new(node.as_table()?, WIFI.keys, link.at.key("wifi"), &node.place);
    let is_right = check_link(link, framing, log);
    let rate = phy_rate(link, rate, log);
    let air = air(&section, log);
    let sender = match section.choice("sender")? {
        "access-point" => WifiSender::AccessPoint,
        _ => WifiSender::Station,
    };
    let wifi = WifiLink { sender, rate: rate?, air: air? };
    is_right.then(|| Medium::Wifi(Box::new(wifi)))
}

/// Reports the keys of a link that a link over Wi-Fi does not have.
fn check_link(link: &Section<'_>, framing: Option<Framing>, log: &mut Log) -> bool {
    let mut is_right = true;
    let mut refuse = |key: &str, message: String| {
        link.problem(key, message, log);
        is_right = false;
    };
    if link.node("shaper").is_some() {
        refuse("shaper", "found a shaper beside `wifi`; the medium decides when a packet leaves".to_owned());
    }
    if framing.is_some_and(|framing| framing != Framing::None) {
        refuse("framing", "found a framing beside `wifi`, which has the headers of its frames".to_owned());
    }
    if let Some(mtu) = link.bytes("mtu").filter(|mtu| mtu.get() > LARGEST_PACKET) {
        let message = format!("found {mtu} beside `wifi`, expected at most {LARGEST_PACKET} B (IEEE 802.11)");
        refuse("mtu", message);
    }
    is_right
}

/// The rate of the frames of a link.
fn phy_rate(link: &Section<'_>, rate: Option<&RateModel>, log: &mut Log) -> Option<Rate> {
    let bounds = WIFI_RATE[0];
    match rate? {
        RateModel::Fixed(rate) if (bounds.least..=bounds.most).contains(&rate.as_bps()) => Some(*rate),
        _ => {
            let message =
                "found no rate from 6 Mbps to 10 Gbps beside `wifi`, which needs that of the link's frames";
            let help = "as in rate = \"65 Mbps\", which is MCS 7 of 802.11n in a channel of 20 MHz";
            link.problem("rate", Problem::new(message).with_help(help), log);
            None
        }
    }
}

/// The Wi-Fi that a link brings or shares.
fn air(wifi: &Section<'_>, log: &mut Log) -> Option<WifiAir> {
    if wifi.node("with").is_some() {
        let with = wifi.text("with")?;
        if let Some(key) = OF_THE_WIFI.into_iter().find(|key| wifi.node(key).is_some()) {
            let message =
                format!("found `{key}` beside `with`; the link {with} brings the Wi-Fi and has its keys");
            wifi.problem(key, message, log);
            return None;
        }
        return Some(WifiAir::Of(with.to_owned()));
    }
    let is_absent = |key: &str| wifi.node(key).is_none();
    let frame_error = if is_absent("frame_error") { 0.0 } else { wifi.number("frame_error")? };
    let attempts = if is_absent("attempts") { u64::from(ATTEMPTS) } else { wifi.count("attempts")? };
    let aggregate = if is_absent("aggregate") { LARGEST_AGGREGATE } else { wifi.bytes("aggregate")? };
    let others = others(wifi)?;
    Some(WifiAir::Own(WifiConfig { frame_error, attempts: attempts as u32, aggregate, others }))
}

/// The other stations of a Wi-Fi. `None` if a value is wrong, which is reported already.
fn others(wifi: &Section<'_>) -> Option<Vec<OtherStations>> {
    let Some(Node { value: Value::List(tables), .. }) = wifi.node("others") else { return Some(Vec::new()) };
    let path = wifi.at.key("others");
    let station = |node: &Node| {
        let section = Section::new(node.as_table()?, OTHERS.keys, path, &node.place);
        Some(OtherStations {
            count: u32::try_from(section.count("count")?).ok()?,
            rate: section.rate("rate")?,
            up: offered(&section, "up")?,
            down: offered(&section, "down")?,
            packet: section.bytes("packet")?,
        })
    };
    tables.iter().map(station).collect()
}

fn offered(others: &Section<'_>, key: &str) -> Option<Offered> {
    if others.node(key).is_none() {
        return Some(Offered::Nothing);
    }
    match others.meaning(key)? {
        Meaning::Amount(amount) => Some(Offered::Rate(Rate::from_bps(amount.count))),
        _ => Some(Offered::Saturated),
    }
}

/// Reports each link that shares the Wi-Fi of a link which brings none. `place_of` is the place of a link's
/// table.
pub(super) fn check_shared(
    links: &[NamedLink],
    place_of: impl Fn(&str) -> Place,
    parent: KeyPath<'_>,
    log: &mut Log,
) -> bool {
    let brings = |link: &&NamedLink| matches!(&link.config.medium, Medium::Wifi(wifi) if matches!(wifi.air, WifiAir::Own(_)));
    let names: Vec<String> = links.iter().filter(brings).map(|link| link.name.clone()).collect();
    let mut is_right = true;
    for NamedLink { name, config: LinkConfig { medium, .. } } in links {
        let Medium::Wifi(wifi) = medium else { continue };
        if let WifiAir::Of(with) = &wifi.air
            && !names.contains(with)
        {
            let key = parent.key(name);
            let problem = unknown_name(with, "link that brings a Wi-Fi", &names);
            log.mistake(&place_of(name), key.key("wifi").key("with"), problem);
            is_right = false;
        }
    }
    is_right
}
