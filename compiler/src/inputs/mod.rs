//! User-supplied modules to link, which define the program's `extern fn`s.

#[cfg(feature = "llvm")]
pub(crate) mod annotations;
#[cfg(feature = "llvm")]
pub(crate) mod cycles;
#[cfg(feature = "llvm")]
pub(crate) mod externs;
#[cfg(feature = "llvm")]
pub(crate) mod lists;
#[cfg(feature = "llvm")]
mod nesting;
#[cfg(feature = "llvm")]
mod read;
#[cfg(feature = "llvm")]
mod typed;

#[cfg(feature = "llvm")]
pub use read::read;
#[cfg(feature = "llvm")]
pub(crate) use read::{MAX_NESTING, bitcode, without_mark};

use std::path::{Path, PathBuf};

use object::elf::{EM_CUDA, ET_REL, FileHeader64};
use object::read::archive::ArchiveFile;
use object::read::elf::{FileHeader, SectionHeader as _};
use object::{LittleEndian, elf};

use crate::{Error, Result, disk};

/// The kind of a linked module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputKind {
    /// LLVM IR as text or bitcode, for GPUs or for this machine, according to its target triple.
    Ir,
    /// PTX, for GPUs.
    Ptx,
    /// Machine code for one GPU architecture.
    Cubin,
    /// Machine code for several GPU architectures.
    Fatbin,
    /// An object file: for this machine, or with code for GPUs (`nvcc -rdc=true -c`).
    Object,
    /// An archive of object files.
    Archive,
    /// C, for this machine.
    C,
}

/// A user-supplied module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkInput {
    /// Its file name, for messages.
    pub name: String,
    /// Its kind.
    pub kind: InputKind,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// The folder of its file, against which C resolves `#include`.
    pub folder: Option<PathBuf>,
}

impl LinkInput {
    /// A module whose kind follows from its extension: `.ll .bc .ptx .cubin .fatbin .o .a .c`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other extension, and for files whose contents do not match their
    /// extension.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Result<LinkInput> {
        let name = name.into();
        let refuse = |why: &str| Err(Error::Invalid(format!("{name}: {why}")));
        let ending = Path::new(&name).extension().and_then(|ending| ending.to_str());
        let kind = match ending {
            Some("ll" | "bc") => InputKind::Ir,
            Some("ptx") => InputKind::Ptx,
            Some("cubin") => InputKind::Cubin,
            Some("fatbin") => InputKind::Fatbin,
            Some("o") => InputKind::Object,
            Some("a") => InputKind::Archive,
            Some("c") => InputKind::C,
            Some("so") => {
                return refuse(
                    "a shared object cannot be linked in, because an image holds all of its code; give the object files \
                     or the archive (.o, .a) that it was made from",
                );
            }
            _ => {
                return refuse(
                    "the extension must be .ll, .bc, .ptx, .cubin, .fatbin, .o, .a or .c, and match the contents",
                );
            }
        };
        let is_text = matches!(kind, InputKind::Ir | InputKind::Ptx | InputKind::C);
        if bytes.is_empty() && !is_text {
            return refuse("the file is empty; build it again");
        }
        if kind == InputKind::Object
            && let Err(why) = object_file(&bytes)
        {
            return refuse(why);
        }
        // nvJitLink crashes on machine code that is cut short.
        if kind == InputKind::Cubin
            && !object_file(&bytes).is_ok_and(|found| found.machine == EM_CUDA)
        {
            return refuse(
                "not a cubin, or cut short; build it again with `nvcc -rdc=true -cubin`",
            );
        }
        if kind == InputKind::Archive && ArchiveFile::parse(&*bytes).is_err() {
            return refuse("not an archive; make one from object files with `ar rcs`");
        }
        if kind == InputKind::Archive && members(&bytes).is_none() {
            return refuse(
                "a thin archive, which does not contain its members; build it without `T`",
            );
        }
        Ok(LinkInput { name, kind, bytes, folder: None })
    }

    /// Reads a module from a file.
    ///
    /// # Errors
    /// As [`LinkInput::new`]; [`Error::Io`] if the file cannot be read.
    pub fn read(path: &Path) -> Result<LinkInput> {
        if path.is_dir() {
            let why = "is a folder; name the file in it that defines the functions";
            return Err(Error::Invalid(format!("{}: {why}", path.display())));
        }
        let bytes = disk::bytes(path)?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        let folder = path.parent().map(Path::to_path_buf);
        Ok(LinkInput { folder, ..LinkInput::new(name, bytes)? })
    }

    /// Whether nvJitLink reads it directly.
    pub(crate) fn is_for_device_link(&self) -> bool {
        !matches!(self.kind, InputKind::Ir | InputKind::C)
    }

    /// Whether the system's linker reads it, through the C compiler.
    pub(crate) fn is_for_host_link(&self) -> bool {
        matches!(self.kind, InputKind::Object | InputKind::Archive | InputKind::C)
    }

    /// Whether the module evidently has no code for the target: GPUs or this machine.
    pub(crate) fn has_nothing_for(&self, gpu: bool) -> bool {
        let lacks = |bytes: &[u8]| object_file(bytes).is_ok_and(|found| !found.has_code_for(gpu));
        match self.kind {
            InputKind::Ir => false,
            InputKind::Ptx | InputKind::Cubin | InputKind::Fatbin => !gpu,
            InputKind::C => gpu,
            InputKind::Object => lacks(&self.bytes),
            InputKind::Archive => {
                members(&self.bytes).is_some_and(|all| all.into_iter().all(lacks))
            }
        }
    }

    /// Whether only linking reveals its definitions.
    pub(crate) fn is_opaque(&self) -> bool {
        !matches!(self.kind, InputKind::Ir | InputKind::C | InputKind::Ptx)
    }
}

