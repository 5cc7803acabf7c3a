//! The adaptive receiver beside NetEq, the jitter buffer of Chromium, on the same arrivals.
//!
//! `xtask/judges/neteq.py` recorded what NetEq did on 29 paths, five times each, 60 s long. The recordings
//! are in `tests/neteq`. The arrivals are given in blocks of 10 ms that the sound card asked NetEq for, and
//! the receiver plays the same blocks, so that no clock stands between the two. Every half second of a
//! recording is compared.
//!
//! ```text
//!  TALKPATH_NETEQ=FOLDER cargo test -p talkpath-measure --test neteq      another recording
//!  cargo test -p talkpath-measure --test neteq -- --nocapture             the table
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use talkpath_measure::metrics::adaptive::{Arrival, BLOCK_MS, JitterBuffer};

/// PCMU, RFC 3551 §4.5.14.
const SAMPLE_RATE: u32 = 8_000;
const SAMPLES_PER_MS: i64 = SAMPLE_RATE as i64 / 1_000;
const BLOCK_SAMPLES: i64 = BLOCK_MS * SAMPLES_PER_MS;
/// A packet of 20 ms.
const PACKET_BLOCKS: i64 = 2;
const PACKET_SAMPLES: i64 = PACKET_BLOCKS * BLOCK_SAMPLES;
/// The width of a bucket of the target in ms.
const BUCKET_MS: f64 = 20.0;
/// The least share of half seconds in which the target has to be that of NetEq. We chose it, with the margins
/// of [`JUDGED`], before the first recording.
const LEAST_SAME_TARGETS_PERCENT: f64 = 95.0;
/// Returns a figure.
type Getter = fn(&Figures) -> f64;
/// The figures that are judged, each with its margin: a figure may be outside the range of NetEq's repeats by
/// this, or by a tenth.
const JUDGED: [(&str, Getter, f64); 2] = [
    ("mean delay in ms", |figures| figures.delay_ms, 10.0),
    ("concealed in per cent", |figures| figures.concealed_percent, 0.3),
];

/// The counters of a receiver after some blocks, with the names of `getStats` in the comments.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// totalSamplesReceived.
    output: i64,
    /// jitterBufferEmittedCount.
    decoded: i64,
    /// jitterBufferTargetDelay, in ms times samples.
    targeted: i64,
    /// jitterBufferDelay, in ms times samples.
    waited: i64,
    /// concealedSamples.
    concealed: i64,
    /// removedSamplesForAcceleration.
    removed: i64,
    /// insertedSamplesForDeceleration.
    inserted: i64,
    /// packetsDiscarded.
    discarded_packets: i64,
}

/// What was recorded of a path once.
#[derive(Default)]
struct Recording {
    /// The packets in the order of their arrivals: their number, and the number of blocks before them.
    arrivals: Vec<(i64, i64)>,
    /// NetEq's counters about each half second.
    theirs: Vec<Counters>,
}

/// The figures of one receiver in one recording.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// The mean time that speech waits in the buffer.
    delay_ms: f64,
    concealed_percent: f64,
    removed_percent: f64,
    inserted_percent: f64,
}

/// One figure by all repeats.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: f64,
    mean: f64,
    most: f64,
}

/// A path in all repeats.
struct Compared {
    /// The share of half seconds in which the target is in NetEq's bucket, in per cent.
    same_target_percent: f64,
    /// The share of half seconds in which the target is within the buckets of all repeats of NetEq, in per
    /// cent.
    target_within_percent: f64,
    ours: Vec<Figures>,
    theirs: Vec<Figures>,
}

