//! A minimal CPU device for tests, which runs one block of an image, each of its threads on an OS
//! thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};

use gridlet::compile::{self, CpuOptions, Session};
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::abi::{
    ABI_VERSION, Callbacks, Geometry, KERNEL_COUNT_SYMBOL, KERNELS_SYMBOL, KernelDescriptor,
    Location, TABLE_SYMBOL, TRAP_EXPLICIT, VERSION_SYMBOL,
};
use libloading::{Library, Symbol};

/// The line of a position.
pub(crate) fn line(location: Location) -> u32 {
    location & 0x00ff_ffff
}

/// A launch made by a kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Launched {
    pub(crate) kernel: String,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) parameters: Vec<u8>,
    pub(crate) stream: u64,
    pub(crate) line: u32,
}

/// The calls that an image made to its host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) launches: Vec<Launched>,
    pub(crate) printed: Vec<String>,
    /// Kind and line.
    pub(crate) trap: Option<(u32, u32)>,
    /// The thread that trapped, if reported.
    pub(crate) trapped: Option<u32>,
    /// Address, bytes, kind and line.
    pub(crate) accesses: Vec<(usize, u32, u32, u32)>,
    /// Lines.
    /// Kind and line.
    pub(crate) polls: Vec<(u32, u32)>,
    pub(crate) barrier_lines: Vec<u32>,
    pub(crate) shuffles: Vec<(u32, u32, u64, u32)>,
    /// Mode, mask and value of each.
    pub(crate) combined: Vec<(u32, u32, u64)>,
}

/// A line of 128 bytes, for alignment.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Line([u8; 128]);

type Pending = (Launched, Box<[Line; 32]>);

struct Host {
    shared: Mutex<Vec<Line>>,
    barrier: Barrier,
    heard: Mutex<Heard>,
    /// Parameter buffers in use: the launch and its bytes.
    pending: Mutex<BTreeMap<usize, Pending>>,
    refuse_launches: bool,
    done: Mutex<Sender<()>>,
}

thread_local! {
    static HOST: RefCell<Option<Arc<Host>>> = const { RefCell::new(None) };
}

fn host() -> Arc<Host> {
    HOST.with(|host| host.borrow().clone().expect("a thread of a block"))
}

