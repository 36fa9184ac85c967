//! Imports between the rooms of every crate run one way.
//!
//! A room is a file or folder at a crate's top level, beside its `lib.rs` or `main.rs`; the root file is a room too,
//! if another room uses what it defines. The test reads every source file of the workspace, collects the rooms that
//! each room names in paths, and fails on each cycle. Code under `#[cfg(test)]` does not count: a test may start from any
//! stage. The runtime's handles give and take each other, so they are one room, `handles/`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use syn::visit::{self, Visit};

/// The root file of a crate, as a room.
const ROOT: &str = "(root)";

#[test]
fn imports_run_one_way() {
    let mut wrong = String::new();
    let mut edges = 0;
    for root in roots() {
        let rooms = Rooms::read(&root.file);
        edges += rooms.uses.values().map(BTreeMap::len).sum::<usize>();
        for cycle in rooms.cycles() {
            wrong +=
                &format!("{}: these rooms use each other:\n{}", root.name, rooms.explain(&cycle));
        }
    }
    assert!(edges > 100, "only {edges} imports found: the test does not see the sources");
    assert!(wrong.is_empty(), "{wrong}Move what both sides need into a room below them.");
}

#[test]
fn a_cycle_is_found_however_it_is_written() {
    let crates = [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use crate::{b::{self, B}, c};", "fn f(_: super::a::A) {}"),
        ("mod inner { use super::super::b; }", "use super::{a, c::C};"),
        ("fn f() { println!(\"{}\", crate::b::X); }", "impl crate::a::T for () {}"),
        ("use crate::B;", "pub use crate::a as other; pub struct B;"),
    ];
    for (a, b) in crates {
        let rooms = in_memory(
            "mod a; mod b; mod c; pub use b::B;",
            &[("a.rs", a), ("b.rs", b), ("c.rs", "")],
        );
        assert_eq!(rooms.cycles(), [vec!["a".to_owned(), "b".to_owned()]], "{a} {b}");
    }
}

#[test]
fn one_way_is_no_cycle() {
    let files = [
        ("a.rs", "use crate::b::B; #[cfg(all(test, unix))] mod tests { use crate::c; }"),
        ("b.rs", "use self::b::X; mod b {}"),
        ("c.rs", "use crate::{a, Shared}; use std::crate_like as d;"),
    ];
    let rooms = in_memory("mod a; mod b; mod c; pub use b::Shared;", &files);
    assert_eq!(rooms.cycles(), Vec::<Vec<String>>::new());
}

#[test]
fn the_root_is_a_room_if_others_use_its_items() {
    let rooms =
        in_memory("mod a; pub fn f() { a::g(); }", &[("a.rs", "pub fn g() { crate::f(); }")]);
    assert_eq!(rooms.cycles(), [vec![ROOT.to_owned(), "a".to_owned()]]);
    let explained = rooms.explain(&rooms.cycles()[0]);
    assert!(explained.contains("a uses (root): /a.rs:1"), "{explained}");
}

#[test]
fn the_front_end_does_no_input_or_output() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/lang/src/lib.rs");
    let mut files = 0;
    let mut found = vec![];
    for room in &Names::of(&parsed(&root)).modules {
        for (path, _) in sources(root.parent().unwrap(), room) {
            files += 1;
            let outside = outside_world(&std::fs::read_to_string(&path).unwrap());
            found.extend(outside.into_iter().map(|name| format!("{}: {name}", path.display())));
        }
    }
    assert!(files > 50, "only {files} files found");
    assert!(found.is_empty(), "compiler/lang must not use these: {found:#?}");
}

#[test]
fn uses_of_the_outside_world_are_found() {
    let text = "use std::{fmt, fs::File}; fn f() { std::env::var(\"A\"); }
        #[cfg(test)] mod tests { use std::process; }";
    assert_eq!(outside_world(text), ["std::fs", "std::env"]);
}

/// The modules of the standard library for files, processes, the network and the environment that a file names.
fn outside_world(text: &str) -> Vec<String> {
    struct Found(Vec<String>);
    impl Found {
        fn note(&mut self, path: &[String]) {
            if let [first, second, ..] = path
                && first == "std"
                && matches!(second.as_str(), "fs" | "env" | "process" | "net" | "os")
            {
                self.0.push(format!("std::{second}"));
            }
        }
    }
    impl<'ast> Visit<'ast> for Found {
        fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
            if !is_test(&module.attrs) {
                visit::visit_item_mod(self, module);
            }
        }

        fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
            for (path, _) in leaves(&item.tree) {
                self.note(&path);
            }
        }

        fn visit_path(&mut self, path: &'ast syn::Path) {
            let names: Vec<String> =
                path.segments.iter().map(|part| part.ident.to_string()).collect();
            self.note(&names);
            visit::visit_path(self, path);
        }
    }
    let mut found = Found(vec![]);
    found.visit_file(&syn::parse_file(text).unwrap());
    found.0
}

