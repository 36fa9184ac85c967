//! Images: shared objects that the compiler made for the CPU.

mod variables;

use std::ffi::{CStr, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, fs, io, process, slice};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::abi::{
    ABI_VERSION, CHECKED, Callbacks, KERNEL_COUNT_SYMBOL, KERNELS_SYMBOL, KernelDescriptor,
    NEEDS_THREADS, TABLE_SYMBOL, VARIABLE_COUNT_SYMBOL, VARIABLES_SYMBOL, VERSION_SYMBOL,
    VariableDescriptor,
};
use crate::error::{Error, Result};
use crate::hooks::{Hooks, KernelMemory};
use variables::Variables;

/// A loaded image. What is launched from it keeps it loaded.
pub struct CpuImage {
    /// Declared before `backing`, so unloaded first.
    library: Library,
    /// The file in memory that the image came from, if it had to be one.
    _backing: Option<File>,
    kernels: *const KernelDescriptor,
    count: usize,
    /// Addresses of its machine code.
    code: Vec<Range<usize>>,
    sources: Vec<String>,
    variables: Variables,
    /// Knows of the image's segments.
    hooks: Option<Arc<dyn Hooks>>,
}

impl Drop for CpuImage {
    fn drop(&mut self) {
        if let Some(hooks) = &self.hooks {
            for variable in &self.variables.statics {
                hooks.on_image_segment_gone(variable.offset);
            }
            for segment in data_ranges(self.kernels as usize) {
                hooks.on_image_segment_gone(segment.start);
            }
        }
    }
}

// SAFETY: the descriptors are constants of the image, which `library` keeps loaded.
unsafe impl Send for CpuImage {}
// SAFETY: as above.
unsafe impl Sync for CpuImage {}

impl fmt::Debug for CpuImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuImage").field("kernels", &self.count).finish_non_exhaustive()
    }
}

impl CpuImage {
    /// Loads an image, which will call `callbacks`. `sources`: the names of the source files, in the order of the
    /// manifest, for messages.
    ///
    /// # Errors
    /// [`Error::Image`]: not a shared object for this machine, or of another version of
    /// [`crate::abi`].
    pub(crate) fn load(
        bytes: &[u8],
        sources: Vec<String>,
        hooks: Option<Arc<dyn Hooks>>,
        callbacks: &'static Callbacks,
    ) -> Result<CpuImage> {
        let failed = |reason: String| Error::Image { reason };
        let (library, backing) = open(bytes).map_err(failed)?;
        let missing = |name: &str| failed(format!("it has no symbol `{name}`"));

        let version = address::<u32>(&library, VERSION_SYMBOL).ok_or(missing(VERSION_SYMBOL))?;
        // SAFETY: the ABI makes the symbol a `u32`; every version of it does.
        let version = unsafe { version.read() };
        if version != ABI_VERSION {
            return Err(failed(format!(
                "it was compiled for version {version} of the CPU device, this is version {ABI_VERSION}: \
                 build it again"
            )));
        }
        let table =
            address::<*const Callbacks>(&library, TABLE_SYMBOL).ok_or(missing(TABLE_SYMBOL))?;
        let kernels = address::<KernelDescriptor>(&library, KERNELS_SYMBOL)
            .ok_or(missing(KERNELS_SYMBOL))?
            .cast_const();
        let count =
            address::<u32>(&library, KERNEL_COUNT_SYMBOL).ok_or(missing(KERNEL_COUNT_SYMBOL))?;
        // SAFETY: the version is ours, so the symbols are what the ABI says; no code of the image runs yet.
        let count = unsafe {
            table.write(callbacks);
            count.read() as usize
        };
        let variables = Variables::of(variable_table(&library), count);
        if let Some(hooks) = &hooks {
            for segment in data_ranges(kernels as usize) {
                hooks.on_image_segment(segment.start, segment.len());
            }
            for variable in &variables.statics {
                hooks.on_static(variable);
            }
        }
        Ok(CpuImage {
            code: code_ranges(kernels as usize),
            library,
            _backing: backing,
            kernels,
            count,
            sources,
            variables,
            hooks,
        })
    }