unsafe extern "C-unwind" fn shared_base() -> *mut u8 {
    host().shared.lock().expect("no panic").as_mut_ptr().cast()
}
unsafe extern "C-unwind" fn sync_threads(at: Location) {
    let host = host();
    host.heard.lock().expect("no panic").barrier_lines.push(line(at));
    host.barrier.wait();
}
unsafe extern "C-unwind" fn sync_warp(_mask: u32, at: Location) {
    // SAFETY: the function has no requirements.
    unsafe { sync_threads(at) }
}
unsafe extern "C-unwind" fn shuffle(
    mode: u32,
    mask: u32,
    value: u64,
    lane: u32,
    _at: Location,
) -> u64 {
    host().heard.lock().expect("no panic").shuffles.push((mode, mask, value, lane));
    value.wrapping_add(1 << 40)
}
unsafe extern "C-unwind" fn vote(mode: u32, _mask: u32, predicate: u32, _at: Location) -> u32 {
    mode * 10 + predicate
}
unsafe extern "C-unwind" fn combine(mode: u32, mask: u32, value: u64, _at: Location) -> u64 {
    host().heard.lock().expect("no panic").combined.push((mode, mask, value));
    value.wrapping_add(2)
}
unsafe extern "C-unwind" fn active_mask() -> u32 {
    0x1234
}
unsafe extern "C-unwind" fn lane_id() -> u32 {
    17
}
unsafe extern "C-unwind" fn get_parameter_buffer(
    kernel: *const KernelDescriptor,
    grid: *const [u32; 3],
    block: *const [u32; 3],
    shared: u32,
) -> *mut u8 {
    let host = host();
    if host.refuse_launches {
        return std::ptr::null_mut();
    }
    // SAFETY: the image passes one of its descriptors and two `dim3`.
    let launched = unsafe {
        Launched {
            kernel: name_of(&*kernel),
            grid: *grid,
            block: *block,
            shared,
            parameters: vec![0; (*kernel).parameter_bytes as usize],
            stream: 0,
            line: 0,
        }
    };
    let mut buffer = Box::new([Line([0; 128]); 32]);
    let address = buffer.as_mut_ptr().cast::<u8>();
    host.pending.lock().expect("no panic").insert(address as usize, (launched, buffer));
    address
}
unsafe extern "C-unwind" fn launch_device(buffer: *mut u8, stream: u64, at: Location) -> i32 {
    let host = host();
    let Some((mut launched, bytes)) =
        host.pending.lock().expect("no panic").remove(&(buffer as usize))
    else {
        return 1;
    };
    let bytes = bytes.as_flattened_bytes();
    let size = launched.parameters.len();
    launched.parameters.copy_from_slice(&bytes[..size]);
    (launched.stream, launched.line) = (stream, line(at));
    host.heard.lock().expect("no panic").launches.push(launched);
    0
}
unsafe extern "C-unwind" fn printf(
    format: *const c_char,
    arguments: *const u8,
    _at: Location,
) -> i32 {
    // SAFETY: the image passes a C string, and four bytes for a `%d`.
    let text = unsafe {
        let format = CStr::from_ptr(format).to_string_lossy().into_owned();
        match format.contains("%d") {
            true => format.replace("%d", &arguments.cast::<i32>().read().to_string()),
            false => format,
        }
    };
    host().heard.lock().expect("no panic").printed.push(text);
    1
}
unsafe extern "C-unwind" fn trap(kind: u32, at: Location, thread: u32) -> ! {
    let host = host();
    {
        let mut heard = host.heard.lock().expect("no panic");
        heard.trap = Some((kind, line(at)));
        heard.trapped = Some(thread);
    }
    host.done.lock().expect("no panic").send(()).expect("the test waits");
    loop {
        std::thread::park();
    }
}
unsafe extern "C-unwind" fn assert_fail(
    message: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
    at: Location,
    _thread: u32,
) -> ! {
    // SAFETY: the image passes C strings.
    let [message, file, function] = [message, file, function]
        .map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
    let text = format!("{file}:{line}: {function}: {message}");
    host().heard.lock().expect("no panic").printed.push(text);
    // SAFETY: the function accepts any arguments.
    unsafe { trap(TRAP_EXPLICIT, at, u32::MAX) }
}
unsafe extern "C-unwind" fn index_out_of_bounds(
    index: i64,
    count: u64,
    _kind: u32,
    array: *const c_char,
    at: Location,
) -> ! {
    // SAFETY: the image passes a C string.
    let array = unsafe { CStr::from_ptr(array) }.to_string_lossy().into_owned();
    host().heard.lock().expect("no panic").printed.push(format!("{array}[{index}] of {count}"));
    // SAFETY: the function accepts any arguments.
    unsafe { trap(TRAP_EXPLICIT, at, u32::MAX) }
}
unsafe extern "C-unwind" fn local_begins(
    _address: *const c_void,
    _bytes: u32,
    _name: *const c_char,
    _at: Location,
) {
}
unsafe extern "C-unwind" fn locals_end(_count: u32) {}

unsafe extern "C-unwind" fn returns_early() {}
unsafe extern "C-unwind" fn clock64() -> u64 {
    1 << 50
}
unsafe extern "C-unwind" fn global_timer() -> u64 {
    2 << 50
}
unsafe extern "C-unwind" fn sm_id() -> u32 {
    3
}
unsafe extern "C-unwind" fn check_access(
    address: *const c_void,
    bytes: u32,
    kind: u32,
    at: Location,
) {
    host().heard.lock().expect("no panic").accesses.push((address as usize, bytes, kind, line(at)));
}
unsafe extern "C-unwind" fn poll(kind: u32, at: Location) {
    host().heard.lock().expect("no panic").polls.push((kind, line(at)));
}
unsafe extern "C-unwind" fn stream_create(handle: *mut u64) -> i32 {
    // SAFETY: the image passes the address to write to.
    unsafe { handle.write(0x100) };
    0
}
unsafe extern "C-unwind" fn stream_destroy(handle: u64) -> i32 {
    if handle == 0x100 { 0 } else { 400 }
}
unsafe extern "C-unwind" fn memcpy_async(
    to: *mut u8,
    from: *const u8,
    bytes: u64,
    _stream: u64,
    _at: Location,
) -> i32 {
    // SAFETY: the image passes memory of that size.
    unsafe { std::ptr::copy(from, to, bytes as usize) };
    0
}
unsafe extern "C-unwind" fn memset_async(
    to: *mut u8,
    value: i32,
    bytes: u64,
    _stream: u64,
    _at: Location,
) -> i32 {
    // SAFETY: the image passes memory of that size.
    unsafe { std::ptr::write_bytes(to, value as u8, bytes as usize) };
    0
}
unsafe extern "C-unwind" fn last_error() -> i32 {
    0
}
unsafe extern "C-unwind" fn malloc(bytes: u64) -> *mut u8 {
    Box::leak(vec![0_u128; (bytes as usize).div_ceil(16)].into_boxed_slice()).as_mut_ptr().cast()
}
unsafe extern "C-unwind" fn free(_address: *mut u8, _at: Location) {}

