//! Programs: artifacts loaded on a device, and their kernels.

mod notice;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use gridlet_artifact::manifest::{self, LINKED_SOURCE, LostLaunchRecord};
use gridlet_artifact::{Artifact, ArtifactError, ArtifactProblem, KernelLimits};
use gridlet_cpu::sync::lock;

use super::device::{Device, DeviceInner};
use super::resident::{GraphMemory, ResidentEntry};
use crate::backend::{DeviceHandle, Entered, ImageHandle, KernelHandle, PartitionHandle, Transfer};
use crate::error::{Error, LostLaunches, Result, cuda_error_name};
use crate::observe;
use crate::occupancy::Carveout;
use crate::statistics::Statistics;
use crate::strategy;
use notice::Notice;

/// The size of a [`LostLaunchRecord`] in bytes.
const RECORD_BYTES: usize = size_of::<LostLaunchRecord>();

/// An artifact loaded on a device; serves the device and all of its green contexts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) inner: Arc<ProgramInner>,
}

impl Program {
    /// Loads a `.gridlet` bundle, or the files that a manifest (a file that ends in `.json`) lists, on the device.
    /// Images for other devices are not read, and for the device's own image only the CRC-32 is compared;
    /// [`Artifact::open`] checks every image's SHA-256.
    ///
    /// # Errors
    /// The errors of [`Artifact::open`] and [`Program::load`].
    pub fn open(device: &Device, path: impl AsRef<Path>) -> Result<Program> {
        Program::load(device, &Artifact::open_for(device.info().image_target(), path)?)
    }

    /// Loads a bundle from memory, as [`Program::open`] does from a file.
    ///
    /// # Errors
    /// The errors of [`Artifact::from_bytes`] and [`Program::load`].
    pub fn from_bundle(device: &Device, bundle: &[u8]) -> Result<Program> {
        Program::load(device, &Artifact::from_bytes_for(device.info().image_target(), bundle)?)
    }

    /// Loads a bundle that lives as long as the process, such as one embedded in the program (`include_bytes!`):
    /// like [`Program::from_bundle`], but without copying the image.
    ///
    /// # Errors
    /// The errors of [`Program::from_bundle`].
    pub fn from_static_bundle(device: &Device, bundle: &'static [u8]) -> Result<Program> {
        Program::load(device, &Artifact::from_static_for(device.info().image_target(), bundle)?)
    }

    /// Loads the artifact's image for the device.
    ///
    /// # Errors
    /// [`Error::NoImage`]; [`Error::Cuda`] with the driver's log if it refuses the image; [`Error::Unusable`].
    pub fn load(device: &Device, artifact: &Artifact) -> Result<Program> {
        let device = Arc::clone(&device.inner);
        let entered = device.enter()?;
        let _span = observe::loading(&artifact.manifest().program);
        let image = device.handle.load(artifact, &device.info, &entered)?;
        let record_symbol = match &artifact.manifest().device_runtime {
            Some(runtime) => Some(c_string(artifact, &runtime.lost_launch_record)?)
                .filter(|symbol| image.may_lose_launches(symbol)),
            None => None,
        };
        let notice = match &record_symbol {
            Some(_) => Notice::of(artifact, &device, &entered)?,
            None => None,
        };
        let inner = Arc::new(ProgramInner {
            image,
            artifact: artifact.clone(),
            device: Arc::clone(&device),
            record_symbol,
            notice,
            records: Mutex::new(Vec::new()),
            ran: AtomicBool::new(false),
            last_context: AtomicUsize::new(0),
            contexts: Mutex::new(Vec::new()),
            entries: Mutex::new(BTreeMap::new()),
            resident: OnceLock::new(),
            graph_memory: GraphMemory::default(),
        });
        drop(entered);
        device.add_program(&inner);
        Ok(Program { inner })
    }

    /// The artifact that the program was loaded from; after [`Program::open`] and [`Program::from_bundle`], with
    /// the device's image only.
    pub fn artifact(&self) -> &Artifact {
        &self.inner.artifact
    }

