//! The driver layer: one function returning a `Result` for each CUDA driver call that this crate uses.
//!
//! There are three layers: `sys` is cudarc's bindings, this module turns return codes into results, and the
//! crate's public types are the safe layer on top. Nothing else in the crate uses `sys`.
//!
//! If cudarc 0.19 loads the library, it looks up a symbol when its function is first called, and panics if the
//! symbol or the whole library is missing (`sys::load`, `sys::culib`). Its functions also return the Rust enum
//! `CUresult`, which lacks the codes of newer drivers. So this layer takes types, constants and signatures from
//! `sys` (the compiler checks ours against them), but looks up every symbol itself and reads the return code as an
//! integer.
//!
//! # Safety
//! The unsafe functions of this layer share one contract: handles are live and come from this driver, device
//! addresses lie in live allocations that are at least as large as the length passed, and calls documented to work
//! on the current context run while a [`context::Current`] of that context exists.

mod calls;
pub(crate) mod context;
pub(crate) mod device;
pub(crate) mod green;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod memory;
pub(crate) mod occupancy;
pub(crate) mod stream;
pub(crate) mod unified;

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

pub(crate) use cudarc::driver::sys;

use crate::error::{CudaError, CudaVersion, Error, Fault, Result, is_sticky};

/// The oldest supported driver: `cuLibrary*` and the second device runtime (CDP2) came with CUDA 12.0.
pub(crate) const NEEDED: CudaVersion = CudaVersion::new(12, 0);

const NOT_READY: i32 = sys::CUresult::CUDA_ERROR_NOT_READY as i32;
const INVALID_VALUE: i32 = sys::CUresult::CUDA_ERROR_INVALID_VALUE as i32;
const NO_DEVICE: i32 = sys::CUresult::CUDA_ERROR_NO_DEVICE as i32;

