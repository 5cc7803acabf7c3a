//! Directories that several processes work in, that a kill left, or that somebody else made.

use std::fs::File;

use super::*;
use crate::store::whole::write_whole;

const STARTED: &str = "2026-11-21T19-05-07Z";

#[test]
fn two_runs_in_the_same_second_get_different_directories() {
    let out = tempfile::tempdir().unwrap();
    let first = RunDir::create(out.path(), STARTED, "A call").unwrap();
    let second = RunDir::create(out.path(), STARTED, "A call").unwrap();
    assert_eq!(first.path(), out.path().join("2026-11-21T19-05-07Z-a-call"));
    assert_eq!(second.path(), out.path().join("2026-11-21T19-05-07Z-a-call-2"));
}

#[test]
fn a_name_becomes_a_word_that_a_shell_takes() {
    assert_eq!(slug("Voice beside: an  upload!"), "voice-beside-an-upload");
    assert_eq!(slug("../../etc"), "etc");
    assert_eq!(slug("通話"), "run");
    assert_eq!(slug(&"x".repeat(300)).len(), MAX_SLUG);
}

#[test]
fn no_link_in_a_run_directory_is_written_through_and_no_draft_can_be_foreseen() {
    let out = tempfile::tempdir().unwrap();
    let victim = out.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let run = out.path().join("run");
    fs::create_dir(&run).unwrap();
    let link = |name: &str| std::os::unix::fs::symlink(&victim, run.join(name)).unwrap();
    link("report.html");
    link(".report.html.draft");
    write_bytes(&run.join("report.html"), b"page").unwrap();
    assert_eq!(fs::read(run.join("report.html")).unwrap(), b"page");
    assert!(fs::symlink_metadata(run.join("report.html")).unwrap().is_file());
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    // While it is written, its name is new each time.
    let mut names = Vec::new();
    for _ in 0..2 {
        write_whole(&run.join("a"), |_| {
            let drafts = fs::read_dir(&run).unwrap().map(|it| it.unwrap().file_name());
            names.extend(drafts.filter(|it| it.to_string_lossy().starts_with(".a.")));
            Ok::<_, Error>(())
        })
        .unwrap();
    }
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
}

#[test]
fn a_directory_whose_parts_or_lock_are_links_is_not_worked_in() {
    let out = tempfile::tempdir().unwrap();
    let (elsewhere, run) = (out.path().join("elsewhere"), out.path().join("run"));
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir(&run).unwrap();
    std::os::unix::fs::symlink(&elsewhere, run.join(PARTS)).unwrap();
    let refused = lock_parts(&run).unwrap_err();
    assert!(refused.to_string().contains("symbolic link"), "{refused}");
    fs::remove_file(run.join(PARTS)).unwrap();
    fs::create_dir(run.join(PARTS)).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("new"), run.join(PARTS).join(LOCK)).unwrap();
    assert!(lock_parts(&run).is_err());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn somebodys_own_scenario_beside_a_folder_of_parts_is_not_taken_for_a_part() {
    let out = tempfile::tempdir().unwrap();
    fs::create_dir(out.path().join(PARTS)).unwrap();
    assert!(RunDir::create_at(out.path()).is_ok(), "a process died there before it began");
    fs::write(out.path().join(SCENARIO), "# mine").unwrap();
    let refused = RunDir::create_at(out.path()).unwrap_err();
    assert!(refused.to_string().contains("is there already"), "{refused}");
}

#[test]
fn of_two_processes_that_begin_one_directory_one_is_refused_and_removes_nothing() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("a/part");
    let begin = || RunDir::create_at(&path).unwrap();
    let refused = |failure: Error| {
        assert!(matches!(failure, Error::Busy(_)), "{failure}");
    };
    let (mut first, mut second, mut third) = (begin(), begin(), begin());
    second.lock_new().unwrap();
    write_bytes(&second.file(PARTS).join(PLAN), b"{}").unwrap();
    refused(first.lock_new().unwrap_err());
    first.discard_if_new();
    write_bytes(&second.file(SCENARIO), b"").unwrap();
    drop(second);
    // It has begun, and ended.
    refused(third.lock_new().unwrap_err());
    third.discard_if_new();
    refused(RunDir::create_at(&path).unwrap_err());
    assert!(RunDir::is_begun(&path));
}

