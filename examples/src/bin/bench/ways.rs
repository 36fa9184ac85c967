//! The ways in which a plain kernel is compiled.

/// A way from source to machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Gridlet, through libNVVM.
    LibNvvm,
    /// Gridlet, through LLVM's own back end.
    Nvptx,
    /// CUDA C++.
    Nvcc,
}

impl Way {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Way; 3] = [Way::LibNvvm, Way::Nvptx, Way::Nvcc];

    /// Its name in tables and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::LibNvvm => "libNVVM",
            Way::Nvptx => "NVPTX",
            Way::Nvcc => "nvcc",
        }
    }
}
