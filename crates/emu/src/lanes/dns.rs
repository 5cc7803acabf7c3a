//! The names that the user's programs look up (RFC 1035), as far as their answers cross the path in the
//! clear.
//!
//! A browser may ask by HTTPS (RFC 8484), and a program may know an address from elsewhere. Such an address
//! has no name here.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use simple_dns::rdata::RData;
use simple_dns::{Packet, PacketFlag};

/// The name that each address was found under last.
#[derive(Default)]
pub(super) struct LookedUp(BTreeMap<IpAddr, String>);

impl LookedUp {
    /// Takes the payload of a datagram from the port of DNS. What is not an answer is left alone.
    pub(super) fn note(&mut self, payload: &[u8]) {
        let Ok(answer) = Packet::parse(payload) else { return };
        let Some(question) = answer.questions.first().filter(|_| answer.has_flags(PacketFlag::RESPONSE))
        else {
            return;
        };
        let name = talkpath_units::printable(&question.qname.to_string(), LONGEST_NAME);
        for record in &answer.answers {
            // An alias (CNAME) leads to the address, and the name in the question is that of the program.
            let address = match &record.rdata {
                RData::A(found) => IpAddr::V4(Ipv4Addr::from_bits(found.address)),
                RData::AAAA(found) => IpAddr::V6(Ipv6Addr::from_bits(found.address)),
                _ => continue,
            };
            if self.0.len() < MOST_NAMES || self.0.contains_key(&address) {
                self.0.insert(address, name.clone());
            }
        }
    }

    /// The name that `address` was found under.
    pub(super) fn name_of(&self, address: IpAddr) -> Option<&str> {
        self.0.get(&address).map(String::as_str)
    }
}

/// The largest number of names. We chose 10,000 because a browser looks up some hundred.
const MOST_NAMES: usize = 10_000;
/// The largest number of characters of a name (RFC 1035 §2.3.4 allows 255 octets).
const LONGEST_NAME: usize = 255;

#[cfg(test)]
mod tests {
    use simple_dns::rdata::{A, AAAA, CNAME};
    use simple_dns::{CLASS, Name, QCLASS, QTYPE, Question, ResourceRecord, TYPE};

    use super::*;

    #[test]
    fn an_address_has_the_name_that_was_asked_for_also_behind_an_alias() {
        let name = |text: &'static str| Name::new(text).unwrap();
        let mut packet = Packet::new_reply(1);
        packet.questions.push(Question::new(
            name("www.example"),
            QTYPE::TYPE(TYPE::A),
            QCLASS::CLASS(CLASS::IN),
            false,
        ));
        let record = |rdata| ResourceRecord::new(name("www.example"), CLASS::IN, 60, rdata);
        packet.answers.push(record(RData::CNAME(CNAME(name("edge.example")))));
        packet.answers.push(record(RData::A(A { address: 0xc633_6401 })));
        packet.answers.push(record(RData::AAAA(AAAA { address: 1 })));
        let bytes = packet.build_bytes_vec_compressed().unwrap();
        let mut names = LookedUp::default();
        names.note(&bytes);
        assert_eq!(names.name_of("198.51.100.1".parse().unwrap()), Some("www.example"));
        assert_eq!(names.name_of("::1".parse().unwrap()), Some("www.example"));
        assert_eq!(names.name_of("198.51.100.2".parse().unwrap()), None);
        // A question is no answer, and no damaged answer stops the path.
        let mut names = LookedUp::default();
        for end in 0..bytes.len() {
            names.note(&bytes[..end]);
        }
        names.note(&[0xff; 600]);
        let mut question = bytes.clone();
        question[2] &= 0x7f;
        let mut names = LookedUp::default();
        names.note(&question);
        assert_eq!(names.name_of("::1".parse().unwrap()), None);
    }
}
