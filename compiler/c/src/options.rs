//! The options of a build, set one by one, so that later versions can add more.

use std::ffi::{c_char, c_int};

use gridlet::arch::{CudaArch, Dialect};
use gridlet::compile::{Backend, BuildOptions, CpuOptions, DialectChoice, KernelName};
use gridlet::launch::LaunchChoice;
use gridlet::target::Target;

use crate::boundary::{close, give, guard, invalid, null, text};
use crate::{Failure, gridlet_compile_status};

/// The options of a build.
pub struct gridlet_options {
    targets: Vec<Target>,
    pub(crate) instances: Vec<KernelName>,
    pub(crate) cuda: BuildOptions,
    pub(crate) cpu: CpuOptions,
}

const DEFAULT_TARGETS: &[Target] = &[Target::Cuda(CudaArch::DEFAULT)];

impl Default for gridlet_options {
    fn default() -> Self {
        let cuda = BuildOptions::default().with_launch(LaunchChoice::Auto);
        gridlet_options { targets: vec![], instances: vec![], cuda, cpu: CpuOptions::portable() }
    }
}

impl gridlet_options {
    pub(crate) fn targets(&self) -> &[Target] {
        if self.targets.is_empty() { DEFAULT_TARGETS } else { &self.targets }
    }
}

/// Creates the default options of `gridlet build`: target sm_90, optimised.
///
/// # Safety
/// `options` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_create(
    options: *mut *mut gridlet_options,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe { give(options, "options", || Ok(gridlet_options::default())) }
}

/// Frees options.
///
/// # Safety
/// `options` must be NULL, or options that are not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_free(options: *mut gridlet_options) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_compile_status>(options) }
}

/// # Safety
/// `options` must be NULL or alive and not in use elsewhere.
unsafe fn set(
    options: *mut gridlet_options,
    change: impl FnOnce(&mut gridlet_options) -> Result<(), Failure>,
) -> gridlet_compile_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        let options = unsafe { options.as_mut() };
        change(options.ok_or_else(|| null("options"))?)
    })
}

/// As [`set`], for a switch.
///
/// # Safety
/// As for [`set`].
unsafe fn switch(
    options: *mut gridlet_options,
    on: c_int,
    change: impl FnOnce(&mut gridlet_options, bool),
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        set(options, |options| {
            change(options, on != 0);
            Ok(())
        })
    }
}

/// As [`set`], by the name of a value.
///
/// # Safety
/// As for [`set`]; `name` must be NULL or a string.
unsafe fn set_named(
    options: *mut gridlet_options,
    name: *const c_char,
    change: impl FnOnce(&mut gridlet_options, &str) -> Result<(), String>,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        set(options, |options| {
            let name = text(name, "name")?;
            change(options, name).map_err(invalid)
        })
    }
}

/// Adds a target: `sm_75` and later, or `cpu`. Without any, the target is `sm_90`.
///
/// # Safety
/// `options` must be alive and not in use elsewhere; `name` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_add_target(
    options: *mut gridlet_options,
    name: *const c_char,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        set_named(options, name, |options, name| {
            options.targets.push(name.parse()?);
            Ok(())
        })
    }
}

/// Adds a kernel with const parameters to compile for these constants, as `k::<8>`, in addition to the instances that the program
/// launches.
///
/// # Safety
/// As for `gridlet_options_add_target`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_add_instance(
    options: *mut gridlet_options,
    name: *const c_char,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        set_named(options, name, |options, name| {
            options.instances.push(name.parse()?);
            Ok(())
        })
    }
}

/// Sets how kernels launch kernels on GPUs: `auto` (the default), `cdp` or `resident`.
///
/// # Safety
/// As for `gridlet_options_add_target`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_launch(
    options: *mut gridlet_options,
    name: *const c_char,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        set_named(options, name, |options, name| {
            let choice: Option<LaunchChoice> = name.parse().ok();
            options.cuda.launch = choice.ok_or_else(|| {
                format!("no launch strategy `{name}`; there are auto, cdp and resident")
            })?;
            Ok(())
        })
    }
}

/// Sets the dialect of NVVM IR: `auto` (the default, which follows the target), `legacy` or `modern`.
///
/// # Safety
/// As for `gridlet_options_add_target`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_dialect(
    options: *mut gridlet_options,
    name: *const c_char,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        set_named(options, name, |options, name| {
            options.cuda.dialect = match name {
                "auto" => DialectChoice::Auto,
                "legacy" => DialectChoice::Fixed(Dialect::Legacy),
                "modern" => DialectChoice::Fixed(Dialect::Modern),
                _ => return Err(format!("no dialect `{name}`; there are auto, legacy and modern")),
            };
            Ok(())
        })
    }
}

/// Sets the compiler to PTX: `libnvvm` (the default) or `nvptx`.
///
/// # Safety
/// As for `gridlet_options_add_target`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_backend(
    options: *mut gridlet_options,
    name: *const c_char,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        set_named(options, name, |options, name| {
            options.cuda.backend = match name {
                "libnvvm" => Backend::LibNvvm,
                "nvptx" => Backend::Nvptx,
                _ => return Err(format!("no back end `{name}`; there are libnvvm and nvptx")),
            };
            Ok(())
        })
    }
}

/// Sets whether to optimise, which is the default.
///
/// # Safety
/// `options` must be alive and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_optimize(
    options: *mut gridlet_options,
    on: c_int,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        switch(options, on, |options, on| {
            options.cuda.optimize = on;
            options.cpu.optimize = on;
        })
    }
}

/// Sets whether `f32` is computed on GPUs as with nvcc's `-use_fast_math`: faster and less exact.
///
/// # Safety
/// `options` must be alive and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_fast_math(
    options: *mut gridlet_options,
    on: c_int,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        switch(options, on, |options, on| {
            options.cuda.fast_math = on;
        })
    }
}

/// Sets whether kernels record statistics of their run.
///
/// # Safety
/// `options` must be alive and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_statistics(
    options: *mut gridlet_options,
    on: c_int,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        switch(options, on, |options, on| {
            options.cuda.statistics = on;
            options.cpu.statistics = on;
        })
    }
}

/// Sets whether images for the CPU device report races, wrong accesses and waits.
///
/// # Safety
/// `options` must be alive and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_check(
    options: *mut gridlet_options,
    on: c_int,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        switch(options, on, |options, on| {
            options.cpu.check = on;
        })
    }
}

/// Sets whether images for the CPU device may use every feature of this machine's processor. They then run only on processors that
/// have them too.
///
/// # Safety
/// `options` must be alive and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_native(
    options: *mut gridlet_options,
    on: c_int,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        switch(options, on, |options, on| {
            options.cpu.native = on;
        })
    }
}

/// Sets whether images have line tables, for debuggers and profilers, and variables: for GPUs only without optimisation.
///
/// # Safety
/// `options` must be alive and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_options_set_debug_lines(
    options: *mut gridlet_options,
    on: c_int,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        switch(options, on, |options, on| {
            options.cpu.debug_lines = on;
            options.cuda.debug_lines = on;
        })
    }
}