/// A failed driver call. Small, because each poll creates one while the work is not done; [`Error`] adds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The driver lacks the call.
    Missing { call: &'static str, since: CudaVersion },
    /// The call returned this `CUresult`.
    Code { call: &'static str, code: i32 },
}

impl Failed {
    pub(crate) fn is_not_ready(self) -> bool {
        matches!(self, Failed::Code { code: NOT_READY, .. })
    }

    pub(crate) fn is_invalid_value(self) -> bool {
        matches!(self, Failed::Code { code: INVALID_VALUE, .. })
    }

    /// Whether the driver has the call but does not support it for this device (`CUDA_ERROR_NOT_SUPPORTED` or
    /// `CUDA_ERROR_INVALID_RESOURCE_TYPE`).
    pub(crate) fn is_unsupported(self) -> bool {
        matches!(self, Failed::Code { code: 801 | 914, .. })
    }

    /// The error for a call that older drivers have, but for fewer kinds of resource.
    pub(crate) fn since(self, feature: &'static str, since: CudaVersion) -> Error {
        let found = LOADED.get().map_or(CudaVersion::new(0, 0), |loaded| loaded.version);
        match self {
            Failed::Code { call, .. } if self.is_unsupported() && found < since => {
                Error::MissingFeature { call, feature, since, found }
            }
            other => other.into(),
        }
    }

    pub(crate) fn is_missing(self) -> bool {
        matches!(self, Failed::Missing { .. })
    }

    /// Converts to an error, with the driver's compile log if the call failed and wrote one.
    pub(crate) fn with_log(self, log: String) -> Error {
        match Error::from(self) {
            Error::Cuda(mut error) => {
                error.log = log;
                Error::Cuda(error)
            }
            other => other,
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Error {
        match failed {
            Failed::Missing { call, since } => {
                let found = LOADED.get().map_or(CudaVersion::new(0, 0), |loaded| loaded.version);
                Error::MissingCall { call, since, found }
            }
            Failed::Code { call, code } if is_sticky(code) => {
                Fault { call, code, name: error_text(code).0, kernels: Vec::new() }.boxed().into()
            }
            Failed::Code { call, code } => {
                let (name, message) = error_text(code);
                Box::new(CudaError { call, code, name, message, log: String::new() }).into()
            }
        }
    }
}

impl Fault {
    fn boxed(self) -> Box<Fault> {
        Box::new(self)
    }
}

/// A loaded and initialized driver. There is at most one per process.
#[derive(Debug)]
pub(crate) struct Driver {
    version: CudaVersion,
}

/// Whether the driver exports a call with this name.
pub(crate) fn has_call(name: &str) -> bool {
    calls::exports(name)
}

/// The loaded driver, initialized or not; error messages query it.
static LOADED: OnceLock<Driver> = OnceLock::new();

impl Driver {
    /// Returns the driver; the first call loads it and runs `cuInit`.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::DriverTooOld`].
    pub(crate) fn get() -> Result<&'static Driver> {
        static STARTED: OnceLock<Result<&'static Driver>> = OnceLock::new();
        STARTED.get_or_init(Driver::start).clone()
    }

    fn start() -> Result<&'static Driver> {
        if !calls::library_is_present() {
            return Err(Error::NoDriver {
                reason: "neither libcuda.so nor libcuda.so.1 can be loaded; install the NVIDIA driver, or put its folder on LD_LIBRARY_PATH"
                    .into(),
            });
        }
        // Before `cuInit`: "Returns the version of CUDA supported by the driver" needs no initialization, and an
        // old driver is the likelier cause if `cuInit` fails.
        let version =
            driver_version().map_err(|failed| no_driver("does not tell its version", failed))?;
        let driver = LOADED.get_or_init(|| Driver { version });
        if version < NEEDED {
            return Err(Error::DriverTooOld { found: version, needed: NEEDED });
        }
        // SAFETY: `cuInit` takes no handle; its flags "must be 0" (driver API, Initialization).
        match unsafe { calls::cuInit(0) } {
            Ok(()) => Ok(driver),
            Err(Failed::Code { code: NO_DEVICE, .. }) => {
                Err(Error::NoDevice { ordinal: 0, found: 0 })
            }
            Err(failed) => Err(no_driver("does not start", failed)),
        }
    }

    /// The CUDA version that the driver supports.
    pub(crate) fn version(&self) -> CudaVersion {
        self.version
    }
}

fn no_driver(what: &str, failed: Failed) -> Error {
    let reason = match failed {
        Failed::Missing { call, .. } => format!("libcuda is there, but has no `{call}`"),
        Failed::Code { call, code } => {
            let (name, message) = error_text(code);
            format!("libcuda is there, but {what}: `{call}` failed with {name} ({code}): {message}")
        }
    };
    Error::NoDriver { reason }
}

fn driver_version() -> Result<CudaVersion, Failed> {
    let mut version: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { calls::cuDriverGetVersion(&mut version) }?;
    Ok(CudaVersion::from_driver(version))
}

/// The name and description of a `CUresult`, from the driver if it knows the code.
fn error_text(code: i32) -> (String, String) {
    let text = |call: unsafe fn(c_int, *mut *const c_char) -> Result<(), Failed>| {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the pointer is to a live pointer; the call accepts any integer as the code.
        let found = unsafe { call(code, &mut text) };
        if found.is_err() || text.is_null() {
            return None;
        }
        // SAFETY: on success it is a NUL-terminated string that lives as long as the library, which is never
        // unloaded (driver API, Error Handling).
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    let name = text(calls::cuGetErrorName).unwrap_or_else(|| format!("CUresult {code}"));
    let message =
        text(calls::cuGetErrorString).unwrap_or_else(|| "the driver has no words for it".into());
    (name, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_words_still_make_errors() {
        let error = Error::from(Failed::Code { call: "cuMemAlloc_v2", code: 123_456 });
        assert_eq!(
            error.to_string(),
            "`cuMemAlloc_v2` failed with CUresult 123456 (123456): the driver has no words for it"
        );
    }

    #[test]
    fn sticky_codes_become_faults() {
        let Error::Fault(fault) = Error::from(Failed::Code { call: "cuStreamQuery", code: 700 })
        else {
            panic!("not a fault")
        };
        assert_eq!(fault.code, 700);
        assert!(fault.to_string().starts_with("a kernel read or wrote an invalid address"));
    }

    #[test]
    fn faults_are_the_codes_that_lose_the_context() {
        let is_fault =
            |code| matches!(Error::from(Failed::Code { call: "cu", code }), Error::Fault(_));
        let faults: Vec<i32> = (0..1000).filter(|code| is_fault(*code)).collect();
        let expected = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721];
        assert_eq!(faults, expected);
    }

    #[test]
    fn only_calls_that_failed_carry_a_log() {
        let error =
            Failed::Code { call: "cuLibraryLoadData", code: 218 }.with_log("ptxas error\n".into());
        assert!(error.to_string().ends_with("\nptxas error"), "{error}");
    }
}