/// The rooms of a crate whose files are these.
fn in_memory(root: &str, files: &[(&str, &str)]) -> Rooms {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files.iter().chain(&[("lib.rs", root)]) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Rooms::read(&folder.path().join("lib.rs"))
}

/// The root file of a library or program.
struct Root {
    name: String,
    file: PathBuf,
}

fn parsed(path: &Path) -> syn::File {
    syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The libraries and programs of the workspace, as cargo knows them.
fn roots() -> Vec<Root> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        targets: Vec<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
        src_path: PathBuf,
    }
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).unwrap();
    let targets = metadata.packages.into_iter().flat_map(|package| package.targets);
    let has_rooms =
        |target: &Target| target.kind.iter().any(|kind| kind.contains("lib") || kind == "bin");
    targets
        .filter(has_rooms)
        .map(|target| Root { name: target.name, file: target.src_path })
        .collect()
}

/// Which room uses which, and where.
#[derive(Default)]
struct Rooms {
    /// By room, the rooms that it uses, each with the first place.
    uses: BTreeMap<String, BTreeMap<String, String>>,
}

impl Rooms {
    /// Reads a crate from its root file on.
    fn read(root: &Path) -> Self {
        let folder = root.parent().unwrap();
        let file = parsed(root);
        let names = Names::of(&file);
        let mut rooms = Rooms::default();
        rooms.visit_file(root, ROOT, 0, &file, &names);
        for room in &names.modules {
            for (path, depth) in sources(folder, room) {
                let file = parsed(&path);
                rooms.visit_file(&path, room, depth, &file, &names);
            }
        }
        rooms
    }

    fn visit_file(
        &mut self,
        path: &Path,
        room: &str,
        depth: usize,
        file: &syn::File,
        names: &Names,
    ) {
        let mut visitor = Imports { rooms: self, names, room, path, depth, inline: 0 };
        for item in &file.items {
            // A re-export makes a public path; only items that the root defines count as its own.
            if !(room == ROOT && matches!(item, syn::Item::Use(_))) {
                visitor.visit_item(item);
            }
        }
    }

    /// The sets of rooms that lead to each other.
    fn cycles(&self) -> Vec<Vec<String>> {
        let mut left: BTreeSet<&str> = self.uses.keys().map(String::as_str).collect();
        let mut cycles = vec![];
        while let Some(room) = left.pop_first() {
            let reached = self.reach(room);
            let cycle: Vec<String> = reached
                .iter()
                .filter(|other| self.reach(other).contains(room))
                .map(|&other| other.to_owned())
                .collect();
            for other in &cycle {
                left.remove(other.as_str());
            }
            if !cycle.is_empty() {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// The rooms that a room uses, and those that these use, and so on.
    fn reach(&self, room: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![room];
        while let Some(room) = open.pop() {
            for used in self.uses.get(room).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(used.as_str()) {
                    open.push(used);
                }
            }
        }
        reached
    }

    /// One line for each import within a cycle.
    fn explain(&self, cycle: &[String]) -> String {
        let mut text = String::new();
        for room in cycle {
            for (used, place) in self.uses.get(room).into_iter().flatten() {
                if cycle.contains(used) {
                    writeln!(text, "  {room} uses {used}: {place}").unwrap();
                }
            }
        }
        text
    }
}

/// The files of a room with the number of modules between each and the root.
fn sources(folder: &Path, room: &str) -> Vec<(PathBuf, usize)> {
    let single = folder.join(room).with_extension("rs");
    let single = single.is_file().then_some((single, 1));
    let mut found: Vec<_> = single.into_iter().collect();
    let mut open = vec![(folder.join(room), 1)];
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push((path, depth + 1));
            } else if path.extension().is_some_and(|ending| ending == "rs") && stem != "tests" {
                found.push((path, if stem == "mod" { depth } else { depth + 1 }));
            }
        }
    }
    // A module in the folder `tests` is a test's.
    found.retain(|(path, _)| !path.components().any(|part| part.as_os_str() == "tests"));
    found.sort();
    found
}

/// What `crate::name` means.
#[derive(Default)]
struct Names {
    /// The rooms.
    modules: BTreeSet<String>,
    /// Names that the root brings in from rooms, by name.
    imported: BTreeMap<String, String>,
    /// Names that the root defines.
    own: BTreeSet<String>,
}

impl Names {
    fn of(root: &syn::File) -> Self {
        let mut names = Names::default();
        for item in &root.items {
            names.add(item);
        }
        names
    }

