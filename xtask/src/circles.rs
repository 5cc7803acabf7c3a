//! No two files of a crate import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::{Import, Mention, code, imports, module_declarations, paths, product_tokens};
use crate::tree::Source;

/// Adds every circle of files to `found`.
///
/// What counts: file A imports file B if A names an item that B defines, by a `use` or by a path in its code,
/// from `crate::`, `super::`, `self::`, a module of its own or a module that it has imported. Which file
/// defines an item is found by following the modules of the path, and then re-exports, so that the file in
/// between does not count: if `lib.rs` says `pub use record::Row`, `crate::Row` is an import of `record.rs`.
///
/// What does not:
///
/// - Naming a module. What is named through it counts.
/// - Declaring a child (`mod b;`), and re-exporting from it by a `pub use` whose name the parent has no use
///   for. A parent that is a table of contents is in no circle with its children.
/// - Tests, methods called on a value, names that macros make.
///
/// A circle is a set of files each of which reaches each other one by imports. It is reported once, with the
/// shortest round through its first file. Those of a family that is [`KNOWN`] are not.
pub(crate) fn circles(tree: &[Source], found: &mut Vec<String>) {
    let names: BTreeSet<&str> = tree.iter().filter_map(Source::crate_name).collect();
    let mut all = Graph::default();
    let folders = names.iter().map(|name| format!("crates/{name}/src")).chain(["xtask/src".to_owned()]);
    for folder in folders {
        for root in ["lib", "main"] {
            if let Some(modules) = Modules::of(tree, &folder, root) {
                all.0.append(&mut modules.graph().0);
            }
        }
    }
    let circles = all.circles();
    for (parent, _) in KNOWN {
        let is_here = tree.iter().any(|source| source.path == *parent);
        if is_here && !circles.iter().any(|circle| circle.is_of(parent)) {
            found.push(format!(
                "{parent}: in no circle any more: take it out of KNOWN (xtask/src/circles.rs)"
            ));
        }
    }
    let is_known = |circle: &Circle| KNOWN.iter().any(|(parent, _)| circle.is_of(parent));
    found.extend(circles.iter().filter(|circle| !is_known(circle)).map(Circle::finding));
}

/// Files that import each other, in order, and a round through the first.
struct Circle {
    files: Vec<String>,
    round: Vec<String>,
}

impl Circle {
    /// Whether it is `parent` with files below it, and no other.
    fn is_of(&self, parent: &str) -> bool {
        let folder = parent.strip_suffix("/mod.rs").or_else(|| parent.strip_suffix(".rs")).unwrap_or(parent);
        let is_below = |file: &str| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.files.iter().any(|file| file == parent)
            && self.files.iter().all(|file| file == parent || is_below(file))
    }

    fn finding(&self) -> String {
        let Self { files, round } = self;
        format!(
            "{}: {} files import each other in a circle ({}): {}",
            files[0],
            files.len(),
            files.join(", "),
            round.join("; ")
        )
    }
}

/// A crate's modules, by their paths from the root (which is empty).
struct Modules<'a> {
    by_path: BTreeMap<Vec<String>, Module<'a>>,
}

struct Module<'a> {
    file: &'a str,
    imports: Vec<Import>,
    paths: Vec<Mention>,
    /// What the file defines.
    defined: BTreeSet<&'a str>,
    /// All identifiers outside of its `use` declarations.
    named: BTreeSet<&'a str>,
}

/// For each file, the files that it imports, with the place of the first import.
#[derive(Default)]
struct Graph(BTreeMap<String, BTreeMap<String, String>>);

/// What a path leads to.
enum Target {
    /// A module itself.
    Module,
    /// Something that the module of this path defines.
    Item(Vec<String>),
}

impl<'a> Modules<'a> {
    fn of(tree: &'a [Source], folder: &str, root: &str) -> Option<Self> {
        let mut modules = Self { by_path: BTreeMap::new() };
        let files: BTreeMap<&str, &Source> =
            tree.iter().map(|source| (source.path.as_str(), source)).collect();
        let root = *files.get(format!("{folder}/{root}.rs").as_str())?;
        let mut waiting = vec![(Vec::new(), root, folder.to_owned())];
        while let Some((path, source, folder)) = waiting.pop() {
            let tokens = product_tokens(&source.text);
            for name in module_declarations(&tokens) {
                let inside = format!("{folder}/{name}");
                let candidates = [format!("{inside}.rs"), format!("{inside}/mod.rs")];
                if let Some(source) = candidates.iter().find_map(|file| files.get(file.as_str())) {
                    let path = [path.as_slice(), &[name]].concat();
                    waiting.push((path, source, inside));
                }
            }
            let defined = tokens.windows(2).filter(|two| DEFINING.contains(&two[0].text));
            let defined = defined.map(|two| two[1].text).collect();
            let code = code(&tokens);
            let module = Module {
                file: &source.path,
                imports: imports(&tokens),
                paths: paths(&code),
                defined,
                named: code.iter().map(|token| token.text).collect(),
            };
            modules.by_path.insert(path, module);
        }
        Some(modules)
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        for (path, module) in &self.by_path {
            let mentions = module.imports.iter().filter(|import| !self.is_re_export_of_child(path, import));
            let mentions = mentions.map(|import| &import.path).chain(&module.paths);
            for mention in mentions {
                let Some(Target::Item(of)) = self.resolve(path, &mention.segments, MAX_HOPS) else {
                    continue;
                };
                let file = self.by_path[&of].file;
                if file != module.file {
                    let place = format!(
                        "{} uses {} (line {})",
                        module.file,
                        mention.segments.join("::"),
                        mention.line
                    );
                    let imported = graph.0.entry(module.file.to_owned()).or_default();
                    imported.entry(file.to_owned()).or_insert(place);
                }
            }
        }
        graph
    }

