//! What a base station knows of the packets that wait at a user.
//!
//! Packets that have come are reported at the next occasion for a request, or with the next block of the
//! user. Some TTIs after a report the base station takes what it says as what waits, and it gives the user
//! TTIs until it has given as much. It does not reckon what it has given in between, so a user may get more
//! than it asked for; such a grant carries packets that came meanwhile, or nothing. ns-3 does the same.
//!
//! With G(k), S(k) and A(k) what was granted, sent and has come before TTI k, a report of TTI r counts from
//! TTI r + d on. From then the user has its turns while
//!
//! ```text
//!   G(k) < G(r + d) + A(r) - S(r)
//! ```

use std::collections::VecDeque;

/// The reports of a user.
#[derive(Debug)]
pub(super) struct Reports {
    /// TTIs between two occasions for a request.
    period: u64,
    /// The TTI of the first occasion.
    phase: u64,
    /// TTIs from a report to the first TTI that it brings.
    delay: u64,
    /// What was granted and sent until the end of each of the last TTIs.
    history: VecDeque<Past>,
    /// The TTI of the oldest entry of `history`.
    oldest: u64,
    granted: u128,
    sent: u128,
    come: u128,
    /// The user has its turns while `granted` is less.
    limit: u128,
    /// Reports that do not count yet, in order.
    made: VecDeque<Report>,
    /// The TTI of the latest report.
    latest: u64,
    /// Whether the packet in service is not reported yet.
    is_unreported: bool,
}

#[derive(Clone, Copy, Debug)]
struct Past {
    granted: u128,
    sent: u128,
    has_block: bool,
}

#[derive(Clone, Copy, Debug)]
struct Report {
    /// Its TTI.
    at: u64,
    /// What has come until then.
    come: u128,
}

/// The TTIs that are kept beside those that a report takes. A packet that waits longer finds its turn without
/// them: only what was granted twice is forgotten.
const KEPT: u64 = 256;

impl Reports {
    pub(super) const fn new(period: u64, phase: u64, delay: u64) -> Self {
        Self {
            period,
            phase,
            delay,
            history: VecDeque::new(),
            oldest: 0,
            granted: 0,
            sent: 0,
            come: 0,
            limit: 0,
            made: VecDeque::new(),
            latest: 0,
            is_unreported: false,
        }
    }

    /// Forgets all TTIs before `next`, in which nothing waited.
    pub(super) fn skip_to(&mut self, next: u64) {
        self.history.clear();
        self.made.clear();
        self.oldest = next;
        self.limit = self.granted;
    }

    /// The service of a packet begins, which came before TTI `earliest`.
    pub(super) fn on_packet(&mut self, size: u128, earliest: u64) {
        self.come += size;
        let next = self.oldest + self.history.len() as u64;
        let from = earliest.max(self.latest).max(self.oldest);
        let occasion = (from..next).find(|tti| self.is_occasion(*tti) || self.has_block(*tti));
        match occasion {
            Some(tti) => self.report(tti),
            None => self.is_unreported = true,
        }
    }

    /// Whether this user has its turn in TTI `now`.
    pub(super) fn has_turn(&mut self, now: u64) -> bool {
        while let Some(report) = self.made.front().copied().filter(|report| report.at + self.delay <= now) {
            self.made.pop_front();
            let counts_from = self.past(report.at + self.delay - 1);
            self.limit = match report.at.checked_sub(1).and_then(|at| self.past(at)).zip(counts_from) {
                Some((reported, before)) => before.granted + report.come.saturating_sub(reported.sent),
                None => self.granted + self.come.saturating_sub(self.sent),
            };
        }
        self.granted < self.limit
    }

    /// TTI `now` was given away, with a block of `share` for this user if it is `Some`.
    pub(super) fn on_tti(&mut self, now: u64, share: Option<u128>) {
        self.granted += share.unwrap_or(0);
        let has_block = share.is_some();
        self.history.push_back(Past { granted: self.granted, sent: self.sent, has_block });
        if self.history.len() as u64 > KEPT + self.delay {
            self.history.pop_front();
            self.oldest += 1;
        }
        if self.is_unreported && (has_block || self.is_occasion(now)) {
            self.report(now);
        }
    }

    /// The latest block took so much of the packet in service.
    pub(super) fn on_sent(&mut self, amount: u128) {
        self.sent += amount;
        if let Some(latest) = self.history.back_mut() {
            latest.sent = self.sent;
        }
    }

    fn report(&mut self, at: u64) {
        self.is_unreported = false;
        self.latest = at;
        match self.made.back_mut() {
            Some(report) if report.at == at => report.come = self.come,
            _ => self.made.push_back(Report { at, come: self.come }),
        }
    }

    const fn is_occasion(&self, tti: u64) -> bool {
        tti % self.period == self.phase
    }

    fn has_block(&self, tti: u64) -> bool {
        self.past(tti).is_some_and(|past| past.has_block)
    }

    fn past(&self, tti: u64) -> Option<Past> {
        let index = usize::try_from(tti.checked_sub(self.oldest)?).ok()?;
        self.history.get(index).copied()
    }
}
