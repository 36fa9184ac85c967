//! What a build for GPUs may choose.

use gridlet_lang::arch::{CudaArch, Dialect};
use gridlet_lang::launch::{LaunchChoice, LaunchStrategy};
use gridlet_lang::program::Checked;

use crate::link::LinkOptions;
use crate::ptx::Ptx;

/// The choice of libNVVM's input language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialectChoice {
    /// The dialect that libNVVM requires for the architecture.
    #[default]
    Auto,
    /// A given dialect, to inspect or to hand to another tool.
    Fixed(Dialect),
}

/// The compiler from the module to PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// NVIDIA's libNVVM.
    #[default]
    LibNvvm,
    /// LLVM's own NVPTX back end, which needs nothing from NVIDIA.
    Nvptx,
}

/// Build options for GPUs. The defaults are those of `gridlet build`, but for [`BuildOptions::launch`].
///
/// ```
/// use gridlet::compile::{Backend, BuildOptions};
///
/// let options = BuildOptions::default().with_backend(Backend::Nvptx).with_optimize(false);
/// # assert!(!options.optimize);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildOptions {
    /// The architecture.
    pub arch: CudaArch,
    /// How kernels launch kernels. The default is `cdp`, because its images link with other CUDA code; programs and
    /// build scripts choose [`LaunchChoice::Auto`].
    pub launch: LaunchChoice,
    /// The dialect of the NVVM IR.
    pub dialect: DialectChoice,
    /// The back end.
    pub backend: Backend,
    /// Whether to optimise (`-O 3`) or not (`-O 0`).
    pub optimize: bool,
    /// Whether kernels record statistics of their run, for `gridlet run --stats`: see
    /// [`gridlet_lang::launch::instrument`].
    pub statistics: bool,
    /// Whether all kernels compute with `f32` as with nvcc's `-use_fast_math`: faster and less exact. `#[fast_math]` is for single
    /// kernels. The CPU device computes exactly.
    pub fast_math: bool,
    /// Whether images have line tables, for debuggers and profilers, and without `optimize` variables too (`-g`). Optimised
    /// code does not change.
    pub debug_lines: bool,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            arch: CudaArch::DEFAULT,
            launch: LaunchStrategy::Cdp.into(),
            dialect: DialectChoice::Auto,
            backend: Backend::LibNvvm,
            optimize: true,
            statistics: false,
            fast_math: false,
            debug_lines: false,
        }
    }
}

impl BuildOptions {
    /// The defaults for one architecture. Kernels launch kernels by CUDA's device runtime; [`BuildOptions::launch`] says why.
    pub fn for_arch(arch: CudaArch) -> Self {
        BuildOptions { arch, ..BuildOptions::default() }
    }

    gridlet_artifact::setters! {
        with_arch: arch: CudaArch,
        with_launch: launch: LaunchChoice,
        with_dialect: dialect: DialectChoice,
        with_backend: backend: Backend,
        with_optimize: optimize: bool,
        with_statistics: statistics: bool,
        with_fast_math: fast_math: bool,
        with_debug_lines: debug_lines: bool,
    }

    /// The launch strategy for a program.
    pub fn strategy(&self, program: &Checked) -> LaunchStrategy {
        self.launch.resolve(&program.module).0
    }

    /// For PTX with or without variables; ptxas does not optimise the former, and warns of a request for both.
    pub(super) fn link_options(&self, ptx: &Ptx) -> LinkOptions {
        let debug = self.debug_variables() && ptx.has_variables();
        let options = LinkOptions::default().with_opt_level(self.opt_level());
        options.with_line_info(self.debug_lines && !debug).with_debug(debug)
    }

    /// Whether images have variables.
    pub(super) fn debug_variables(&self) -> bool {
        self.debug_lines && !self.optimize
    }

    pub(super) fn opt_level(&self) -> u8 {
        if self.optimize { 3 } else { 0 }
    }

    /// Whether libNVVM compiles to PTX.
    pub(crate) fn uses_libnvvm(&self) -> bool {
        self.backend == Backend::LibNvvm
    }

    /// The dialect that these options select.
    pub fn dialect(&self) -> Dialect {
        match self.dialect {
            DialectChoice::Auto => self.arch.dialect(),
            DialectChoice::Fixed(dialect) => dialect,
        }
    }
}