    /// What a checked image says of the memory of one of its kernels.
    pub(crate) fn memory(&self, descriptor: *const KernelDescriptor) -> KernelMemory {
        let mut descriptors = self.descriptors().iter();
        let position = descriptors.position(|known| std::ptr::eq(known, descriptor));
        let parameters = position.and_then(|at| self.variables.parameters.get(at)).cloned();
        KernelMemory {
            shared: Arc::clone(&self.variables.shared),
            parameters: parameters.unwrap_or_default(),
        }
    }

    pub(crate) fn descriptors(&self) -> &[KernelDescriptor] {
        // SAFETY: the ABI says that the array has so many elements; the image stays loaded with `self`.
        unsafe { slice::from_raw_parts(self.kernels, self.count) }
    }

    /// Whether that is the address of one of its descriptors.
    pub(crate) fn owns(&self, descriptor: *const KernelDescriptor) -> bool {
        self.descriptors().as_ptr_range().contains(&descriptor)
    }

    /// Whether it was compiled with `--check`: all its kernels were.
    pub(crate) fn is_checked(&self) -> bool {
        self.descriptors().iter().any(|kernel| kernel.flags & CHECKED != 0)
    }

    /// Whether that address lies in its machine code.
    pub(crate) fn has_code(&self, address: usize) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }

    /// The names of the source files.
    pub(crate) fn sources(&self) -> &[String] {
        &self.sources
    }

    /// Name of a source file, if it is known.
    pub(crate) fn source(&self, file: u32) -> Option<&str> {
        self.sources.get(file as usize).map(String::as_str)
    }

    /// The kernel of that name.
    pub fn kernel(self: &Arc<Self>, name: &str) -> Option<CpuKernel> {
        let descriptor = self.descriptors().iter().find(|d| kernel_name(d) == name)?;
        Some(CpuKernel { image: Arc::clone(self), descriptor })
    }

    /// The names of its kernels, in the order of the source.
    pub fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.descriptors().iter().map(kernel_name)
    }

    /// The address of an exported global, valid while the image lives.
    pub fn symbol(&self, name: &str) -> Option<*mut u8> {
        address(&self.library, name)
    }
}

/// The table of variables, which only checked images have.
fn variable_table(library: &Library) -> &[VariableDescriptor] {
    let first = address::<VariableDescriptor>(library, VARIABLES_SYMBOL);
    let count = address::<u32>(library, VARIABLE_COUNT_SYMBOL);
    match (first, count) {
        // SAFETY: the ABI says that the table has so many elements; the image stays loaded with `library`.
        (Some(first), Some(count)) => unsafe {
            slice::from_raw_parts(first, count.read() as usize)
        },
        _ => &[],
    }
}

/// A kernel of a loaded image.
#[derive(Clone)]
pub struct CpuKernel {
    pub(crate) image: Arc<CpuImage>,
    pub(crate) descriptor: *const KernelDescriptor,
}

// SAFETY: the descriptor is a constant of the image, which the kernel keeps loaded.
unsafe impl Send for CpuKernel {}
// SAFETY: as above.
unsafe impl Sync for CpuKernel {}

impl fmt::Debug for CpuKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CpuKernel").field(&self.name()).finish()
    }
}

impl CpuKernel {
    pub(crate) fn descriptor(&self) -> &KernelDescriptor {
        // SAFETY: a descriptor of the image, which `self` keeps loaded.
        unsafe { &*self.descriptor }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        kernel_name(self.descriptor())
    }

    /// Bytes of its parameter buffer.
    pub fn parameter_bytes(&self) -> u32 {
        self.descriptor().parameter_bytes
    }

    /// Bytes of static shared memory of a block.
    pub fn static_shared_bytes(&self) -> u32 {
        self.descriptor().static_shared_bytes
    }

    /// Whether its threads wait for each other.
    pub fn needs_threads(&self) -> bool {
        self.descriptor().flags & NEEDS_THREADS != 0
    }

    /// Whether it was compiled with `--check`.
    pub fn is_checked(&self) -> bool {
        self.descriptor().flags & CHECKED != 0
    }
}