    /// Its device.
    pub fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.inner.device) }
    }

    /// Looks up a kernel by name. The first look-up compares the manifest's parameters with the driver's. The
    /// driver may defer loading an image until its first kernel is requested.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], [`Error::ParameterMismatch`]; [`Error::Cuda`] with the driver's log if it
    /// refuses the kernel; [`Error::Artifact`] if the image lacks the lost-launch record that the manifest names;
    /// [`Error::Unusable`].
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let program = &self.inner;
        let manifest =
            program.artifact.kernel(name).ok_or_else(|| unknown_kernel(&program.artifact, name))?;
        let mut entries = lock(&program.entries);
        let entry = match entries.get(name) {
            Some(entry) => Arc::clone(entry),
            None => {
                let entry = Arc::new(program.enter(manifest)?);
                entries.insert(name.into(), Arc::clone(&entry));
                entry
            }
        };
        Ok(Kernel { program: Arc::clone(program), entry })
    }

    /// Successful device-side launches since the program was loaded; `None` if it was not built to count them. A
    /// running kernel may add to the count: wait for the program's streams first.
    ///
    /// # Errors
    /// [`Error::Artifact`] if the image lacks the counter that the manifest names; [`Error::Cuda`],
    /// [`Error::Unusable`].
    pub fn launches_made(&self) -> Result<Option<u64>> {
        let program = &self.inner;
        let runtime = program.artifact.manifest().device_runtime.as_ref();
        let Some(symbol) = runtime.and_then(|runtime| runtime.launches_made.as_deref()) else {
            return Ok(None);
        };
        let mut word = [0u8; 8];
        program.read(symbol, "a copy of the launch counter", &mut word)?;
        Ok(Some(u64::from_le_bytes(word)))
    }

    /// Statistics that the kernels recorded since the program was loaded; `None` if it was not built to record
    /// them. A running kernel may add to them: wait for the program's streams first.
    ///
    /// # Errors
    /// [`Error::Artifact`] if the image lacks a variable that the manifest names; [`Error::Cuda`],
    /// [`Error::Unusable`].
    pub fn statistics(&self) -> Result<Option<Statistics>> {
        let program = &self.inner;
        let Some(noted) = &program.artifact.manifest().statistics else { return Ok(None) };
        let mut bytes = vec![0; noted.bytes()];
        program.read(&noted.symbol, "a copy of the statistics", &mut bytes)?;
        let made = self.launches_made()?.unwrap_or_default();
        Ok(Some(Statistics::decode(made, &bytes, noted.sms)))
    }
}

/// A kernel of a program. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) program: Arc<ProgramInner>,
    pub(crate) entry: Arc<Entry>,
}

impl Kernel {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.manifest().name
    }

    /// The kernel's entry in the manifest.
    pub fn manifest(&self) -> &manifest::Kernel {
        &self.program.artifact.manifest().kernels[self.entry.index]
    }

    /// The limits on the kernel's launches on its device. The static shared memory of a kernel that is launched through
    /// its program's resident entry includes the entry's.
    pub fn limits(&self) -> &KernelLimits {
        &self.entry.limits
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).field("limits", self.limits()).finish()
    }
}

/// A kernel loaded on its device.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Index into the manifest's kernels.
    pub(super) index: usize,
    /// The kernel's name, shared so that streams can store it without copying.
    pub(crate) name: Arc<str>,
    own: Loaded,
    /// The entry that runs the kernel in place of its own; `None` on the CPU device and for a kernel that neither launches
    /// nor is launched.
    pub(super) resident: Option<Arc<ResidentEntry>>,
    pub(crate) limits: KernelLimits,
    /// Whether the kernel may use clusters larger than the portable size.
    pub(crate) non_portable: AtomicBool,
}

impl Entry {
    /// The entry point that launches use.
    pub(super) fn loaded(&self) -> &Loaded {
        self.resident.as_ref().map_or(&self.own, |resident| &resident.loaded)
    }