    fn add(&mut self, item: &syn::Item) {
        match item {
            syn::Item::Mod(module) if module.content.is_none() && !is_test(&module.attrs) => {
                self.modules.insert(module.ident.to_string());
            }
            syn::Item::Use(item) => {
                for (path, name) in leaves(&item.tree) {
                    let from = path.iter().find(|part| !matches!(part.as_str(), "crate" | "self"));
                    if let Some(from) = from {
                        self.imported.insert(name, from.clone());
                    }
                }
            }
            syn::Item::Fn(item) => _ = self.own.insert(item.sig.ident.to_string()),
            syn::Item::Struct(item) => _ = self.own.insert(item.ident.to_string()),
            syn::Item::Enum(item) => _ = self.own.insert(item.ident.to_string()),
            syn::Item::Type(item) => _ = self.own.insert(item.ident.to_string()),
            syn::Item::Const(item) => _ = self.own.insert(item.ident.to_string()),
            syn::Item::Static(item) => _ = self.own.insert(item.ident.to_string()),
            syn::Item::Trait(item) => _ = self.own.insert(item.ident.to_string()),
            syn::Item::Mod(item) => _ = self.own.insert(item.ident.to_string()),
            _ => {}
        }
    }

    /// The room that a name at the crate's top level belongs to; `None` for another crate's.
    fn room(&self, name: &str) -> Option<String> {
        if self.modules.contains(name) {
            return Some(name.to_owned());
        }
        if self.own.contains(name) {
            return Some(ROOT.to_owned());
        }
        self.imported.get(name).filter(|from| self.modules.contains(*from)).cloned()
    }
}

/// The paths of a `use`, and the name that each brings in.
fn leaves(tree: &syn::UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        syn::UseTree::Path(path) => {
            let mut found = leaves(&path.tree);
            for (parts, name) in &mut found {
                parts.insert(0, path.ident.to_string());
                if name == "self" {
                    *name = path.ident.to_string();
                }
            }
            found
        }
        syn::UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        syn::UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        syn::UseTree::Glob(_) => vec![(vec!["*".into()], "*".into())],
        syn::UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let Ok(condition) = attribute.meta.require_list() else { return false };
        let condition = condition.tokens.to_string();
        let names =
            |name: &str| condition.split(|c: char| !c.is_alphanumeric()).any(|it| it == name);
        names("test") && !names("not")
    })
}

/// Notes the rooms that a file names.
struct Imports<'r> {
    rooms: &'r mut Rooms,
    names: &'r Names,
    room: &'r str,
    path: &'r Path,
    /// Modules between the file and the root.
    depth: usize,
    /// Modules within the file around the present place.
    inline: usize,
}

impl Imports<'_> {
    /// Notes a path from its first names.
    fn note<'p>(&mut self, parts: impl IntoIterator<Item = &'p str>, line: usize) {
        let mut parts = parts.into_iter().peekable();
        let mut up = self.depth + self.inline;
        let mut is_rooted = self.room == ROOT && up == 0;
        while let Some(part) = parts.peek().copied() {
            match part {
                "crate" => (up, is_rooted) = (0, true),
                "self" => {}
                "super" => {
                    up = up.saturating_sub(1);
                    is_rooted = up == 0;
                }
                _ => break,
            }
            parts.next();
        }
        let Some(name) = parts.next().filter(|_| is_rooted) else { return };
        let Some(used) = self.names.room(name) else { return };
        if used != self.room {
            let shown = self.path.file_name().unwrap().to_string_lossy();
            let folder = self.path.parent().and_then(Path::file_name).unwrap().to_string_lossy();
            let folder = if self.depth > 1 { folder.as_ref() } else { "" };
            let uses = self.rooms.uses.entry(self.room.to_owned()).or_default();
            uses.entry(used).or_insert_with(|| format!("{folder}/{shown}:{line}"));
        }
    }

    /// Notes paths in the tokens of a macro's call, which are not parsed.
    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut parts: Vec<(String, usize)> = vec![];
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(name) => {
                    let line = name.span().start().line;
                    parts.push((name.to_string(), line));
                    continue;
                }
                proc_macro2::TokenTree::Punct(mark) if mark.as_char() == ':' => continue,
                proc_macro2::TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
            self.macro_path(&parts);
            parts.clear();
        }
        self.macro_path(&parts);
    }

    fn macro_path(&mut self, parts: &[(String, usize)]) {
        if let Some((first, line)) = parts.first()
            && matches!(first.as_str(), "crate" | "super")
        {
            self.note(parts.iter().map(|(name, _)| name.as_str()), *line);
        }
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            _ => &vec![],
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.inline += 1;
        visit::visit_item_mod(self, module);
        self.inline -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let line = item.use_token.span.start().line;
        for (path, _) in leaves(&item.tree) {
            self.note(path.iter().map(String::as_str), line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        // A single name in the root is a local or an item of the root itself.
        if names.len() > 1 && path.leading_colon.is_none() {
            let line = path.segments[0].ident.span().start().line;
            self.note(names.iter().map(String::as_str), line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
    }
}
