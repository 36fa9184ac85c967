//! A model of a GPU that runs lowered IR in random interleavings.
//!
//! A launch strategy adds code to a program that threads of a whole device run together, such as a scheduler. This model runs
//! such a program without a GPU: every thread takes its steps in an order that a seed decides, so that a test can try many
//! orders, and a failure is found again. It reports dead-locks, endless grids, wrong accesses and failed asserts, with the
//! place of every thread.
//!
//! Threads of a warp run separately, as on GPUs from sm_70 on. Memory is sequentially consistent, or, with [`Options::weak`],
//! such that a missing fence shows.
//!
//! ```
//! use gridlet_lang::{arch::CudaArch, launch::{LaunchOptions, LaunchStrategy}, program, source::SourceMap};
//! use gridlet_simulate::{Device, Grid, Options, Program};
//!
//! let source = "kernel add(total: *mut u32) { atomic_add(total, thread_idx.x); }";
//! let checked = program::check(SourceMap::single("add.grid", source))?;
//! let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
//! let program = Program::new(&checked.lower(&options)?)?;
//! let mut device = Device::new(&program);
//! let total = device.allocate(4);
//! device.launch("add", Grid::new(1, 64), &total.to_le_bytes(), &Options::seed(1))?;
//! assert_eq!(device.read_words(total, 1), [2016]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code;
mod failure;
mod grid;
mod machine;
mod memory;
mod number;
mod random;

use gridlet_lang::ir::Module;

pub use failure::{Failure, FailureKind};
pub use grid::{Grid, Options, Outcome, Policy};

/// A program in the form in which it is run.
#[derive(Clone, Debug)]
pub struct Program(code::Code);

impl Program {
    /// Prepares a lowered module.
    ///
    /// # Errors
    /// A message if the module is not lowered, or too large for the model.
    pub fn new(module: &Module) -> Result<Program, String> {
        code::Code::new(module).map(Program)
    }
}

/// A device with a program.
#[derive(Clone, Debug)]
pub struct Device<'p> {
    program: &'p Program,
    memory: memory::Memory,
}

impl<'p> Device<'p> {
    /// A device on which nothing has run.
    pub fn new(program: &'p Program) -> Self {
        Device { program, memory: program.0.memory.clone() }
    }

    /// Allocates zeroed device memory, aligned to 256 MiB.
    ///
    /// # Panics
    /// If 256 MiB do not suffice.
    pub fn allocate(&mut self, bytes: usize) -> u64 {
        self.memory.allocate(vec![0; bytes], true).expect("the model's memory suffices")
    }

    /// The bytes at an address.
    ///
    /// # Panics
    /// Outside an allocation.
    pub fn read(&self, address: u64, bytes: usize) -> &[u8] {
        self.memory.host_bytes(address, bytes).expect("an allocation of that size")
    }

    /// The 32-bit words at an address.
    ///
    /// # Panics
    /// Outside an allocation.
    pub fn read_words(&self, address: u64, words: usize) -> Vec<u32> {
        let (chunks, _) = self.read(address, words * 4).as_chunks();
        chunks.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    /// Writes bytes at an address.
    ///
    /// # Panics
    /// Outside an allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        let to = self.memory.host_bytes_mut(address, bytes.len());
        to.expect("an allocation of that size").copy_from_slice(bytes);
    }

    /// Address and size in bytes of a variable in device memory.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        self.program.0.variables.get(name).copied()
    }

    /// Runs a kernel to its end. `parameters` is its parameter buffer, as laid out by `gridlet_lang::layout`.
    ///
    /// # Errors
    /// If the grid fails. Device memory is then as the grid left it.
    ///
    /// # Panics
    /// If there is no such kernel, or if its parameters take more bytes.
    pub fn launch(
        &mut self,
        kernel: &str,
        grid: Grid,
        parameters: &[u8],
        options: &Options,
    ) -> Result<Outcome, Box<Failure>> {
        let code = &self.program.0;
        let entry = code.entries.get(kernel).unwrap_or_else(|| panic!("no kernel `{kernel}`"));
        assert!(parameters.len() >= entry.bytes as usize, "`{kernel}` takes {} bytes", entry.bytes);
        machine::run(code, &mut self.memory, entry, parameters, &grid, options)
    }
}
