//! Resident launches on GPUs: the entry kernel of a program, and the launch memory of streams.
//!
//! [`gridlet_artifact::resident`] defines the interface. Work in a stream is ordered, so one launch memory per stream is
//! enough: the kernel leaves it ready for the next launch.

use std::mem::{self, MaybeUninit};
use std::slice;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use gridlet_artifact::resident::{Layout, PARAMETERS_OFFSET, RootGrid, Shape, TooSmall};
use gridlet_artifact::{KernelLimits, LaunchConfig, manifest};
use gridlet_cpu::sync::lock;

use super::device::DeviceInner;
use super::program::{Kernel, Loaded};
use super::stream::StreamInner;
use crate::arguments::STACK_PARAMETER_BYTES;
use crate::backend::{Entered, Transfer};
use crate::error::{Error, Result};

/// The most shapes whose occupancy a program remembers.
const MAX_SHAPES: usize = 64;

/// Room on the stack for the parameters of most programs' entries.
const ROOM: usize = PARAMETERS_OFFSET + STACK_PARAMETER_BYTES;

/// The entry of a program's resident launches, loaded on its device.
#[derive(Debug)]
pub(crate) struct ResidentEntry {
    pub(super) loaded: Loaded,
    /// Its limits, without a kernel's launch bounds.
    pub(super) limits: KernelLimits,
    entry: manifest::Resident,
    symbol: Arc<str>,
    /// How many blocks of each shape an SM runs at a time, for the shapes used last.
    occupancy: Mutex<Vec<(Shape, u32)>>,
}

/// The part of a block's shared memory that the `shared` variables of a kernel need in the resident kernel, in bytes. Dynamic
/// memory begins at a multiple of 16.
fn shared_bytes(kernel: &manifest::Kernel) -> u32 {
    let of_kernel = || u32::try_from(kernel.static_shared_bytes).unwrap_or(u32::MAX);
    let bytes = kernel.resident_shared_bytes.unwrap_or_else(of_kernel);
    bytes.checked_next_multiple_of(16).unwrap_or(bytes)
}

impl ResidentEntry {
    pub(super) fn new(
        loaded: Loaded,
        limits: KernelLimits,
        entry: &manifest::Resident,
    ) -> ResidentEntry {
        ResidentEntry {
            loaded,
            limits,
            symbol: entry.symbol.as_str().into(),
            entry: entry.clone(),
            occupancy: Mutex::new(Vec::new()),
        }
    }

    /// The limits on the launches of a kernel from the host. A block of the entry has the shared memory of a block of the
    /// kernel, in units of 16 bytes, besides its own.
    pub(super) fn limits_of(&self, kernel: &manifest::Kernel) -> KernelLimits {
        let own = self.limits.static_shared_bytes.next_multiple_of(16);
        KernelLimits {
            launch_bounds: kernel.max_threads_per_block,
            static_shared_bytes: own.saturating_add(shared_bytes(kernel)),
            ..self.limits
        }
    }

    /// The shape of the entry's blocks for a launch of the kernel, after [`Kernel::check`].
    pub(super) fn shape(&self, kernel: &manifest::Kernel, config: &LaunchConfig) -> Shape {
        let threads = u32::try_from(config.block.count()).unwrap_or(u32::MAX);
        let bytes = shared_bytes(kernel).saturating_add(config.shared_bytes);
        Shape::new(&self.entry, threads, bytes)
    }

    /// The number of blocks that fill `sms` SMs. Checks each shape, and asks the driver about it, once.
    fn workers(
        &self,
        shape: Shape,
        sms: u32,
        kernel: &Kernel,
        _entered: &Entered<'_>,
    ) -> Result<u32> {
        let mut known = lock(&self.occupancy);
        let found = known.iter().find(|(other, _)| *other == shape);
        let per_sm = match found {
            Some((_, per_sm)) => *per_sm,
            None => {
                let device = &kernel.program.device;
                // The root grid's blocks fit, but the children may need more than this device has.
                LaunchConfig::new(1, shape.threads())
                    .with_shared(shape.shared_bytes)
                    .check(&device.info.limits, &self.limits)
                    .map_err(|problem| kernel.refuse(problem))?;
                self.loaded.allow_shared(device, shape.shared_bytes)?;
                let entry = self.loaded.handle.cuda("resident launches")?;
                let per_sm = entry.active_blocks(shape.threads(), shape.shared_bytes)?;
                if known.len() >= MAX_SHAPES {
                    known.remove(0);
                }
                known.push((shape, per_sm));
                per_sm
            }
        };
        Ok(sms.saturating_mul(per_sm).max(1))
    }

    /// What a launch with this layout leaves in launch memory.
    fn state(&self, layout: Layout) -> State {
        State { symbol: Arc::clone(&self.symbol), layout }
    }
}