impl Recording {
    /// Plays the arrivals in our receiver, and returns its counters at the blocks of NetEq's.
    fn play(&self) -> Vec<Counters> {
        let mut buffer = JitterBuffer::new(SAMPLE_RATE);
        let mut arrivals = self.arrivals.iter().peekable();
        let (mut now, mut counters) = (Counters::default(), Vec::new());
        for theirs in &self.theirs {
            while now.output < theirs.output {
                let block = now.output / BLOCK_SAMPLES;
                while let Some((number, blocks)) = arrivals.next_if(|(_, blocks)| *blocks <= block) {
                    buffer.arrive(arrival(*number, *blocks), &mut |_| {});
                }
                let target_ms = i64::from(buffer.target_ms());
                buffer.play_until((block + 1) * BLOCK_MS * 1_000_000, &mut |_| {});
                let counts = buffer.counts();
                now.targeted += (counts.decoded - now.decoded) * target_ms;
                now.output += BLOCK_SAMPLES;
                (now.decoded, now.waited, now.concealed) = (counts.decoded, counts.waited, counts.concealed);
                (now.removed, now.inserted) = (counts.removed, counts.inserted);
                now.discarded_packets = i64::try_from(counts.discarded_packets).expect("a small number");
            }
            counters.push(now);
        }
        counters
    }
}

/// A packet that comes after this number of blocks.
fn arrival(number: i64, blocks: i64) -> Arrival {
    Arrival {
        sequence: number.unsigned_abs(),
        timestamp: number * PACKET_SAMPLES,
        samples: PACKET_SAMPLES,
        at_ns: blocks * BLOCK_MS * 1_000_000,
    }
}

impl Figures {
    fn new(end: Counters) -> Self {
        let percent = |samples: i64| 100.0 * samples as f64 / end.output as f64;
        Self {
            delay_ms: end.waited as f64 / end.decoded as f64,
            concealed_percent: percent(end.concealed),
            removed_percent: percent(end.removed),
            inserted_percent: percent(end.inserted),
        }
    }
}

impl Range {
    fn new(repeats: &[Figures], figure: Getter) -> Self {
        let figures = || repeats.iter().map(figure);
        Self {
            least: figures().fold(f64::INFINITY, f64::min),
            mean: figures().sum::<f64>() / repeats.len() as f64,
            most: figures().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Whether a figure is within the range, or outside by at most `margin` or a tenth.
    fn admits(self, figure: f64, margin: f64) -> bool {
        figure >= self.least - margin.max(self.least / 10.0)
            && figure <= self.most + margin.max(self.most / 10.0)
    }
}

impl Compared {
    fn new(repeats: &[Recording]) -> Self {
        let played: Vec<_> = repeats.iter().map(Recording::play).collect();
        let ours: Vec<_> = played.iter().map(|counters| targets(counters)).collect();
        let theirs: Vec<_> = repeats.iter().map(|recording| targets(&recording.theirs)).collect();
        let (mut all, mut same, mut within) = (0, 0, 0);
        for (ours, theirs_here) in ours.iter().zip(&theirs) {
            for (half_second, pair) in ours.iter().zip(theirs_here).enumerate() {
                let (Some(ours), Some(theirs_here)) = pair else { continue };
                let at_this_time = || theirs.iter().filter_map(|repeat| *repeat.get(half_second)?);
                all += 1;
                same += usize::from(ours == theirs_here);
                within +=
                    usize::from(at_this_time().min() <= Some(*ours) && Some(*ours) <= at_this_time().max());
            }
        }
        let percent = |count: usize| 100.0 * count as f64 / f64::from(all);
        let ends =
            |counters: &[Counters]| Figures::new(*counters.last().expect("a recording has half seconds"));
        Self {
            same_target_percent: percent(same),
            target_within_percent: percent(within),
            ours: played.iter().map(|counters| ends(counters)).collect(),
            theirs: repeats.iter().map(|recording| ends(&recording.theirs)).collect(),
        }
    }

    /// What of the two receivers differs by more than is allowed on a path.
    fn differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.target_within_percent < LEAST_SAME_TARGETS_PERCENT {
            differences.push(format!("target: {:.1} % in the same bucket", self.target_within_percent));
        }
        for (name, figure, margin) in JUDGED {
            let theirs = Range::new(&self.theirs, figure);
            for ours in self.ours.iter().map(figure).filter(|ours| !theirs.admits(*ours, margin)) {
                differences
                    .push(format!("{name}: {ours:.2}, theirs {:.2} to {:.2}", theirs.least, theirs.most));
            }
        }
        differences
    }
}

/// The bucket of the mean target of each half second, over all samples that were decoded in it. `None` if no
/// sample was.
fn targets(counters: &[Counters]) -> Vec<Option<i64>> {
    let bucket = |pair: &[Counters]| {
        let decoded = pair[1].decoded - pair[0].decoded;
        let targeted = pair[1].targeted - pair[0].targeted;
        (decoded > 0).then(|| (targeted as f64 / decoded as f64 / BUCKET_MS).round() as i64)
    };
    counters.windows(2).map(bucket).collect()
}

#[expect(clippy::disallowed_methods, reason = "the weekly job names its recording")]
fn folder() -> PathBuf {
    std::env::var_os("TALKPATH_NETEQ")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("neteq"), PathBuf::from)
}

