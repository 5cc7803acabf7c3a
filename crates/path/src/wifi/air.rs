//! The medium: whose turn it is, and what becomes of each transmission.
//!
//! When a transmission begins, everything about it is known: how long it takes, who collides, which frames
//! are received and when. So it is one event, at its beginning. The frames enter the pipes of their links
//! then, with the times at which they arrive.

use talkpath_units::{Duration, Instant, Rate, Seed, Stream};

use super::category::AccessCategory;
use super::config::{Offered, OtherStations, WifiConfig, WifiSender};
use super::function::Function;
use super::others::OtherQueue;
use super::timing;
use super::window::{Ppdu, PpduLimits};

/// A Wi-Fi: its senders, and since when it is idle.
#[derive(Debug)]
pub(crate) struct Air {
    /// The name of the link that brings it, in random streams.
    name: String,
    seed: Seed,
    functions: Vec<Function>,
    queues: Vec<Queue>,
    /// The traffic of stations that are no link, each with the index of its queue.
    others: Vec<(u32, OtherQueue)>,
    senders: u32,
    /// The number of the access point's first function.
    access_point: u32,
    frame_error: f64,
    errors: Stream,
    attempts: u32,
    aggregate: u64,
    /// The end of the latest transmission, its acknowledgement included. It may be to come.
    idle_since: Instant,
    /// Who goes on after its last exchange.
    txop: Option<Txop>,
    /// The links that the latest event changed.
    touched: Vec<u32>,
}

/// What the medium asks of the links that are on it, by their indices in the network.
pub(crate) trait Senders {
    /// Whether packets of this category wait for the medium, for the first time or again.
    fn has_frames(&self, link: u32, category: AccessCategory) -> bool;

    /// Puts packets of this category into a PPDU that begins at `now` (see `Window::fill`).
    fn fill(
        &mut self,
        link: u32,
        category: AccessCategory,
        limits: &PpduLimits,
        now: Instant,
    ) -> Option<Ppdu>;

    /// The PPDU of a link has had the medium for `span`, at the end of which frames are given up (see
    /// `Window::settle`). Returns whether the receiver acknowledges.
    fn settle(
        &mut self,
        link: u32,
        category: AccessCategory,
        attempts: u32,
        span: (Instant, Instant),
        is_received: &mut dyn FnMut() -> bool,
    ) -> bool;
}

/// What one sender has for one receiver in one category.
#[derive(Clone, Copy, Debug)]
struct Queue {
    place: Place,
    function: u32,
    rate: Rate,
    /// The time in nanoseconds that it may still take in its turn. Below zero it has taken too much.
    deficit: i64,
    /// Whether it is in its function's turn.
    is_active: bool,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// The queue of a link for the function's category.
    Link(u32),
    /// The index in `others`.
    Other(u32),
}

/// A sender that holds the medium beyond one exchange.
#[derive(Clone, Copy, Debug)]
struct Txop {
    function: u32,
    /// When its next frame begins.
    resumes: Instant,
    /// When it has to give the medium back.
    ends: Instant,
}

/// A transmission of a function.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    function: u32,
    queue: u32,
    ppdu: Ppdu,
}

impl Air {
    /// The Wi-Fi that the link called `name` brings, without links.
    ///
    /// It draws from the random streams `link/NAME/wifi/...`.
    pub(crate) fn new(config: &WifiConfig, seed: Seed, name: &str) -> Self {
        let mut air = Self {
            name: name.to_owned(),
            seed,
            functions: Vec::new(),
            queues: Vec::new(),
            others: Vec::new(),
            senders: 0,
            access_point: 0,
            frame_error: config.frame_error,
            errors: seed.stream(&format!("link/{name}/wifi/errors")),
            attempts: config.attempts.max(1),
            aggregate: config.aggregate.get(),
            idle_since: Instant::ZERO,
            txop: None,
            touched: Vec::new(),
        };
        air.add_sender("access-point", &AccessCategory::ALL);
        let to_others = air.access_point + AccessCategory::BestEffort as u32;
        for (group, others) in config.others.iter().enumerate() {
            for number in 0..others.count {
                let station = format!("others/{group}/{number}");
                if others.up != Offered::Nothing {
                    let function = air.add_sender(&station, &[AccessCategory::BestEffort]);
                    air.add_other(others.up, others, function, &format!("{station}/up"));
                }
                if others.down != Offered::Nothing {
                    air.add_other(others.down, others, to_others, &format!("{station}/down"));
                }
            }
        }
        air
    }

