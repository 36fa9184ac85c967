//! Links in this process, by the linker wild, from memory to memory: a machine without a C compiler can run programs.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libwild::{
    Args, FileSystem, FileType, InputFileData, Linker, OsFileSystem, OutputFileData, OutputOptions,
};
use object::elf::{FileHeader64, PT_LOAD, ProgramHeader64};
use object::{LittleEndian, pod};

use super::SharedObject;
use crate::error::{Error, Result};

type Io<T = ()> = libwild::error::Result<T>;

const OBJECT: &str = "image.o";
const IMAGE: &str = "image.so";

/// As the options for the system's linker (`linker.rs`), and one thread, because an image is small.
const ARGUMENTS: [&str; 10] = [
    "wild",
    "-shared",
    "--threads=1",
    "-z",
    "defs",
    "--gc-sections",
    "--build-id=none",
    "-o",
    IMAGE,
    OBJECT,
];

/// The maths library and the C library, of which an image may use functions.
pub(super) struct Libraries([PathBuf; 2]);

impl Libraries {
    /// The files that this process has loaded; `None` if it has no such files, as with another C library than glibc.
    pub(super) fn of_this_process() -> Option<Libraries> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let find = |name: &str| loaded(&maps, name).filter(|path| path.is_file());
        Some(Libraries([find("libm")?, find("libc")?]))
    }
}

/// The path of glibc's library `name` in a list of mappings (proc_pid_maps(5)). Before glibc 2.34, the name of the file
/// has the version: `libm-2.31.so`.
fn loaded(maps: &str, name: &str) -> Option<PathBuf> {
    let is_library = |path: &Path| {
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        let Some(rest) = file.strip_prefix(name) else { return false };
        rest == ".so.6" || (rest.starts_with("-2.") && rest.ends_with(".so"))
    };
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    paths.into_iter().find(|path| is_library(path)).map(Path::to_path_buf)
}

/// Links an object file to a shared object.
///
/// # Errors
/// [`Error::Tool`] with the linker's message, if a symbol is undefined, for instance.
pub(super) fn link(object: &[u8], libraries: &Libraries) -> Result<SharedObject> {
    let refused = |log: String| Error::Tool {
        tool: "linker",
        operation: "linking an image".into(),
        log: log.trim().into(),
    };
    let linked = catch_unwind(AssertUnwindSafe(|| run(object, libraries)));
    let linked = linked.unwrap_or_else(|_| Err(libwild::error!("the linker panicked")));
    linked.map(SharedObject).map_err(|error| refused(format!("{error:?}")))
}

fn run(object: &[u8], libraries: &Libraries) -> Io<Vec<u8>> {
    let files = Memory::default();
    files.all().insert(OBJECT.into(), object.to_vec());
    let libraries = libraries.0.iter().map(|path| path.to_string_lossy());
    let words: Vec<_> = ARGUMENTS
        .into_iter()
        .map(Into::into)
        .chain(["--as-needed".into()])
        .chain(libraries)
        .collect();
    let mut arguments = Args::new(|| words.iter())?;
    // Only a failed link has something to say.
    arguments.on_warning(Box::new(|_| ()));
    arguments.parse(|| words.iter())?;
    // Without a pool of its own, the linker would start one that stays for good.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| Linker::with_file_system(files.clone()).run(&arguments).map(drop))?;
    let image = files.all().remove(Path::new(IMAGE));
    let mut image = image.ok_or_else(|| libwild::error!("the linker wrote nothing"))?;
    place_empty_segments(&mut image).ok_or_else(|| libwild::error!("the linker wrote no image"))?;
    Ok(image)
}