    /// The handle that launches use.
    pub(crate) fn handle(&self) -> &KernelHandle {
        &self.loaded().handle
    }
}

/// An entry point loaded on its device.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) handle: KernelHandle,
    static_shared_bytes: u32,
    /// The dynamic shared bytes that it has opted in to; 0 before.
    shared_allowed: AtomicU32,
}

impl Loaded {
    fn new(handle: KernelHandle, limits: &KernelLimits) -> Loaded {
        let static_shared_bytes = limits.static_shared_bytes;
        Loaded { handle, static_shared_bytes, shared_allowed: AtomicU32::new(0) }
    }

    /// Allows this many bytes of dynamic shared memory: above 48 KiB in total, a kernel must opt in (CUDA C++ Programming
    /// Guide, Shared Memory, compute capability 7.x and later; `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`).
    pub(super) fn allow_shared(&self, device: &DeviceInner, bytes: u32) -> Result<()> {
        let total = u64::from(bytes) + u64::from(self.static_shared_bytes);
        if total <= u64::from(device.info.limits.shared_bytes_per_block)
            || bytes <= self.shared_allowed.load(Ordering::Acquire)
        {
            return Ok(());
        }
        self.handle.allow_shared(&device.handle, bytes)?;
        self.shared_allowed.fetch_max(bytes, Ordering::AcqRel);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct ProgramInner {
    pub(crate) image: ImageHandle,
    pub(crate) artifact: Artifact,
    pub(crate) device: Arc<DeviceInner>,
    record_symbol: Option<CString>,
    /// Whether the record needs to be read; without it, after every wait.
    notice: Option<Notice>,
    /// The lost-launch record, once for each copy that the contexts have.
    records: Mutex<Vec<Record>>,
    /// The green contexts whose copy of the record is in `records`, as the driver's handles; `last_context` is the
    /// one used last, so that most launches need no look-up.
    contexts: Mutex<Vec<usize>>,
    last_context: AtomicUsize,
    /// Whether a kernel was launched since the records were last read on an idle device.
    ran: AtomicBool,
    /// Kernels already looked up, by name.
    entries: Mutex<BTreeMap<String, Arc<Entry>>>,
    /// The entry of resident launches, once a kernel that needs it was looked up.
    resident: OnceLock<Arc<ResidentEntry>>,
    pub(super) graph_memory: GraphMemory,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    address: u64,
    /// The part of the count that was already reported.
    reported: u32,
}

impl ProgramInner {
    fn enter(&self, kernel: &manifest::Kernel) -> Result<Entry> {
        let entered = self.device.enter()?;
        let symbol = kernel.symbol.as_ref().unwrap_or(&kernel.name);
        let symbol = c_string(&self.artifact, symbol)?;
        let kernels = &self.artifact.manifest().kernels;
        let index = kernels.iter().position(|other| other.name == kernel.name).unwrap_or_default();
        if lock(&self.records).is_empty() {
            self.find_record(&entered)?;
        }
        let (handle, limits) = self.image.kernel(&self.device.handle, kernel, &symbol, &entered)?;
        let carveout = strategy::carveout(self.artifact.manifest(), kernel);
        if let (KernelHandle::Cuda(kernel), DeviceHandle::Cuda(device)) =
            (&handle, &self.device.handle)
            && carveout != Carveout::Default
        {
            kernel.set_carveout(device, carveout)?;
        }
        let own = Loaded::new(handle, &limits);
        let resident = self.resident(kernel, &entered)?;
        Ok(Entry {
            index,
            name: kernel.name.as_str().into(),
            own,
            limits: resident.as_ref().map_or(limits, |resident| resident.limits_of(kernel)),
            resident,
            non_portable: AtomicBool::new(false),
        })
    }

    /// The entry that runs the kernel in place of its own, if any.
    fn resident(
        &self,
        kernel: &manifest::Kernel,
        entered: &Entered<'_>,
    ) -> Result<Option<Arc<ResidentEntry>>> {
        let described = self.artifact.manifest().resident.as_ref();
        let Some(described) = described.filter(|_| kernel.resident && !self.device.handle.is_cpu())
        else {
            return Ok(None);
        };
        if let Some(entry) = self.resident.get() {
            return Ok(Some(Arc::clone(entry)));
        }
        let symbol = c_string(&self.artifact, &described.symbol)?;
        let (handle, limits) =
            self.image.resident(&self.device.handle, described, &symbol, entered)?;
        let entry = ResidentEntry::new(Loaded::new(handle, &limits), limits, described);
        Ok(Some(Arc::clone(self.resident.get_or_init(|| Arc::new(entry)))))
    }

    /// Copies a variable of the image to the host; its size must be `to.len()`. `copying` describes the copy, as
    /// in "a copy of the launch counter".
    fn read(&self, symbol: &str, copying: &'static str, to: &mut [u8]) -> Result<()> {
        let what = copying.trim_start_matches("a copy of ");
        let symbol = c_string(&self.artifact, symbol)?;
        let entered = self.device.enter()?;
        let (address, bytes) = self.image.global(&symbol, what, &entered)?;
        if let Some(bytes) = bytes.filter(|bytes| *bytes != to.len() as u64) {
            let problem = format!("{what} has {bytes} bytes, not {}", to.len());
            return Err(foreign(&self.artifact, problem));
        }
        let copy = Transfer::ToHost { from: address, to: to.as_mut_ptr(), bytes: to.len() };
        // SAFETY: the variable and the slice both have that many bytes.
        unsafe { self.device.transfer_now(copying, copy, &entered) }
    }

    /// Finds the lost-launch record in the entered context. Every context of a device is expected to have the same
    /// record, but the driver's reference does not guarantee it for green contexts.
    pub(crate) fn find_record(&self, entered: &Entered<'_>) -> Result<()> {
        let Some(symbol) = &self.record_symbol else { return Ok(()) };
        let (address, bytes) = self.image.global(symbol, "the lost-launch record", entered)?;
        if let Some(bytes) = bytes.filter(|bytes| *bytes != RECORD_BYTES as u64) {
            return Err(foreign(
                &self.artifact,
                format!("the lost-launch record has {bytes} bytes, not {RECORD_BYTES}"),
            ));
        }
        let mut records = lock(&self.records);
        if !records.iter().any(|record| record.address == address) {
            if let Some(notice) = &self.notice {
                notice.connect(&self.artifact, &self.image, &self.device, entered)?;
            }
            records.push(Record { address, reported: 0 });
        }
        Ok(())
    }

    /// Same as [`ProgramInner::find_record`], once for each green context: the driver's look-up takes longer than
    /// a launch. While the device is open, no two green contexts have the same handle, because dropped ones are
    /// kept for reuse.
    pub(crate) fn find_record_in(
        &self,
        green: &PartitionHandle,
        entered: &Entered<'_>,
    ) -> Result<()> {
        let (Some(_), Some(context)) = (&self.record_symbol, green.raw_context()) else {
            return Ok(());
        };
        let context = context.addr();
        if self.last_context.load(Ordering::Acquire) == context {
            return Ok(());
        }
        let mut contexts = lock(&self.contexts);
        if !contexts.contains(&context) {
            self.find_record(entered)?;
            contexts.push(context);
        }
        self.last_context.store(context, Ordering::Release);
        Ok(())
    }

    pub(crate) fn note_launch(&self) {
        self.ran.store(true, Ordering::Release);
    }

    /// Reads the records and returns an error for new losses. On an idle device, records with losses are cleared;
    /// otherwise they may still grow, so the count already reported is stored instead.
    pub(crate) fn report_lost_launches(&self, idle: bool, entered: &Entered<'_>) -> Result<()> {
        if !self.ran.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.notice.as_ref().is_none_or(|notice| notice.take(entered)) {
            let read = self.read_records(idle, entered);
            if let Some(notice) = self.notice.as_ref().filter(|_| !matches!(read, Ok(true))) {
                notice.put_back(entered);
            }
            read?;
        }
        if idle {
            self.ran.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// As [`ProgramInner::report_lost_launches`], by copying the records from the device. Returns whether all are empty now.
    fn read_records(&self, idle: bool, entered: &Entered<'_>) -> Result<bool> {
        let mut records = lock(&self.records);
        let mut all_empty = true;
        for record in records.iter_mut() {
            let mut bytes = [0u8; RECORD_BYTES];
            let address = record.address;
            let copy =
                Transfer::ToHost { from: address, to: bytes.as_mut_ptr(), bytes: RECORD_BYTES };
            // SAFETY: the record has that many bytes and lives as long as the image.
            unsafe { self.device.transfer_now("a copy of the lost-launch record", copy, entered) }?;
            let lost = decode(&bytes);
            let new = lost.count.wrapping_sub(record.reported);
            record.reported = lost.count;
            if idle && lost.count != 0 {
                let clear = Transfer::Fill { to: address, value: 0, bytes: RECORD_BYTES };
                // SAFETY: as above; no running kernel can write the record.
                unsafe {
                    self.device.transfer_now("clearing the lost-launch record", clear, entered)
                }?;
                record.reported = 0;
            } else {
                all_empty &= lost.count == 0;
            }
            if new != 0 {
                let on_cpu = self.device.handle.is_cpu();
                return Err(Box::new(lost_launches(&self.artifact, on_cpu, lost, new)).into());
            }
        }
        Ok(all_empty)
    }
}

impl Drop for ProgramInner {
    fn drop(&mut self) {
        if let Some(entered) = self.device.enter_for_drop() {
            // The last chance to report lost launches: afterwards nobody can read the records.
            observe::dropped(self.report_lost_launches(true, &entered));
            // SAFETY: kernels held `self`, and none of them runs; a graph with its kernels must not outlive it.
            unsafe {
                self.graph_memory.free(&self.device, &entered);
                self.image.unload(&entered);
                if let Some(notice) = &self.notice {
                    notice.free(&self.device, &entered);
                }
            }
        }
    }
}

/// Decodes a [`LostLaunchRecord`].
fn decode(bytes: &[u8; RECORD_BYTES]) -> LostLaunchRecord {
    let word = |index: usize| {
        let mut word = [0u8; 4];
        word.copy_from_slice(&bytes[4 * index..4 * index + 4]);
        u32::from_le_bytes(word)
    };
    LostLaunchRecord { count: word(0), error: word(1) as i32, file: word(2), line: word(3) }
}

fn lost_launches(
    artifact: &Artifact,
    on_cpu: bool,
    lost: LostLaunchRecord,
    count: u32,
) -> LostLaunches {
    let manifest = artifact.manifest();
    let file = manifest.sources.get(lost.file as usize).cloned();
    let unknown = || match lost.file & LINKED_SOURCE {
        0 => format!("source {}", lost.file),
        _ => format!("source {} of a linked object", lost.file & !LINKED_SOURCE),
    };
    LostLaunches {
        program: manifest.program.clone(),
        count,
        error: lost.error,
        name: cuda_error_name(lost.error).into(),
        file: file.unwrap_or_else(unknown),
        line: lost.line,
        full_pool: strategy::full_pool(manifest.launch_strategy, on_cpu, lost.error),
    }
}

pub(crate) fn c_string(artifact: &Artifact, symbol: &str) -> Result<CString> {
    CString::new(symbol).map_err(|_| foreign(artifact, format!("{symbol:?} is not a symbol")))
}

fn unknown_kernel(artifact: &Artifact, name: &str) -> Error {
    let known = artifact.manifest().kernels.iter().map(|kernel| kernel.name.clone()).collect();
    Error::UnknownKernel { name: name.into(), known }
}

/// The error for an image that does not match the manifest.
pub(crate) fn foreign(artifact: &Artifact, problem: String) -> Error {
    let artifact = format!("program `{}`", artifact.manifest().program);
    ArtifactError { artifact, problem: ArtifactProblem::Inconsistent(problem) }.into()
}

#[cfg(test)]
mod tests;