/// A descriptor's name; names are ASCII.
pub(crate) fn kernel_name(descriptor: &KernelDescriptor) -> &str {
    // SAFETY: the ABI says NUL-terminated; the string lives as long as the descriptor.
    unsafe { CStr::from_ptr(descriptor.name) }.to_str().unwrap_or("?")
}

/// The address of a symbol.
fn address<T>(library: &Library, name: &str) -> Option<*mut T> {
    // SAFETY: only the address is taken; who uses it says why it may.
    let symbol = unsafe { library.get::<*mut T>(name.as_bytes()) }.ok()?;
    let address = symbol.into_raw();
    (!address.is_null()).then_some(address.cast())
}

/// Loads the bytes: from a file that is gone afterwards, or, where no folder allows code, from memory.
fn open(bytes: &[u8]) -> Result<(Library, Option<File>), String> {
    // A name of its own for every load: the loader takes a name that it knows for what it has loaded under it.
    static LOADS: AtomicU64 = AtomicU64::new(0);
    let number = LOADS.fetch_add(1, Ordering::Relaxed);

    let path: PathBuf = std::env::temp_dir().join(format!("gridlet-{}-{number}.so", process::id()));
    let from_file = write_new(&path, bytes).map_err(|error| error.to_string()).and_then(|()| {
        let library = load(&path);
        // Loaded or not, the file has done its work.
        let _ = fs::remove_file(&path);
        library
    });
    let reason = match from_file {
        Ok(library) => return Ok((library, None)),
        Err(reason) => reason,
    };
    let from_memory = memory_file(bytes).map_err(|error| error.to_string()).and_then(|file| {
        // Through the process's number, and with a harmless tail, to make the name unique.
        let path = format!("/proc/{}/task/../fd/{}", process::id(), file.as_raw_fd());
        let path = format!("{}{path}", "/.".repeat(1 + (number % 1000) as usize));
        Ok((load(Path::new(&path))?, Some(file)))
    });
    from_memory.map_err(|_| reason)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

fn memory_file(bytes: &[u8]) -> io::Result<File> {
    // SAFETY: the name is NUL-terminated; the descriptor that comes back is nobody else's.
    let mut file = unsafe {
        let descriptor = libc::memfd_create(c"gridlet".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(descriptor)
    };
    file.write_all(bytes)?;
    Ok(file)
}

/// A program may name its globals as the C library names some of its own.
#[cfg(target_env = "gnu")]
const OWN_SYMBOLS_FIRST: c_int = libc::RTLD_DEEPBIND;
#[cfg(not(target_env = "gnu"))]
const OWN_SYMBOLS_FIRST: c_int = 0;

fn load(path: &Path) -> Result<Library, String> {
    // SAFETY: the compiler's images have no initialisers; that the bytes are such an image is the caller's
    // word, as with any program that one runs.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | OWN_SYMBOLS_FIRST) }.map_err(
        |error| {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = cause.to_string();
                source = cause.source();
            }
            text
        },
    )
}

/// The executable segments of the object that contains an address.
fn code_ranges(inside: usize) -> Vec<Range<usize>> {
    segments(inside, true)
}

/// Its other segments.
fn data_ranges(inside: usize) -> Vec<Range<usize>> {
    segments(inside, false)
}

fn segments(inside: usize, code: bool) -> Vec<Range<usize>> {
    struct Search {
        inside: usize,
        code: bool,
        found: Vec<Range<usize>>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record, and `search` is the caller's, which waits.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the record says that there are so many headers.
        let headers =
            unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let segment = |header: &libc::Elf64_Phdr| {
            let first = (info.dlpi_addr + header.p_vaddr) as usize;
            first..first + header.p_memsz as usize
        };
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        if !loaded().any(|header| segment(header).contains(&search.inside)) {
            return 0;
        }
        search.found = loaded()
            .filter(|header| (header.p_flags & libc::PF_X != 0) == search.code)
            .map(segment)
            .collect();
        1
    }
    let mut search = Search { inside, code, found: Vec::new() };
    // SAFETY: `visit` keeps the contract of the call; `search` outlives it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}