/// A launch of a kernel through its program's entry.
pub(super) struct ResidentLaunch<'a> {
    entry: &'a ResidentEntry,
    shape: Shape,
    layout: Layout,
    place: Place<'a>,
}

/// The launch memory of one launch.
enum Place<'a> {
    /// The stream's. Locked until the launch is made: another thread's launch in the stream may need another layout.
    Stream(MutexGuard<'a, StreamMemory>),
    /// The address of memory of a graph that the launch is captured into.
    Graph(u64),
}

impl<'a> ResidentLaunch<'a> {
    /// Plans the launch in a stream of `sms` SMs, and allocates the stream's launch memory if necessary. `None` for a
    /// kernel that has an entry of its own.
    pub(super) fn plan(
        stream: &'a StreamInner,
        sms: u32,
        kernel: &'a Kernel,
        config: &LaunchConfig,
        entered: &Entered<'_>,
    ) -> Result<Option<ResidentLaunch<'a>>> {
        let Some(entry) = kernel.entry.resident.as_deref() else { return Ok(None) };
        let device = &stream.device;
        let shape = entry.shape(kernel.manifest(), config);
        let workers = entry.workers(shape, sms, kernel, entered)?;
        let bytes = device.launch_memory.load(Ordering::Acquire);
        let layout = Layout::new(entry.entry.record_bytes, workers, bytes).map_err(
            |TooSmall { needed }| Error::LaunchMemory {
                kernel: kernel.name().into(),
                bytes,
                workers,
                needed,
            },
        )?;
        // Only other code captures streams. Asking the driver takes time, so streams that it cannot know are not asked.
        let capture = match stream.sharing.is_known() {
            true => stream.handle.capture(entered)?,
            false => None,
        };
        let place = match capture {
            Some(capture) => {
                let of =
                    Captured { capture, stream: stream.number, bytes, state: entry.state(layout) };
                Place::Graph(kernel.program.graph_memory.address(of, device)?)
            }
            None => {
                let mut memory = lock(&stream.launch_memory);
                memory.resize(bytes, stream)?;
                Place::Stream(memory)
            }
        };
        Ok(Some(ResidentLaunch { entry, shape, layout, place }))
    }

    /// Launches.
    ///
    /// # Safety
    /// `parameters` must be those that the manifest declares for the kernel, and the stream's context must be entered.
    pub(super) unsafe fn launch(
        mut self,
        stream: &StreamInner,
        kernel: &Kernel,
        config: &LaunchConfig,
        parameters: &[u8],
        entered: &Entered<'_>,
    ) -> Result<()> {
        let address = match &mut self.place {
            Place::Stream(memory) => {
                memory.prepare(self.entry.state(self.layout), stream, entered)?
            }
            Place::Graph(address) => *address,
        };
        let root = RootGrid {
            kernel: u32::try_from(kernel.entry.index).unwrap_or(u32::MAX),
            grid: config.grid,
            block: config.block,
            shared_bytes: config.shared_bytes,
        };
        let bytes = PARAMETERS_OFFSET + 8 * self.entry.entry.parameter_words as usize;
        let mut room = MaybeUninit::<[u8; ROOM]>::uninit();
        let mut heap;
        let block = if bytes <= ROOM {
            let first = room.as_mut_ptr().cast::<u8>();
            // SAFETY: the room has that many bytes, and they are written before the slice is made.
            unsafe {
                first.write_bytes(0, bytes);
                slice::from_raw_parts_mut(first, bytes)
            }
        } else {
            heap = vec![0; bytes];
            &mut heap[..]
        };
        block[..8].copy_from_slice(&address.to_le_bytes());
        let words = root.words(self.shape, &self.layout);
        for (to, word) in block[8..PARAMETERS_OFFSET].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        // The artifact was checked: no kernel has more parameters than the entry has room for.
        block[PARAMETERS_OFFSET..][..parameters.len()].copy_from_slice(parameters);
        let mut launched = LaunchConfig::new(self.layout.workers, self.shape.threads())
            .with_shared(self.shape.shared_bytes);
        launched.priority = config.priority;
        // SAFETY: kernel and stream are live and on one device; the parameters are the entry's, whose types
        // `Program::kernel` compared with the image, and the caller guarantees the root grid's.
        unsafe { stream.handle.launch(&self.entry.loaded.handle, &launched, block, entered) }
    }
}

/// The launch memory of a stream.
#[derive(Debug, Default)]
pub(crate) struct StreamMemory {
    current: LaunchMemory,
    /// Memory of another size that earlier launches may still use.
    replaced: Vec<LaunchMemory>,
}

