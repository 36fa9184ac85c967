use std::ffi::OsString;
use std::thread;

use super::*;

fn entry(bytes: usize) -> Entry {
    let tools = vec![("llvm".to_owned(), "22.1".to_owned())];
    Entry { tools, parts: vec![vec![7; bytes], vec![], b"two".to_vec()] }
}

fn cache() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("a/compiled"));
    (folder, cache)
}

#[test]
fn an_entry_comes_back_as_it_was() {
    let (_folder, cache) = cache();
    let key = Key::of_text("a");
    assert_eq!(cache.get(&key), None);
    assert_eq!(cache.contents().unwrap(), Contents::default());
    cache.put(&key, &entry(100));
    assert_eq!(cache.get(&key), Some(entry(100)));
    assert_eq!(cache.get(&Key::of_text("b")), None);
    assert_eq!(cache.contents().unwrap().entries, 1);
    // Files of others stay.
    let other = cache.folder().join("notes.txt");
    fs::write(&other, "").unwrap();
    assert_eq!(cache.clear().unwrap().entries, 1);
    assert_eq!(cache.contents().unwrap(), Contents::default());
    assert!(other.exists());
}

#[test]
fn a_damaged_entry_is_no_entry() {
    let (_folder, cache) = cache();
    let key = Key::of_text("a");
    let path = cache.folder().join(key.name());
    cache.put(&key, &entry(40));
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(cache.get(&key), None, "cut to {length}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert_eq!(cache.get(&key), None, "changed at {at}");
    }
    fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
    assert_eq!(cache.get(&key), None);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(cache.get(&key), None);
    fs::remove_dir(&path).unwrap();
    cache.put(&key, &entry(40));
    assert_eq!(cache.get(&key), Some(entry(40)));
}

/// Bytes that agree with the hash and with nothing else.
#[test]
fn lengths_beyond_an_entry_are_refused() {
    for (length, lengths) in [(u64::MAX, "[1]"), (1000, "[1]"), (24, "[18446744073709551615]")] {
        let mut rest = length.to_le_bytes().to_vec();
        rest.extend(format!("{{\"tools\":[],\"lengths\":{lengths}}}").bytes());
        let bytes = [&MAGIC[..], &Sha256::digest(&rest), &rest].concat();
        assert_eq!(decode(&bytes), None, "{length} {lengths}");
    }
}

#[test]
fn the_size_is_bounded_and_what_is_used_stays() {
    let (_folder, cache) = cache();
    let cache = cache.with_limit(10_000);
    let keys: Vec<Key> = (0..20).map(|at| Key::of_text(&at.to_string())).collect();
    let long_ago = SystemTime::now() - Duration::from_secs(1000);
    for (at, key) in (0u64..).zip(&keys) {
        cache.put(key, &entry(1000));
        assert!(cache.get(&keys[0]).is_some(), "{at}");
        // Each entry but the first was last used at a time of its own.
        if at > 0 {
            let path = cache.folder().join(key.name());
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(long_ago + Duration::from_secs(at)).unwrap();
        }
    }
    let contents = cache.contents().unwrap();
    assert!(contents.bytes <= 10_000 && contents.entries >= 5, "{contents:?}");
    assert!(cache.get(&keys[19]).is_some() && cache.get(&keys[1]).is_none());
    cache.put(&Key::of_text("large"), &entry(20_000));
    assert_eq!(cache.contents().unwrap(), contents);
}

#[test]
fn what_a_dead_process_left_goes() {
    let (_folder, cache) = cache();
    fs::create_dir_all(cache.folder()).unwrap();
    let left = |text: &str, age: Duration| {
        let path = cache.folder().join(format!("{}.1-1.new", Key::of_text(text).name()));
        let file = File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    };
    let (old, young) = (left("a", 2 * ABANDONED), left("b", ABANDONED / 2));
    cache.put(&Key::of_text("c"), &entry(1));
    assert_eq!((old.exists(), young.exists()), (false, true));
    assert_eq!(cache.contents().unwrap().entries, 1);
}

#[test]
fn a_folder_that_cannot_be_written_holds_nothing() {
    let (folder, cache) = cache();
    fs::write(folder.path().join("a"), "a file").unwrap();
    cache.put(&Key::of_text("a"), &entry(1));
    assert_eq!(cache.get(&Key::of_text("a")), None);
    assert!(cache.contents().is_err());
}

#[test]
fn many_writers_and_readers_see_whole_entries() {
    let (_folder, cache) = cache();
    let cache = cache.with_limit(60_000);
    thread::scope(|scope| {
        for writer in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..50 {
                    let at = (round + writer) % 10;
                    let key = Key::of_text(&at.to_string());
                    cache.put(&key, &entry(10_000 + at));
                    if let Some(found) = cache.get(&key) {
                        assert_eq!(found, entry(10_000 + at));
                    }
                    if round == 25 {
                        cache.clear().unwrap();
                    }
                }
            });
        }
    });
    let contents = cache.contents().unwrap();
    assert!(contents.entries > 0 && contents.bytes <= 70_000, "{contents:?}");
}

#[test]
fn variables_place_and_bound_the_users_cache() {
    let of = |variables: &[(&str, &str)]| {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, v)| OsString::from(v))
        };
        Cache::from_variables(find).map(|cache| (cache.folder, cache.limit))
    };
    let folder = |path: &str| PathBuf::from(path);
    let home = ("HOME", "/h");
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[home]), Some((folder("/h/.cache/gridlet/compiled"), DEFAULT_LIMIT)));
    assert_eq!(
        of(&[home, ("GRIDLET_CACHE", "/c"), (LIMIT_VARIABLE, "1000")]),
        Some((folder("/c/compiled"), 1000))
    );
    assert_eq!(of(&[home, (LIMIT_VARIABLE, "0")]), None);
    for other in ["", "much", "-1"] {
        assert_eq!(of(&[home, (LIMIT_VARIABLE, other)]).unwrap().1, DEFAULT_LIMIT, "{other}");
    }
}
