//! The driver as a layout oracle: `cuFuncGetParamInfo`, which reads the parameters of a loaded kernel.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use anyhow::{Context as _, anyhow, bail, ensure};
use gridlet::arch::CudaArch;
use gridlet::layout::{Layouts, ParamLayout};
use libloading::Library;

type Status = c_int;
/// `CUcontext`, `CUmodule` or `CUfunction`.
type Handle = *mut c_void;

/// `CUDA_ERROR_INVALID_VALUE`, which the driver returns past the last parameter.
const INVALID_VALUE: Status = 1;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];

/// The driver's functions that the oracle calls (CUDA Driver API: Initialization, Device, Primary Context, Context, Module,
/// Execution Control).
struct Calls {
    set_current: unsafe extern "C" fn(Handle) -> Status,
    load: unsafe extern "C" fn(*mut Handle, *const c_void) -> Status,
    unload: unsafe extern "C" fn(Handle) -> Status,
    function: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> Status,
    parameter: unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> Status,
}

/// The first GPU, ready to load modules from any thread.
pub struct Driver {
    calls: Calls,
    context: Handle,
    arch: CudaArch,
    /// Keeps the functions loaded.
    _library: Library,
}

// SAFETY: the driver's functions may be called from any thread, and a context may be current in several.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

fn succeed(call: &str, status: Status) -> anyhow::Result<()> {
    ensure!(status == 0, "{call} failed with CUDA error {status}");
    Ok(())
}

/// Looks a function up.
///
/// # Safety
/// `F` must be its type.
unsafe fn find<F: Copy>(library: &Library, name: &str) -> anyhow::Result<F> {
    // SAFETY: the caller guarantees the type.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    Ok(*found.with_context(|| format!("the driver lacks {name}"))?)
}

impl Driver {
    /// Opens the first GPU.
    ///
    /// # Errors
    /// Without a driver, without a GPU, or with a driver older than CUDA 12.4, which lacks `cuFuncGetParamInfo`.
    pub fn open() -> anyhow::Result<Driver> {
        // SAFETY: loading runs the initialisers of NVIDIA's library, which have no preconditions.
        let library = unsafe { Library::new("libcuda.so.1") }.context("no driver")?;
        // SAFETY: the types are those of the functions in cuda.h; `_v2` and so on are the names that it defines them to.
        unsafe {
            let init: unsafe extern "C" fn(c_uint) -> Status = find(&library, "cuInit")?;
            let get: unsafe extern "C" fn(*mut c_int, c_int) -> Status =
                find(&library, "cuDeviceGet")?;
            let attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status =
                find(&library, "cuDeviceGetAttribute")?;
            let retain: unsafe extern "C" fn(*mut Handle, c_int) -> Status =
                find(&library, "cuDevicePrimaryCtxRetain")?;
            let calls = Calls {
                set_current: find(&library, "cuCtxSetCurrent")?,
                load: find(&library, "cuModuleLoadData")?,
                unload: find(&library, "cuModuleUnload")?,
                function: find(&library, "cuModuleGetFunction")?,
                parameter: find(&library, "cuFuncGetParamInfo")?,
            };
            succeed("cuInit", init(0))?;
            let mut device = 0;
            succeed("cuDeviceGet", get(&mut device, 0))?;
            let mut capability = [0; 2];
            for (value, number) in capability.iter_mut().zip(CAPABILITY) {
                succeed("cuDeviceGetAttribute", attribute(value, number, device))?;
            }
            let [major, minor] = capability.map(|part| part.max(0).unsigned_abs());
            let arch = CudaArch::for_device(major, minor).ok_or_else(|| {
                anyhow!("Gridlet does not know compute capability {major}.{minor}")
            })?;
            let mut context = ptr::null_mut();
            succeed("cuDevicePrimaryCtxRetain", retain(&mut context, device))?;
            Ok(Driver { calls, context, arch, _library: library })
        }
    }

    /// The architecture of the GPU.
    pub fn arch(&self) -> CudaArch {
        self.arch
    }

    /// By kernel, offset and size of each parameter of a cubin or of PTX, which the driver then compiles.
    ///
    /// # Errors
    /// If the driver refuses the image or lacks a kernel.
    pub fn parameters(
        &self,
        image: &[u8],
        kernels: &[ParamLayout],
    ) -> anyhow::Result<Vec<Vec<(usize, usize)>>> {
        // PTX ends in a NUL byte.
        let image = [image, &[0]].concat();
        let mut module = ptr::null_mut();
        // SAFETY: the context is live, the image is a cubin or text that ends in a NUL, and the pointer is to a live pointer.
        unsafe {
            succeed("cuCtxSetCurrent", (self.calls.set_current)(self.context))?;
            succeed("cuModuleLoadData", (self.calls.load)(&mut module, image.as_ptr().cast()))?;
        }
        let all = kernels.iter().map(|layout| self.of_kernel(module, &layout.kernel));
        let all = all.collect();
        // SAFETY: the module is live, and none of its kernels runs.
        succeed("cuModuleUnload", unsafe { (self.calls.unload)(module) })?;
        all
    }

    fn of_kernel(&self, module: Handle, name: &str) -> anyhow::Result<Vec<(usize, usize)>> {
        let (name, mut function) = (CString::new(name)?, ptr::null_mut());
        // SAFETY: the module is live, the name ends in a NUL, and the pointer is to a live pointer.
        let status = unsafe { (self.calls.function)(&mut function, module, name.as_ptr()) };
        succeed("cuModuleGetFunction", status)?;
        let mut all = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is live, and the pointers are to live integers.
            match unsafe { (self.calls.parameter)(function, all.len(), &mut offset, &mut size) } {
                0 => all.push((offset, size)),
                INVALID_VALUE => return Ok(all),
                status => bail!("cuFuncGetParamInfo failed with CUDA error {status}"),
            }
        }
    }
}

/// The first difference between what the driver says and the layouts.
pub fn difference(driver: &[Vec<(usize, usize)>], layouts: &Layouts) -> Option<String> {
    if driver.len() != layouts.kernels.len() {
        return Some(format!("{} kernels, not {}", driver.len(), layouts.kernels.len()));
    }
    driver.iter().zip(&layouts.kernels).find_map(|(found, layout)| {
        let slots = layout.slots.iter().map(|slot| (slot.offset as usize, slot.size as usize));
        let wanted: Vec<_> = slots.collect();
        (*found != wanted).then(|| {
            let name = &layout.kernel;
            format!("kernel `{name}`: offsets and sizes {found:?} in the driver, {wanted:?} in the layout")
        })
    })
}