static CALLBACKS: Callbacks = Callbacks {
    shared_base,
    sync_threads,
    sync_warp,
    shuffle,
    vote,
    active_mask,
    lane_id,
    get_parameter_buffer,
    launch_device,
    printf,
    trap,
    clock64,
    global_timer,
    sm_id,
    check_access,
    poll,
    stream_create,
    stream_destroy,
    memcpy_async,
    memset_async,
    last_error,
    malloc,
    free,
    assert_fail,
    index_out_of_bounds,
    local_begins,
    locals_end,
    returns_early,
    combine,
};

trait Bytes {
    fn as_flattened_bytes(&self) -> &[u8];
}
impl Bytes for [Line; 32] {
    fn as_flattened_bytes(&self) -> &[u8] {
        // SAFETY: a line is 128 bytes without padding.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), 32 * 128) }
    }
}

fn name_of(kernel: &KernelDescriptor) -> String {
    // SAFETY: the descriptor's name is a C string.
    unsafe { CStr::from_ptr(kernel.name) }.to_string_lossy().into_owned()
}

/// The entry to call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    /// The entry for whole blocks.
    Serial,
    /// Its variant for newer processors.
    SerialV3,
    /// The entry for one thread, called on as many OS threads as the block has threads.
    Threads,
}

/// A loaded image.
pub(crate) struct Image {
    library: Library,
    pub(crate) bytes: Vec<u8>,
    pub(crate) refuse_launches: bool,
}

impl Image {
    /// Compiles a program.
    pub(crate) fn of(source: &str, options: &CpuOptions) -> Image {
        Image::of_files(SourceMap::single("test.grid", source), options)
    }

    /// Compiles a program from loaded files.
    pub(crate) fn of_files(sources: SourceMap, options: &CpuOptions) -> Image {
        let program = compile::check(sources.clone())
            .unwrap_or_else(|error| panic!("{error}: {}", sources.files()[0].text));
        let image = Session::new().cpu_image(&program, options);
        Image::load(image.unwrap_or_else(|error| panic!("{error}")).0)
    }