    /// Adds a sender that contends in these categories. Returns the number of its first function.
    fn add_sender(&mut self, station: &str, categories: &[AccessCategory]) -> u32 {
        let first = self.functions.len() as u32;
        for &category in categories {
            let stream = format!("link/{}/wifi/{station}/{}", self.name, category.word());
            let stream = self.seed.stream(&stream);
            self.functions.push(Function::new(category, self.senders, self.attempts, stream));
        }
        self.senders += 1;
        first
    }

    /// Adds what a station that is no link sends or gets.
    fn add_other(&mut self, offered: Offered, others: &OtherStations, function: u32, stream: &str) {
        let arrivals = self.seed.stream(&format!("link/{}/wifi/{stream}", self.name));
        let place = Place::Other(self.others.len() as u32);
        let queue = self.queues.len() as u32;
        self.others.push((queue, OtherQueue::new(offered, others.packet, arrivals)));
        self.queues.push(Queue { place, function, rate: others.rate, deficit: 0, is_active: false });
        if offered == Offered::Saturated {
            self.activate(queue);
            let function = &mut self.functions[function as usize];
            if !function.is_backlogged {
                function.is_backlogged = true;
                function.draw();
            }
        }
    }

    /// Adds a link by its index. `name` is the link's. Returns its first queue; a link has one for each
    /// category.
    pub(crate) fn add_link(&mut self, link: u32, name: &str, sender: WifiSender, rate: Rate) -> u32 {
        let first = match sender {
            WifiSender::AccessPoint => self.access_point,
            WifiSender::Station => self.add_sender(&format!("station/{name}"), &AccessCategory::ALL),
        };
        let queue = self.queues.len() as u32;
        let of = |category: AccessCategory| Queue {
            place: Place::Link(link),
            function: first + category as u32,
            rate,
            deficit: 0,
            is_active: false,
        };
        self.queues.extend(AccessCategory::ALL.map(of));
        queue
    }

    /// A packet has come to the queue. The queue may have dropped the packet. Returns whether [`Self::next`]
    /// may have changed.
    pub(crate) fn on_packet<S: Senders + ?Sized>(&mut self, queue: u32, links: &S, now: Instant) -> bool {
        let Queue { function, is_active, .. } = self.queues[queue as usize];
        if is_active && self.functions[function as usize].is_backlogged {
            return false;
        }
        let has_frames = self.has_frames(queue, links);
        if has_frames {
            self.on_frame(queue, now);
        }
        has_frames
    }

    /// When something next happens; [`Instant::MAX`] is never.
    pub(crate) fn next(&self) -> Instant {
        let access = match &self.txop {
            Some(txop) => txop.resumes,
            None => self.next_access(),
        };
        // The arrivals for a function that contends are counted when it transmits.
        let idle = self.others.iter().filter(|(queue, _)| !self.queues[*queue as usize].is_active);
        idle.map(|(_, other)| other.next_arrival()).fold(access, Instant::min)
    }

    /// Does what is due at `now`: [`Self::next`] has come.
    pub(crate) fn advance<S: Senders + ?Sized>(&mut self, links: &mut S, now: Instant) {
        self.take_arrivals(now);
        if let Some(txop) = self.txop {
            if txop.resumes <= now {
                self.txop = None;
                self.go_on(txop, links, now);
            }
            return;
        }
        self.contend(links, now);
    }

    /// Takes one of the links that the latest event changed. A link may come several times.
    pub(crate) fn pop_touched(&mut self) -> Option<u32> {
        self.touched.pop()
    }

    /// The packets of other stations that were received so far.
    #[cfg(test)]
    pub(crate) fn delivered(&self) -> Vec<u64> {
        self.others.iter().map(|(_, other)| other.delivered).collect()
    }

    fn next_access(&self) -> Instant {
        let accesses = self.functions.iter().map(|function| function.access(self.idle_since));
        accesses.min().unwrap_or(Instant::MAX)
    }

    /// Lets the packets of other stations come that are due by `now`.
    fn take_arrivals(&mut self, now: Instant) {
        for index in 0..self.others.len() {
            let (queue, ref mut other) = self.others[index];
            if other.next_arrival() <= now {
                other.advance(now);
                self.on_frame(queue, now);
            }
        }
    }

    /// The queue has something to send.
    fn on_frame(&mut self, queue: u32, now: Instant) {
        self.activate(queue);
        let function = &mut self.functions[self.queues[queue as usize].function as usize];
        if !function.is_backlogged {
            // A sender that holds the medium for a series of exchanges makes it busy between them.
            let idle_since = self.txop.map_or(self.idle_since, |txop| txop.resumes);
            function.on_frame(idle_since, now);
        }
    }

    /// Puts a queue into its function's turn.
    fn activate(&mut self, queue: u32) {
        let state = &mut self.queues[queue as usize];
        if !state.is_active {
            state.is_active = true;
            self.functions[state.function as usize].turn.push_back(queue);
        }
    }

