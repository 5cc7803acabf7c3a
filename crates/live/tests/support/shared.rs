//! What the tests of both real arenas share: the plan of a repetition, files, and the judge of drawn sizes.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use talkpath_arena::RunPlan;
use talkpath_flow::AnyWorkload;
use talkpath_flow::workload::Workload;
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{Fate, FileRecord, FlowRecord, MessageRecord, RunRecord};
use talkpath_model::Flow;
use talkpath_units::{Bytes, Instant, Seed};

/// The first repetition, with all its rows.
pub fn plan<'a>(interrupt: &'a AtomicBool, progress: &'a (dyn Fn(Instant) + Sync)) -> RunPlan<'a> {
    RunPlan {
        cell: 0,
        repetition: 0,
        seed: SEED,
        series: Some(SeriesDetail::Sampled),
        rows: true,
        interrupt,
        progress,
    }
}

const SEED: Seed = Seed::new(5);

/// Each message has the size that the workload of `flow` draws in the repetition of [`plan`], as in the
/// simulator; all that was sent was read, once and in order, and came back with the same number and size if
/// it is echoed.
pub fn assert_as_drawn(record: &FlowRecord, flow: &Flow) {
    let (name, late) = (&flow.name, Instant::from_secs(3600));
    let mut workload = AnyWorkload::new(&flow.workload, flow.workload_seed(SEED), late);
    workload.open(Instant::ZERO);
    let drawn = std::iter::from_fn(|| workload.poll_message(Bytes::MAX, late)).map(|message| message.size);
    let rows = &record.forward.messages;
    let sizes: Vec<_> = rows.iter().map(|row| row.size).collect();
    assert!(sizes.len() > 20 && sizes.windows(2).any(|pair| pair[0] != pair[1]), "{name}: {sizes:?}");
    assert_eq!(sizes, drawn.take(rows.len()).collect::<Vec<_>>(), "{name}");
    let (sent, unsent): (Vec<&MessageRecord>, Vec<_>) = rows.iter().partition(|row| row.sent.is_some());
    assert!(unsent.iter().all(|row: &&MessageRecord| row.fate == Fate::NotOpen), "{name}: {unsent:?}");
    assert!(sent.len() > 10, "{name}: {} of {} were sent", sent.len(), rows.len());
    let is_whole = |row: &&MessageRecord| row.fate == Fate::Delivered && row.copies == 1;
    assert!(sent.iter().all(is_whole), "{name}: {sent:?}");
    let numbers: Vec<_> = sent.iter().map(|row| row.seq).collect();
    assert_eq!(record.forward.arrivals, numbers, "{name}");
    if !record.forward.reads.is_empty() {
        let read: u64 = record.forward.reads.iter().map(|(_, bytes)| bytes.get()).sum();
        assert_eq!(read, sent.iter().map(|row| row.size.get()).sum::<u64>(), "{name}");
    }
    if let Some(echo) = &record.echo {
        let of = |rows: &[&MessageRecord]| rows.iter().map(|row| (row.seq, row.size)).collect::<Vec<_>>();
        let back: Vec<_> = echo.messages.iter().collect();
        assert_eq!(of(&back), of(&sent), "{name}");
        assert!(back.iter().all(is_whole), "{name}: {back:?}");
    }
}

/// A folder that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("talkpath-files-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file of `size` bytes that repeat no earlier than after 251.
    pub fn file(&self, name: &str, size: usize) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, (0..size).map(|n| (n % 251) as u8 ^ (n / 251) as u8).collect::<Vec<_>>())
            .unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn found<'a>(record: &'a RunRecord, flow: &str) -> &'a FileRecord {
    let flow = record.flows.iter().find(|it| it.info.name == flow).unwrap();
    flow.file.as_ref().unwrap()
}