    pub(crate) fn load(bytes: Vec<u8>) -> Image {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, &bytes).expect("a written file");
        // SAFETY: an image runs nothing when it is loaded.
        let library = unsafe { Library::new(file.path()) }.expect("an image that loads");
        let image = Image { library, bytes, refuse_launches: false };
        // SAFETY: `abi` defines the types of these symbols.
        unsafe {
            assert_eq!(**image.symbol::<u32>(VERSION_SYMBOL), ABI_VERSION);
            **image.symbol::<*const Callbacks>(TABLE_SYMBOL) = &CALLBACKS;
        }
        image
    }

    /// A variable of the image.
    ///
    /// # Safety
    /// It must be a `T`.
    pub(crate) unsafe fn symbol<T>(&self, name: &str) -> Symbol<'_, *mut T> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.library.get(name) }.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn kernels(&self) -> &[KernelDescriptor] {
        // SAFETY: `abi` defines the types of these symbols.
        unsafe {
            let count = **self.symbol::<u32>(KERNEL_COUNT_SYMBOL);
            let first = *self.symbol::<KernelDescriptor>(KERNELS_SYMBOL);
            std::slice::from_raw_parts(first, count as usize)
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.kernels().iter().map(name_of).collect()
    }

    pub(crate) fn kernel(&self, name: &str) -> &KernelDescriptor {
        self.kernels().iter().find(|kernel| name_of(kernel) == name).expect("a kernel")
    }

    /// Runs a grid of one block.
    pub(crate) fn run(&self, name: &str, mode: Mode, block: [u32; 3], parameters: &[u8]) -> Heard {
        self.run_block(name, mode, block, [0; 3], [1; 3], parameters)
    }

    /// Runs one block.
    pub(crate) fn run_block(
        &self,
        name: &str,
        mode: Mode,
        block: [u32; 3],
        block_idx: [u32; 3],
        grid: [u32; 3],
        parameters: &[u8],
    ) -> Heard {
        self.run_blocks(name, mode, block, (block_idx, 1), grid, parameters)
    }

    /// Runs consecutive blocks in one call; with the entry for threads, only the first.
    pub(crate) fn run_blocks(
        &self,
        name: &str,
        mode: Mode,
        block: [u32; 3],
        (block_idx, blocks): ([u32; 3], u64),
        grid: [u32; 3],
        parameters: &[u8],
    ) -> Heard {
        let kernel = self.kernel(name);
        assert_eq!(parameters.len(), kernel.parameter_bytes as usize, "{name}");
        let mut threads = Vec::new();
        for z in 0..block[2] {
            for y in 0..block[1] {
                threads.extend((0..block[0]).map(|x| [x, y, z]));
            }
        }
        let thread = kernel.thread;
        let entry = match mode {
            Mode::Threads => None,
            Mode::Serial => Some(kernel.blocks.expect("a kernel whose threads do not wait")),
            Mode::SerialV3 => Some(kernel.blocks_v3.expect("a portable image")),
        };
        if entry.is_some() {
            threads = vec![[u32::MAX; 3]];
        }
        let (done, all) = channel();
        let lines = |bytes: usize| vec![Line([0xa5; 128]); bytes.div_ceil(128).max(1)];
        let host = Arc::new(Host {
            shared: Mutex::new(lines(kernel.static_shared_bytes as usize)),
            barrier: Barrier::new(threads.len()),
            heard: Mutex::default(),
            pending: Mutex::default(),
            refuse_launches: self.refuse_launches,
            done: Mutex::new(done.clone()),
        });
        let mut dynamic = lines(4096);
        let mut buffer = lines(parameters.len());
        // SAFETY: there are at least as many bytes.
        unsafe {
            let to = buffer.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(parameters.as_ptr(), to, parameters.len());
        }
        let (dynamic, buffer) = (dynamic.as_mut_ptr() as usize, buffer.as_ptr() as usize);
        for &thread_idx in &threads {
            let (host, done) = (Arc::clone(&host), done.clone());
            std::thread::spawn(move || {
                HOST.set(Some(host));
                let mut geometry = Geometry {
                    thread_idx,
                    block_idx,
                    block_dim: block,
                    grid_dim: grid,
                    dynamic_shared: dynamic as *mut u8,
                };
                // SAFETY: the test passes the kernel's parameters.
                unsafe {
                    match entry {
                        Some(entry) => entry(&mut geometry, buffer as *const u8, blocks),
                        None => thread(&geometry, buffer as *const u8),
                    }
                }
                done.send(()).expect("the test waits");
            });
        }
        for _ in &threads {
            all.recv_timeout(std::time::Duration::from_secs(60)).expect("threads that end");
            if host.heard.lock().expect("no panic").trap.is_some() {
                break;
            }
        }
        host.heard.lock().expect("no panic").clone()
    }
}

/// Packs parameters, each aligned to its size.
#[derive(Default)]
pub(crate) struct Parameters(pub(crate) Vec<u8>);

impl Parameters {
    pub(crate) fn with<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.0.resize(self.0.len().next_multiple_of(N), 0);
        self.0.extend(bytes);
        self
    }

    pub(crate) fn pointer<T>(self, to: &mut [T]) -> Self {
        self.with((to.as_mut_ptr() as u64).to_le_bytes())
    }
}