    /// Whether a queue has packets or frames to send.
    fn has_frames<S: Senders + ?Sized>(&self, queue: u32, links: &S) -> bool {
        let Queue { place, function, .. } = self.queues[queue as usize];
        match place {
            Place::Link(link) => {
                let category = self.functions[function as usize].category;
                links.has_frames(link, category)
            }
            Place::Other(other) => {
                let (_, other) = &self.others[other as usize];
                other.window.len() > 0 || other.has_packets()
            }
        }
    }

    /// Those whose backoff has ended by `now` transmit.
    fn contend<S: Senders + ?Sized>(&mut self, links: &mut S, now: Instant) {
        let idle_since = self.idle_since;
        let is_due = |function: &Function| function.access(idle_since) <= now;
        let due: Vec<u32> =
            (0..).zip(&self.functions).filter(|(_, function)| is_due(function)).map(|(at, _)| at).collect();
        if due.is_empty() {
            return;
        }
        let counting = self.functions.iter_mut().filter(|function| function.is_counting());
        counting.for_each(|function| function.count(idle_since, now));
        let (mut sent, mut lost): (Vec<Transmission>, Vec<u32>) = (Vec::new(), Vec::new());
        // The highest category of a sender first.
        for &function in due.iter().rev() {
            let sender = self.functions[function as usize].sender;
            if sent.iter().any(|it| self.functions[it.function as usize].sender == sender) {
                lost.push(function);
                continue;
            }
            sent.extend(self.begin(function, links, now));
        }
        lost.into_iter().for_each(|function| self.lose_inside(function, links, now));
        match sent.as_slice() {
            [] => {}
            [alone] => {
                let ends =
                    self.functions[alone.function as usize].txop().map(|txop| now.saturating_add(txop));
                self.exchange(*alone, ends, links, now);
            }
            colliding => self.collide(colliding, links, now),
        }
    }

    /// Begins to send after a backoff.
    fn begin<S: Senders + ?Sized>(
        &mut self,
        function: u32,
        links: &mut S,
        now: Instant,
    ) -> Option<Transmission> {
        let time = self.functions[function as usize].txop().map(|txop| (txop, false));
        self.transmit(function, time, links, now)
    }

    /// Another of its sender's functions was due at the same time: an internal collision. Its frames are not
    /// sent. All else is as if they had been, and not acknowledged (802.11-2020 §10.23.2.12.1).
    fn lose_inside<S: Senders + ?Sized>(&mut self, function: u32, links: &mut S, now: Instant) {
        if let Some(unsent) = self.begin(function, links, now) {
            self.settle(unsent.queue, links, (now, now), false);
        }
        self.functions[function as usize].fail(now);
        self.note_backlog(function, links);
    }

    /// The holder of the medium sends again, if it has something that ends in time.
    fn go_on<S: Senders + ?Sized>(&mut self, txop: Txop, links: &mut S, now: Instant) {
        let time = (txop.ends.since(now), true);
        match self.transmit(txop.function, Some(time), links, now) {
            Some(next) => self.exchange(next, Some(txop.ends), links, now),
            None => self.functions[txop.function as usize].succeed(),
        }
    }

    /// A function begins to send to the receiver whose turn it is. `time` is how long it may have the medium,
    /// and whether its first frame must end in that time. `None` if it has nothing to send.
    fn transmit<S: Senders + ?Sized>(
        &mut self,
        function: u32,
        time: Option<(Duration, bool)>,
        links: &mut S,
        now: Instant,
    ) -> Option<Transmission> {
        while let Some(queue) = self.next_in_turn(function, links) {
            let limits = self.limits(queue, time);
            let category = self.functions[function as usize].category;
            let ppdu = match self.queues[queue as usize].place {
                Place::Link(link) => {
                    self.touched.push(link);
                    links.fill(link, category, &limits, now)
                }
                Place::Other(other) => self.others[other as usize].1.fill(&limits, now),
            };
            if let Some(ppdu) = ppdu {
                return Some(Transmission { function, queue, ppdu });
            }
            if self.has_frames(queue, links) {
                // The first frame does not end in time.
                return None;
            }
            // The discipline of the link has dropped all that waited.
        }
        self.functions[function as usize].is_backlogged = false;
        None
    }

    /// The queue whose turn it is: deficit round robin over time (ieee80211_next_txq in net/mac80211/tx.c).
    fn next_in_turn<S: Senders + ?Sized>(&mut self, function: u32, links: &S) -> Option<u32> {
        loop {
            let queue = *self.functions[function as usize].turn.front()?;
            let is_empty = !self.has_frames(queue, links);
            let turn = &mut self.functions[function as usize].turn;
            let state = &mut self.queues[queue as usize];
            if is_empty {
                turn.pop_front();
                state.is_active = false;
            } else if state.deficit < 0 {
                state.deficit += AIRTIME_QUANTUM_NS;
                turn.rotate_left(1);
            } else {
                return Some(queue);
            }
        }
    }