/// Gives segments without bytes in the file an offset there that fits their address, which the dynamic linker demands of
/// them too. wild 0.10 leaves it out where the first variable has an alignment of 32 or more.
fn place_empty_segments(image: &mut [u8]) -> Option<()> {
    let (header, _) = pod::from_bytes::<FileHeader64<LittleEndian>>(image).ok()?;
    let first = usize::try_from(header.e_phoff.get(LittleEndian)).ok()?;
    let count = header.e_phnum.get(LittleEndian).into();
    let table = image.get_mut(first..)?;
    let (segments, _) =
        pod::slice_from_bytes_mut::<ProgramHeader64<LittleEndian>>(table, count).ok()?;
    for segment in segments {
        let is_empty = segment.p_filesz.get(LittleEndian) == 0;
        if segment.p_type.get(LittleEndian) == PT_LOAD && is_empty {
            let page = segment.p_align.get(LittleEndian).max(1);
            segment.p_offset.set(LittleEndian, segment.p_vaddr.get(LittleEndian) % page);
        }
    }
    Some(())
}

/// Files in memory. Others are on disk, and only read.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<HashMap<PathBuf, Vec<u8>>>>);

impl Memory {
    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum Input {
    Memory(Vec<u8>),
    Disk(<OsFileSystem as FileSystem>::Input),
}

impl InputFileData for Input {
    fn bytes(&self) -> &[u8] {
        match self {
            Input::Memory(bytes) => bytes,
            Input::Disk(file) => file.bytes(),
        }
    }

    fn verify_unchanged(&self) -> std::io::Result<bool> {
        match self {
            Input::Memory(_) => Ok(true),
            Input::Disk(file) => file.verify_unchanged(),
        }
    }
}

struct Output {
    files: Memory,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl OutputFileData for Output {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn finish(self) -> Io {
        self.files.all().insert(self.path, self.bytes);
        Ok(())
    }
}

impl FileSystem for Memory {
    type Input = Input;
    type Output = Output;

    fn open_input(&self, path: &Path, populate: bool) -> Io<(Input, Option<Arc<File>>)> {
        if let Some(bytes) = self.all().get(path) {
            return Ok((Input::Memory(bytes.clone()), None));
        }
        let (input, file) = OsFileSystem.open_input(path, populate)?;
        Ok((Input::Disk(input), file))
    }

    fn file_type(&self, path: &Path) -> Io<FileType> {
        if self.all().contains_key(path) {
            Ok(FileType::File)
        } else {
            OsFileSystem.file_type(path)
        }
    }

    fn canonicalize(&self, path: &Path) -> Io<PathBuf> {
        if self.all().contains_key(path) {
            return Ok(path.into());
        }
        OsFileSystem.canonicalize(path)
    }

    fn remove_file(&self, path: &Path) -> Io {
        self.all().remove(path);
        Ok(())
    }

    fn rename_file(&self, path: &Path, new_path: &Path) -> Io {
        let mut files = self.all();
        let file = files.remove(path);
        files.extend(file.map(|bytes| (new_path.into(), bytes)));
        Ok(())
    }

    fn create_output(&self, path: Arc<Path>, options: OutputOptions) -> Io<Output> {
        let bytes = vec![0; usize::try_from(options.size)?];
        Ok(Output { files: self.clone(), path: path.to_path_buf(), bytes })
    }

    fn write_auxiliary(&self, path: &Path, bytes: &[u8]) -> Io {
        self.all().insert(path.into(), bytes.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_both_kinds_of_names_are_found() {
        let maps = "7f0-7f1 r--p 00000000 fe:00 1 /lib/libcrypt.so.1\n\
                    7f1-7f2 r--p 00000000 fe:00 2 /lib/a b/libc.so.6\n\
                    7f3-7f4 rw-p 00000000 00:00 0\n\
                    7f5-7f6 r-xp 00001000 fe:00 3 /usr/lib/libm-2.31.so\n";
        assert_eq!(loaded(maps, "libc"), Some("/lib/a b/libc.so.6".into()));
        assert_eq!(loaded(maps, "libm"), Some("/usr/lib/libm-2.31.so".into()));
        assert_eq!(loaded("7f3-7f4 rw-p 00000000 00:00 0 /lib/libmvec.so.1\n", "libm"), None);
        assert!(Libraries::of_this_process().is_some() || !cfg!(target_env = "gnu"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let Some(libraries) = Libraries::of_this_process() else { return };
        let error = link(b"\x7fELF and nothing else", &libraries).unwrap_err();
        assert!(matches!(&error, Error::Tool { tool: "linker", .. }), "{error}");
    }
}