impl StreamMemory {
    /// Allocates memory of this size, unless the stream has it.
    fn resize(&mut self, bytes: u64, stream: &StreamInner) -> Result<()> {
        if self.current.bytes == bytes {
            return Ok(());
        }
        let device = &*stream.device;
        // The primary context, in which memory outlives the stream's green context.
        let entered = device.enter()?;
        self.replaced.push(mem::take(&mut self.current));
        // No other thread's launch in the stream is under way either: it would hold the lock or be counted.
        if !stream.work.is_busy() {
            device.free_launch_memory(mem::take(&mut self.replaced), &entered);
        }
        self.current = device.new_launch_memory(bytes, &entered)?;
        Ok(())
    }

    /// The address of the memory, cleared if the next launch needs that.
    fn prepare(&mut self, next: State, stream: &StreamInner, entered: &Entered<'_>) -> Result<u64> {
        let memory = &mut self.current;
        if memory.state.as_ref() != Some(&next) {
            memory.state = None;
            // SAFETY: the memory has that many bytes; earlier launches in the stream have ended when it is cleared.
            unsafe { stream.handle.clear(memory.address, memory.bytes, entered) }?;
            memory.state = Some(next);
        }
        Ok(memory.address)
    }

    /// All memory of a stream that has ended.
    pub(super) fn into_all(self) -> Vec<LaunchMemory> {
        self.replaced.into_iter().chain([self.current]).collect()
    }
}

/// Device memory for the grids of one root launch at a time.
#[derive(Debug, Default)]
pub(crate) struct LaunchMemory {
    address: u64,
    /// 0 for no memory.
    bytes: u64,
    /// What the last launch left; `None` before the first.
    state: Option<State>,
}

/// Launches with equal states leave launch memory ready for each other.
#[derive(Debug, PartialEq)]
struct State {
    /// Entries of different symbols may have different schedulers.
    symbol: Arc<str>,
    layout: Layout,
}

/// The launch memory of graphs, which other code captures and runs again and again: kept as long as the program, because
/// nobody says when a graph is gone.
#[derive(Debug, Default)]
pub(super) struct GraphMemory(Mutex<Vec<(Captured, LaunchMemory)>>);

/// Launches that share launch memory in a graph: launches of one stream, and so in order, that leave it ready for each
/// other.
#[derive(Debug, PartialEq)]
struct Captured {
    capture: u64,
    stream: u64,
    bytes: u64,
    state: State,
}

impl GraphMemory {
    /// The address of zeroed memory, allocated at the first such launch.
    fn address(&self, of: Captured, device: &Arc<DeviceInner>) -> Result<u64> {
        let mut all = lock(&self.0);
        if let Some((_, memory)) = all.iter().find(|(other, _)| *other == of) {
            return Ok(memory.address);
        }
        let bytes = of.bytes;
        let entered = &device.enter()?;
        let address = device.handle.outside_capture(entered, || {
            let address = device.handle.allocate(bytes, entered)?;
            let whole = usize::try_from(bytes).unwrap_or(usize::MAX);
            let clear = Transfer::Fill { to: address, value: 0, bytes: whole };
            // SAFETY: the memory has that many bytes.
            let cleared = unsafe { device.transfer_now("clearing launch memory", clear, entered) };
            if cleared.is_err() && !device.has_timed_out() {
                // SAFETY: it was just allocated.
                unsafe { device.handle.free(address, entered) };
            }
            cleared.map(|()| address)
        })?;
        all.push((of, LaunchMemory { address, bytes, state: None }));
        Ok(address)
    }

    /// Frees all of it.
    ///
    /// # Safety
    /// No graph with launches of the program may run again.
    pub(super) unsafe fn free(&self, device: &DeviceInner, entered: &Entered<'_>) {
        for (_, memory) in lock(&self.0).drain(..) {
            // SAFETY: passed on to the caller.
            unsafe { device.handle.free(memory.address, entered) };
        }
    }
}

impl DeviceInner {
    /// Takes launch memory that an ended stream left, or allocates some.
    fn new_launch_memory(&self, bytes: u64, entered: &Entered<'_>) -> Result<LaunchMemory> {
        let mut spare = lock(&self.spare_launch_memory);
        if let Some(at) = spare.iter().position(|memory| memory.bytes == bytes) {
            return Ok(spare.swap_remove(at));
        }
        drop(spare);
        let address = self.handle.allocate(bytes, entered)?;
        Ok(LaunchMemory { address, bytes, state: None })
    }

    /// Frees launch memory that no launch uses any more. Freeing may wait for the whole device, so while other streams
    /// have work the memory is kept for the next stream; the last stream to end frees all of it.
    pub(super) fn free_launch_memory(&self, unused: Vec<LaunchMemory>, entered: &Entered<'_>) {
        let mut spare = lock(&self.spare_launch_memory);
        spare.extend(unused.into_iter().filter(|memory| memory.bytes > 0));
        if !self.is_busy() {
            for memory in spare.drain(..) {
                // SAFETY: it came from `allocate`, and nothing uses it.
                unsafe { self.handle.free(memory.address, entered) };
            }
        }
    }
}