/// Properties from the header of an object file.
struct ObjectFile {
    machine: elf::Machine,
    /// Whether it also carries code for GPUs.
    has_device_code: bool,
}

impl ObjectFile {
    fn has_code_for(&self, gpu: bool) -> bool {
        let host = if cfg!(target_arch = "x86_64") { elf::EM_X86_64 } else { elf::EM_AARCH64 };
        let is_for_gpu = self.machine == EM_CUDA;
        if gpu { is_for_gpu || self.has_device_code } else { self.machine == host }
    }
}

/// Reads an object file's header, or says why a linker would refuse the file.
fn object_file(bytes: &[u8]) -> std::result::Result<ObjectFile, &'static str> {
    const REMAKE: &str = "not a 64-bit ELF object file, or damaged; build it again with `cc -c` or `nvcc -rdc=true -c`";
    let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(|_| REMAKE)?;
    let machine = header.e_machine.get(LittleEndian);
    if header.e_type.get(LittleEndian) != ET_REL && machine != EM_CUDA {
        return Err(
            "a linked program or shared object; give the object files that it was made from",
        );
    }
    let sections = header.sections(LittleEndian, bytes).map_err(|_| REMAKE)?;
    // Their names and contents may lie behind the end of a file that is cut short.
    for section in sections.iter() {
        section.data(LittleEndian, bytes).map_err(|_| REMAKE)?;
    }
    header.program_headers(LittleEndian, bytes).map_err(|_| REMAKE)?;
    let is_device_code =
        |name: &[u8]| name.starts_with(b".nv_fatbin") || name.starts_with(b"__nv_relfatbin");
    let mut names =
        sections.iter().filter_map(|section| sections.section_name(LittleEndian, section).ok());
    Ok(ObjectFile { machine, has_device_code: names.any(is_device_code) })
}

/// The files in an archive; `None` for a thin archive.
fn members(archive: &[u8]) -> Option<Vec<&[u8]>> {
    let archive_file = ArchiveFile::parse(archive).ok()?;
    if archive_file.is_thin() {
        return None;
    }
    let members = archive_file.members().filter_map(|member| member.ok()?.data(archive).ok());
    Some(members.collect())
}