    /// Whether `import` only passes a child's item on: it is public, and nothing else in the file names it.
    fn is_re_export_of_child(&self, path: &[String], import: &Import) -> bool {
        let is_of_child = match self.resolve(path, &import.path.segments, MAX_HOPS) {
            Some(Target::Item(of)) => of.len() > path.len() && of.starts_with(path),
            _ => false,
        };
        is_of_child && import.is_public && !self.by_path[path].named.contains(import.name.as_str())
    }

    /// What `segments`, written in the module at `from`, lead to, if that is in this crate.
    fn resolve(&self, from: &[String], segments: &[String], hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let (first, mut rest) = segments.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            name => {
                if !self.by_path.contains_key(&[from, &[name.to_owned()]].concat()) {
                    // Extern crates and preludes are nobody's import.
                    let import = self.by_path[from].imports.iter().find(|import| import.name == name)?;
                    // A crate that is imported by its own name.
                    if import.path.segments == [name] {
                        return None;
                    }
                    let all = [import.path.segments.as_slice(), rest].concat();
                    return self.resolve(from, &all, hops);
                }
                rest = segments;
                from.to_vec()
            }
        };
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                at.pop()?;
            } else {
                let child = [at.as_slice(), std::slice::from_ref(name)].concat();
                if !self.by_path.contains_key(&child) {
                    return self.item(&at, name, after, hops);
                }
                at = child;
            }
            rest = after;
        }
        Some(Target::Module)
    }

    /// The place that defines `name` of the module `at`: this module, or the one that an import of this name
    /// leads to.
    fn item(&self, at: &[String], name: &String, after: &[String], hops: usize) -> Option<Target> {
        let module = &self.by_path[at];
        if let Some(import) = module.imports.iter().find(|import| import.name == *name) {
            let all = [import.path.segments.as_slice(), after].concat();
            return self.resolve(at, &all, hops);
        }
        if module.defined.contains(name.as_str()) {
            return Some(Target::Item(at.to_vec()));
        }
        let globs = module.imports.iter().filter(|import| import.name == "*");
        for glob in globs {
            let all = [glob.path.segments.as_slice(), std::slice::from_ref(name), after].concat();
            if let Some(target) = self.resolve(at, &all, hops) {
                return Some(target);
            }
        }
        None
    }
}

impl Graph {
    fn imported_by(&self, file: &str) -> impl Iterator<Item = &String> {
        self.0.get(file).into_iter().flat_map(BTreeMap::keys)
    }

    /// Whether imports lead from one file to another, by one step at least.
    fn reaches(&self, from: &str, to: &str) -> bool {
        self.way(from, to).is_some()
    }

    /// The shortest such way, without its first file.
    fn way(&self, from: &str, to: &str) -> Option<Vec<&String>> {
        let mut ways: Vec<Vec<&String>> = self.imported_by(from).map(|file| vec![file]).collect();
        let mut seen: BTreeSet<&String> = self.imported_by(from).collect();
        let mut next = 0;
        while let Some(way) = ways.get(next).cloned() {
            let last = *way.last()?;
            if last == to {
                return Some(way);
            }
            for file in self.imported_by(last) {
                if seen.insert(file) {
                    ways.push([way.as_slice(), &[file]].concat());
                }
            }
            next += 1;
        }
        None
    }

    fn circles(&self) -> Vec<Circle> {
        let mut found = Vec::new();
        let mut done: BTreeSet<&String> = BTreeSet::new();
        for file in self.0.keys() {
            if done.contains(file) {
                continue;
            }
            let Some(way) = self.way(file, file) else { continue };
            let is_in = |other: &&String| self.reaches(file, other) && self.reaches(other, file);
            let all: Vec<&String> = self.0.keys().filter(is_in).collect();
            let files = all.iter().map(|file| (*file).clone()).collect();
            let mut round = Vec::new();
            let mut from = file;
            for to in way {
                round.push(self.0[from][to].clone());
                from = to;
            }
            found.push(Circle { files, round });
            done.extend(all);
        }
        found
    }
}