    fn limits(&self, queue: u32, time: Option<(Duration, bool)>) -> PpduLimits {
        let Queue { rate, function, .. } = self.queues[queue as usize];
        let is_aggregated = self.functions[function as usize].category.is_aggregated();
        let aggregate = if is_aggregated { self.aggregate } else { 0 };
        let (time, is_strict) = time.unzip();
        PpduLimits { rate, aggregate, time, is_strict: is_strict.unwrap_or(false) }
    }

    /// A transmission that nobody disturbs, and its acknowledgement.
    fn exchange<S: Senders + ?Sized>(
        &mut self,
        sent: Transmission,
        txop_ends: Option<Instant>,
        links: &mut S,
        now: Instant,
    ) {
        let Transmission { function, queue, ppdu } = sent;
        let data_ends = now.saturating_add(ppdu.duration);
        let rate = self.queues[queue as usize].rate;
        let acknowledged =
            data_ends.saturating_add(timing::SIFS).saturating_add(timing::acknowledgement(ppdu.frames, rate));
        let is_acknowledged = self.settle(queue, links, (now, acknowledged), true);
        self.charge(queue, acknowledged.since(now));
        if is_acknowledged {
            self.idle_since = acknowledged;
            let resumes = acknowledged.saturating_add(timing::SIFS);
            match txop_ends {
                Some(ends) if ends > resumes => self.txop = Some(Txop { function, resumes, ends }),
                _ => self.functions[function as usize].succeed(),
            }
        } else {
            self.idle_since = data_ends.saturating_add(timing::AFTER_ILLEGIBLE);
            self.functions[function as usize].fail(data_ends.saturating_add(timing::ACK_TIMEOUT));
        }
        self.note_backlog(function, links);
    }

    /// Several senders transmit at once: nobody can read them.
    fn collide<S: Senders + ?Sized>(&mut self, colliding: &[Transmission], links: &mut S, now: Instant) {
        let longest = colliding.iter().map(|sent| sent.ppdu.duration).max().unwrap_or_default();
        self.idle_since = now.saturating_add(longest);
        for sent in colliding {
            let ends = now.saturating_add(sent.ppdu.duration);
            self.settle(sent.queue, links, (now, ends), false);
            self.charge(sent.queue, sent.ppdu.duration);
            self.functions[sent.function as usize].fail(ends.saturating_add(timing::ACK_TIMEOUT));
            self.note_backlog(sent.function, links);
        }
    }

    /// Settles the frames of a PPDU that takes the medium for this `span`, at the end of which frames are
    /// given up. Returns whether the receiver acknowledges.
    fn settle<S: Senders + ?Sized>(
        &mut self,
        queue: u32,
        links: &mut S,
        span: (Instant, Instant),
        is_legible: bool,
    ) -> bool {
        let (errors, frame_error) = (&mut self.errors, self.frame_error);
        let mut is_received = || is_legible && !errors.chance(frame_error);
        let Queue { place, function, .. } = self.queues[queue as usize];
        match place {
            Place::Link(link) => {
                let category = self.functions[function as usize].category;
                links.settle(link, category, self.attempts, span, &mut is_received)
            }
            Place::Other(other) => {
                let (_, OtherQueue { window, delivered, .. }) = &mut self.others[other as usize];
                window
                    .settle(self.attempts, span.1, is_received, |it| *delivered += u64::from(it.is_received))
            }
        }
    }

    /// Takes the time of an exchange from the queue's share.
    fn charge(&mut self, queue: u32, airtime: Duration) {
        let airtime_ns = i64::try_from(airtime.as_nanos()).unwrap_or(i64::MAX);
        let deficit = &mut self.queues[queue as usize].deficit;
        *deficit = deficit.saturating_sub(airtime_ns);
    }

    /// Notes whether a function still has something to send.
    fn note_backlog<S: Senders + ?Sized>(&mut self, function: u32, links: &S) {
        let turn = &self.functions[function as usize].turn;
        let is_backlogged = turn.iter().any(|&queue| self.has_frames(queue, links));
        self.functions[function as usize].is_backlogged = is_backlogged;
        if !is_backlogged {
            while let Some(queue) = self.functions[function as usize].turn.pop_front() {
                self.queues[queue as usize].is_active = false;
            }
        }
    }
}

/// What a station may take in its turn, in nanoseconds (IEEE80211_DEFAULT_AIRTIME_WEIGHT in net/mac80211: 256
/// us).
const AIRTIME_QUANTUM_NS: i64 = 256_000;
