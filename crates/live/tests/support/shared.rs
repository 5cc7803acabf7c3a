//! What the tests of both real arenas share: the plan of a repetition, and files.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use talkpath_arena::RunPlan;
use talkpath_measure::series::SeriesDetail;
use talkpath_measure::{FileRecord, RunRecord};
use talkpath_units::{Instant, Seed};

/// The first repetition, with all its rows.
pub fn plan<'a>(interrupt: &'a AtomicBool, progress: &'a (dyn Fn(Instant) + Sync)) -> RunPlan<'a> {
    RunPlan {
        cell: 0,
        repetition: 0,
        seed: Seed::new(5),
        series: Some(SeriesDetail::Sampled),
        rows: true,
        interrupt,
        progress,
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