#[test]
fn a_directory_that_is_discarded_is_gone_and_that_of_another_stays() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("part");
    fs::create_dir(&path).unwrap();
    RunDir::create_at(&path).unwrap().discard_if_new();
    assert!(path.is_dir(), "somebody else made it");
    fs::remove_dir_all(&path).unwrap();
    let mut dir = RunDir::create_at(&path).unwrap();
    dir.lock_new().unwrap();
    dir.discard_if_new();
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn whoever_only_reads_makes_no_lock_and_sees_that_of_another_process() {
    let out = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(out.path(), STARTED, "parts").unwrap();
    dir.refuse_company().unwrap();
    assert_eq!(fs::read_dir(dir.file(PARTS)).unwrap().count(), 0);
    dir.lock().unwrap();
    let lock = dir.file(PARTS).join(LOCK);
    assert!(matches!(dir.refuse_company(), Err(Error::Busy(_))));
    dir.lock = None;
    let reader = File::open(lock).unwrap();
    reader.try_lock_shared().unwrap();
    dir.refuse_company().unwrap();
    assert!(dir.lock().is_err());
}

#[test]
fn parts_that_were_half_removed_are_no_parts_and_go_when_the_directory_is_opened() {
    let out = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(out.path(), STARTED, "parts").unwrap();
    write_bytes(&dir.file(SCENARIO), b"").unwrap();
    let left = dir.file(DEAD).join("0-0");
    fs::create_dir_all(&left).unwrap();
    dir.save_part(PartKey::whole(PartId { cell: 0, repetition: 1 }), |_| Ok(())).unwrap();
    dir.remove_parts().unwrap();
    assert!(!dir.has_parts() && !dir.file(DEAD).is_dir());
    dir.remove_parts().unwrap();
    fs::create_dir_all(&left).unwrap();
    let opened = RunDir::open(dir.path()).unwrap();
    assert!(!opened.has_parts() && !opened.file(DEAD).is_dir());
}

#[test]
fn a_part_is_there_only_when_it_is_whole() {
    let out = tempfile::tempdir().unwrap();
    let dir = RunDir::create(out.path(), STARTED, "parts").unwrap();
    let id = |cell, repetition| PartId { cell, repetition };
    let fails = |_: &Path| Err(Error::Unusable("gone".to_owned()));
    assert!(dir.save_part(PartKey::whole(id(0, 1)), fails).is_err());
    assert!(dir.parts().unwrap().is_empty());
    for (cell, repetition) in [(10, 0), (2, 11), (2, 3)] {
        dir.save_part(PartKey::whole(id(cell, repetition)), |_| Ok(())).unwrap();
    }
    dir.save_part(PartKey::cut_short(id(3, 0)), |_| Ok(())).unwrap();
    let expected = [
        PartKey::whole(id(2, 3)),
        PartKey::whole(id(2, 11)),
        PartKey::cut_short(id(3, 0)),
        PartKey::whole(id(10, 0)),
    ];
    assert_eq!(dir.parts().unwrap(), expected);
    dir.discard_cut_short(id(3, 0)).unwrap();
    assert_eq!(dir.parts().unwrap().len(), 3);
}

#[test]
fn a_part_that_was_cut_short_stays_until_another_is_whole() {
    let out = tempfile::tempdir().unwrap();
    let dir = RunDir::create(out.path(), STARTED, "parts").unwrap();
    let id = PartId { cell: 0, repetition: 0 };
    let kept = || fs::read(dir.part_folder(PartKey::cut_short(id)).join("a")).unwrap();
    let put = |bytes: &'static [u8]| move |folder: &Path| write_bytes(&folder.join("a"), bytes);
    dir.save_part(PartKey::cut_short(id), put(b"first")).unwrap();
    let fails = |_: &Path| Err(Error::Unusable("gone".to_owned()));
    assert!(dir.save_part(PartKey::cut_short(id), fails).is_err());
    assert_eq!(kept(), b"first");
    dir.save_part(PartKey::cut_short(id), put(b"second")).unwrap();
    assert_eq!(kept(), b"second");
    assert_eq!(fs::read_dir(dir.file(PARTS)).unwrap().count(), 1, "the first is gone");
}