/// Families of files that stay in a circle, by the parent, each with its reason. All files of such a circle
/// are the parent and files below it.
const KNOWN: &[(&str, &str)] = &[
    ("crates/commands/src/args.rs", "a command's flags are a file each and take in the flags that all share"),
    (
        "crates/commands/src/campaign/push/mod.rs",
        "the thread that copies and one run of the command are files of their own, with the errors of all",
    ),
    ("crates/commands/src/command/study/mod.rs", "the command's actions share its arguments"),
    (
        "crates/commands/src/thresholds.rs",
        "what was not heard is a part of the check that has a file of its own",
    ),
    ("crates/config/src/codec.rs", "a codec is a file each and fills the row that all have"),
    ("crates/emu/src/run.rs", "the record is made of the run's own parts"),
    ("crates/emu/src/world.rs", "what the child makes after the fork is described by the world's own types"),
    ("crates/live/src/client.rs", "the run is a part of the arena that has files of its own"),
    ("crates/live/src/server.rs", "handshakes, sessions and datagrams share what the server's threads share"),
    ("crates/measure/src/metrics/adaptive/mod.rs", "the parts of the jitter buffer share its block of 10 ms"),
    ("crates/measure/src/summary.rs", "the summary's types hold each other"),
    ("crates/measure/src/metrics/e_model.rs", "each scale is the model with other constants"),
    ("crates/measure/src/metrics/call.rs", "a listener rates what the call's own types hold"),
    ("crates/report/src/animation/mod.rs", "a frame is drawn of the animation's own types"),
    ("crates/report/src/verdict.rs", "the verdict's words say its own types"),
    ("crates/scenario/src/workloads.rs", "a workload is a file each and fills the row that all have"),
    ("crates/study/src/load.rs", "the loader's methods stand in a file for each part of the study"),
    ("crates/transport/src/cc/bbr/mod.rs", "BBR's methods stand in a file for each part of the model"),
    (
        "crates/transport/src/tcp/receive/ack_policy.rs",
        "Linux's policy is one of two and answers in the same words",
    ),
    (
        "crates/transport/src/tcp/recovery/mod.rs",
        "recovery is one state that each RFC's rules change, a file each",
    ),
    ("xtask/src/dist.rs", "the steps share how files are copied"),
    ("xtask/src/peers.rs", "each comparison runs the simulators that all describe"),
];

/// The keywords before a definition's name.
const DEFINING: [&str; 9] = ["fn", "struct", "enum", "trait", "const", "static", "type", "union", "mod"];
/// Re-exports of re-exports that are followed.
const MAX_HOPS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let path = |name: &str| format!("crates/path/src/{name}.rs");
        let source = |(name, text): &(&str, &str)| Source {
            path: path(name),
            text: (*text).to_owned(),
            is_test_module: false,
        };
        let tree: Vec<Source> = files.iter().map(source).collect();
        let mut found = Vec::new();
        circles(&tree, &mut found);
        found
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let files = [
            ("lib", "mod a; mod b;"),
            ("a", "use crate::b::B;\nstruct A(B);"),
            ("b", "struct B;\nfn f() { crate::a::A }"),
        ];
        let round =
            "crates/path/src/a.rs uses crate::b::B (line 1); crates/path/src/b.rs uses crate::a::A (line 2)";
        let files_of_it = "crates/path/src/a.rs, crates/path/src/b.rs";
        let expected =
            format!("crates/path/src/a.rs: 2 files import each other in a circle ({files_of_it}): {round}");
        assert_eq!(found(&files), [expected]);
    }

    #[test]
    fn three_files_are_one_circle_whatever_the_path_is_written_as() {
        let files = [
            ("lib", "mod a; mod b; mod c;\npub use c::C;"),
            ("a", "use super::b;\nfn f() { b::B }\nstruct A;"),
            ("b", "use crate::C;\nstruct B;"),
            ("c", "use crate::a::{self as x};\nstruct C(x::A);"),
        ];
        let found = found(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("3 files"), "{found:?}");
    }

    #[test]
    fn a_chain_is_no_circle_nor_is_one_through_tests() {
        let files = [
            ("lib", "mod a; mod b;\n#[cfg(test)] mod t;"),
            ("a", "use crate::b::B;\nstruct A(B);"),
            ("b", "struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
            ("t", "use crate::a::A;"),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn a_parent_that_only_names_its_children_is_in_no_circle_with_them() {
        let parent = ("a/mod", "mod b; mod c;\npub use b::B;\npub use c::C;\nstruct A;");
        let files =
            [("lib", "mod a;"), parent, ("a/b", "struct B(super::A);"), ("a/c", "struct C(super::B);")];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn a_parent_that_uses_what_uses_it_is_in_a_circle_with_its_child() {
        let parent = ("a/mod", "mod b;\nstruct A;\nfn f() { b::B }");
        let files = [("lib", "mod a;"), parent, ("a/b", "struct B(super::A);")];
        let found = found(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a/b.rs uses super::A (line 1)"), "{found:?}");
    }

    #[test]
    fn the_root_is_in_a_circle_with_what_uses_its_own_items() {
        let files = [("lib", "mod a;\nstruct L;\nfn f() { a::A }"), ("a", "struct A(crate::L);")];
        assert_eq!(found(&files).len(), 1);
        let files = [("lib", "mod a;\npub use a::A;\nstruct L;"), ("a", "struct A(crate::L);")];
        assert!(found(&files).is_empty());
    }
}
