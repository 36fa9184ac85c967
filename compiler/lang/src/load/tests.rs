use super::*;
use crate::diagnostics::render;
use crate::program::check;

/// The files of a program in memory, by name.
fn names(files: &Memory, first: &str) -> Vec<String> {
    let sources = load(files, Path::new(first)).unwrap();
    sources.files().iter().map(|file| file.name.clone()).collect()
}

/// The checker's messages for a program in memory.
fn messages(files: &Memory, first: &str) -> String {
    let sources = load(files, Path::new(first)).unwrap();
    match check(sources.clone()) {
        Ok(_) => String::new(),
        Err(Error::Program(diagnostics)) => render(&diagnostics, &sources, false),
        Err(error) => error.to_string(),
    }
}

#[test]
fn files_are_read_once_and_named_relative_to_the_first() {
    let files = Memory::new([
        (
            "src/main/p.grid",
            "use \"../lib/a.grid\"; use \"./b.grid\"; use \"b.grid\"; kernel k() {}",
        ),
        ("src/lib/a.grid", "use \"../main/b.grid\"; use \"../main/p.grid\"; use \"deep/c.grid\";"),
        ("src/main/b.grid", "use \"../lib/deep/../a.grid\"; use \"b.grid\";"),
        ("src/lib/deep/c.grid", "// use \"none.grid\";\n/* use \"none.grid\"; */"),
        ("src/main/unused.grid", "use \"none.grid\";"),
    ]);
    let expected = ["p.grid", "../lib/a.grid", "b.grid", "../lib/deep/c.grid"];
    assert_eq!(names(&files, "src/main/p.grid"), expected);
    assert_eq!(names(&files, "./src/main/../main/p.grid"), expected);
    assert_eq!(messages(&files, "src/main/p.grid"), "");
}

#[test]
fn unusable_files_are_reported_at_the_use() {
    let mut files = Memory::new([
        (
            "p.grid",
            "use \"none.grid\";\nuse \"lib\";\nuse \"latin.grid\";\nuse \"\";\nuse \"/etc/p.grid\";\n\
             use \"p.grid/a.grid\";\nkernel k() { from_somewhere(); let x: u32 = true; }\n",
        ),
        ("lib/a.grid", ""),
    ]);
    files.0.insert("latin.grid".into(), b"// line 1\n// caf\xe9\n".to_vec());
    insta::assert_snapshot!(messages(&files, "p.grid"));
}

#[test]
fn functions_of_used_files_may_be_unused() {
    let program = "use \"lib.grid\"; fn mine() {} kernel k() {}";
    let files = Memory::new([("a.grid", program), ("lib.grid", "fn theirs() {}")]);
    let checked = check(load(&files, Path::new("a.grid")).unwrap()).unwrap();
    let warnings: Vec<_> = checked.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(warnings, ["no kernel calls the function `mine`"]);
}

#[test]
fn the_number_of_files_is_bounded() {
    // Each file uses only the next, so nothing lists all the files.
    let chain = |count: usize| {
        let file = |at: usize| {
            let text = format!("use \"{}.grid\"; fn f{at}() {{}}", at + 1);
            (PathBuf::from(format!("{at}.grid")), text.into_bytes())
        };
        let mut files: BTreeMap<PathBuf, Vec<u8>> = (0..count - 1).map(file).collect();
        files.insert(format!("{}.grid", count - 1).into(), b"kernel k() {}".to_vec());
        Memory(files)
    };
    assert_eq!(messages(&chain(MAX_FILES), "0.grid"), "");
    let message = messages(&chain(MAX_FILES + 2), "0.grid");
    assert!(message.starts_with("error[too-many-files]"), "{message}");
    assert!(message.contains("255.grid:1:5"), "{message}");
    assert_eq!(message.matches("error[").count(), 1, "{message}");
}

#[test]
fn files_that_are_not_there_are_looked_for_only_so_often() {
    /// Counts the queries.
    struct Counting(Memory, std::cell::Cell<usize>);
    impl Files for Counting {
        fn identity(&self, path: &Path) -> io::Result<PathBuf> {
            self.1.set(self.1.get() + 1);
            self.0.identity(path)
        }
        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            self.0.read(path)
        }
    }
    let asked = |text: &str| {
        let files = Counting(Memory::new([("a.grid", text)]), Default::default());
        load(&files, Path::new("a.grid")).unwrap();
        files.1.get()
    };
    assert!(asked(&"use \"none.grid\";".repeat(10_000)) < 10);
    let distinct: String = (0..10_000).map(|at| format!("use \"{at}.grid\";")).collect();
    assert!(asked(&distinct) < 2 * MAX_FILES);
}

#[test]
fn the_first_file_must_be_there() {
    let mut files = Memory::new([("lib/a.grid", "")]);
    files.0.insert("latin.grid".into(), b"\xe9".to_vec());
    let error = |path: &str| load(&files, Path::new(path)).unwrap_err();
    assert!(matches!(error("none.grid"), Error::Io { .. }));
    assert!(matches!(error("lib"), Error::Invalid(_)));
    assert!(matches!(error("latin.grid"), Error::Unreadable(_)));
}

#[test]
fn the_hash_of_the_source_covers_every_file() {
    let hash = |text: &str| {
        let files = Memory::new([("p.grid", "use \"a.grid\"; kernel k() {}"), ("a.grid", text)]);
        let sources = load(&files, Path::new("p.grid")).unwrap();
        check(sources).unwrap().source_sha256()
    };
    assert_eq!(hash("fn a() {}"), hash("fn a() {}"));
    assert_ne!(hash("fn a() {}"), hash("fn a() { }"));
}