/// The recordings of each path in the order of the repeats.
fn recordings() -> BTreeMap<String, Vec<Recording>> {
    let mut paths: BTreeMap<String, BTreeMap<u32, Recording>> = BTreeMap::new();
    for row in rows("arrivals.csv.gz") {
        let recording =
            paths.entry(row[1].to_owned()).or_default().entry(row[0].parse().expect("a number")).or_default();
        for (number, place) in (0..).zip(row[2].split(' ')) {
            if place != "-" {
                let place: i64 = place.parse().expect("a number");
                recording.arrivals.push((number, place + PACKET_BLOCKS * number));
            }
        }
        recording.arrivals.sort_by_key(|(number, blocks)| (*blocks, *number));
    }
    for row in rows("stats.csv.gz") {
        let repeat: u32 = row[0].parse().expect("a number");
        let recording = paths.get_mut(&row[1]).and_then(|repeats| repeats.get_mut(&repeat));
        let recording = recording.expect("arrivals of each path and repeat");
        let [targeted, _, waited, decoded, concealed, _, _, inserted, removed, output, discarded_packets] =
            std::array::from_fn(|column| row[2 + column].parse().expect("a number"));
        recording.theirs.push(Counters {
            output,
            decoded,
            targeted,
            waited,
            concealed,
            removed,
            inserted,
            discarded_packets,
        });
    }
    paths.into_iter().map(|(path, repeats)| (path, repeats.into_values().collect())).collect()
}

fn rows(name: &str) -> Vec<csv::StringRecord> {
    let place = folder().join(name);
    let file = File::open(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    csv::Reader::from_reader(GzDecoder::new(file))
        .into_records()
        .collect::<Result<_, _>>()
        .expect("rows of a table")
}

/// Prints the table with one path in a row. Each figure is ours, then NetEq's mean, both over all repeats.
fn print(compared: &BTreeMap<String, Compared>) {
    println!(
        "                    same target  (within)   delay ms       concealed %    removed %     inserted %"
    );
    for (path, compared) in compared {
        let Compared { same_target_percent, target_within_percent, ours, theirs } = compared;
        print!("{path:<18} {same_target_percent:9.1} %  {target_within_percent:6.1} % ");
        let [(_, delay_ms, _), (_, concealed_percent, _)] = JUDGED;
        for figure in [delay_ms, concealed_percent, |it| it.removed_percent, |it| it.inserted_percent] {
            print!("  {:6.2} {:6.2}", Range::new(ours, figure).mean, Range::new(theirs, figure).mean);
        }
        println!();
    }
}

#[test]
fn the_receiver_does_what_neteq_does_with_the_same_arrivals() {
    let compared: BTreeMap<_, _> =
        recordings().into_iter().map(|(path, repeats)| (path, Compared::new(&repeats))).collect();
    assert!(compared.len() >= 20, "{} paths", compared.len());
    print(&compared);
    let differences: Vec<_> = compared
        .iter()
        .flat_map(|(path, compared)| {
            compared.differences().into_iter().map(move |it| format!("{path}: {it}"))
        })
        .collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
