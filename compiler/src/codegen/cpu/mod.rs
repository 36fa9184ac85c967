//! Codegen for the CPU, where software replaces a GPU's hardware.
//!
//! A CPU image comes from the same IR, with the same bodies, layouts and lowered launches, through
//! LLVM's host target. `gridlet_artifact::cpu::abi` is the contract with the CPU device. The
//! differences are here:
//!
//! - **Geometry, parameters, entries** (`entries.rs`). A kernel's entry becomes `<kernel>.thread`,
//!   which loads the geometry and the packed parameters through its two arguments and calls the
//!   body. Unless threads of the block wait for each other, `<kernel>.blocks` calls the same body
//!   for each thread of several blocks (`blocks.rs`); in images for any x86-64,
//!   `<kernel>.blocks.v3` is a variant for newer processors. [`abi::KERNELS_SYMBOL`] lists them; a
//!   launch names a kernel by the address of its descriptor in that list.
//! - **Built-ins and the device runtime** (`callbacks.rs`) become calls through the table of callbacks;
//!   mathematical functions (`math.rs`) become LLVM intrinsics or C library calls.
//! - **Memory** (`memory.rs`). There is one address space. Shared variables have offsets in the
//!   block's shared memory, whose address a function loads when it starts.
//! - **Checks** (`check.rs`). A checked image reports every access and loop iteration to the
//!   device, and registers the local variables that pointers may reach (`locals.rs`); each variable
//!   ends in a red zone, a static also starts with one, and a table lists all of them (`variables.rs`).
//! - **Source lines and variables** (`codegen/debug/`), for debuggers. Traps, launches and checks always carry their
//!   position.

mod blocks;
mod callbacks;
mod check;
mod entries;
mod locals;
mod math;
mod memory;
mod operations;
mod variables;

use gridlet_artifact::cpu::abi;
use inkwell::GlobalVisibility;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::llvm_sys::core::{LLVMAddAlias2, LLVMSetLinkage, LLVMSetVisibility};
use inkwell::llvm_sys::{LLVMLinkage, LLVMVisibility};
use inkwell::module::{Linkage, Module};
use inkwell::targets::TargetMachine;
use inkwell::types::AsTypeRef;
use inkwell::types::StructType;
use inkwell::values::AsValueRef;
use inkwell::values::{BasicValue, FunctionValue, GlobalValue, PointerValue};

use super::context::{ModuleContext, Target};
use super::debug::Debug;
use super::{GpuModuleOptions, fill};
use crate::error::{Error, Result};
use gridlet_lang::diagnostics::{Diagnostic, ids};
use gridlet_lang::ir::{self, KernelId, Space, graph::CallGraph, loops};
use memory::SharedMemory;

/// Options for emitting a module for the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuModuleOptions {
    /// Whether accesses and loops call the device, for `--check`.
    pub check: bool,
    /// Whether the module records the source line of each instruction and the variables, for debuggers.
    pub debug_lines: bool,
    /// Whether the module will be optimised, as recorded in the debug information.
    pub optimize: bool,
    /// Whether kernels that benefit also get an entry for processors of level x86-64-v3.
    pub has_v3: bool,
}

/// The additional state of a module for the CPU.
pub(super) struct CpuTarget<'ctx> {
    pub(in crate::codegen) check: bool,
    has_v3: bool,
    /// For each function, in checked images: whether it or a callee has a loop that may never end.
    loops_forever: Vec<bool>,
    /// For each function, in checked images: whether it may call itself, directly or indirectly.
    is_recursive: Vec<bool>,
    /// The variable that holds the address of the callbacks.
    table: PointerValue<'ctx>,
    /// The array of kernel descriptors.
    kernels: GlobalValue<'ctx>,
    descriptor: StructType<'ctx>,
    shared: SharedMemory,
}

/// Emits `module`, as lowered by the `launch` stage with the device runtime's public names, into
/// `context` for `machine`.
///
/// # Errors
/// As [`super::build_module`]; [`Error::Invalid`] if the program uses a feature that the CPU device lacks, and
/// [`Error::Program`] at each `extern kernel`.
pub fn build_cpu_module<'ctx>(
    context: &'ctx Context,
    module: &ir::Module,
    machine: &TargetMachine,
    options: &CpuModuleOptions,
) -> Result<Module<'ctx>> {
    let absent = module.extern_kernels().map(|kernel| {
        let message =
            format!("images for the CPU device have no `extern kernel`: `{}`", kernel.name);
        Diagnostic::error(ids::UNDEFINED_EXTERN, kernel.span, message)
            .at_caret("declared here")
            .note("only modules for GPUs have kernels that can be linked")
            .hint("build for GPUs alone: `--arch sm_90`")
    });
    let absent: Vec<Diagnostic> = absent.collect();
    if !absent.is_empty() {
        return Err(Error::Program(absent));
    }
    let mut cx = ModuleContext::new(context, module, GpuModuleOptions::default())?;
    cx.module.set_triple(&machine.get_triple());
    cx.module.set_data_layout(&machine.get_target_data().get_data_layout());
    let target = CpuTarget::new(&cx, options)?;
    check_statics(&cx, &target)?;
    cx.debug = options.debug_lines.then(|| Debug::new(&cx, true, options.optimize));
    cx.target = Target::Cpu(Box::new(target));
    fill(&mut cx)?;
    cx.define_descriptors()?;
    cx.define_variables()?;
    cx.finish()
}

/// Maximum size of all variables of an image together, in bytes: code reaches data by 32-bit offsets (System V ABI for
/// x86-64, "Code Models": the small model), and the rest of the 2 GiB is for code and constants.
pub(crate) const MAX_STATIC_BYTES: u64 = (2 << 30) - (64 << 20);

fn check_statics(cx: &ModuleContext<'_, '_>, target: &CpuTarget<'_>) -> Result<()> {
    let statics = cx.ir.globals.iter().filter(|global| global.space == Space::Device);
    let sizes = statics.map(|global| cx.size(&global.ty).saturating_add(2 * target.red_zone()));
    let bytes = sizes.fold(0, u64::saturating_add);
    if bytes <= MAX_STATIC_BYTES {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the `static` variables take {bytes} bytes, but an image for the CPU has room for {MAX_STATIC_BYTES}; let the \
         host allocate a buffer, and pass it to the kernels"
    )))
}

/// The size of the red zone around each variable, in bytes.
fn red_zone(check: bool) -> u64 {
    if check { abi::RED_ZONE_BYTES as u64 } else { 0 }
}

/// Exports a variable: the loader finds it by name, and this module accesses it directly.
pub(super) fn export(global: GlobalValue<'_>) {
    global.set_linkage(Linkage::External);
    global.set_visibility(GlobalVisibility::Protected);
}

impl<'ctx> CpuTarget<'ctx> {
    fn new(cx: &ModuleContext<'ctx, '_>, options: &CpuModuleOptions) -> Result<Self> {
        let word = cx.int_type(32);
        let pointer = cx.pointer_type();
        let constant = |name: &str, value: u64| {
            let global = cx.module.add_global(word, None, name);
            global.set_initializer(&word.const_int(value, false));
            global.set_constant(true);
            export(global);
        };
        constant(abi::VERSION_SYMBOL, u64::from(abi::ABI_VERSION));
        constant(abi::KERNEL_COUNT_SYMBOL, cx.ir.kernels.len() as u64);
        let table = cx.module.add_global(pointer, None, abi::TABLE_SYMBOL);
        table.set_initializer(&pointer.const_null());
        export(table);
        // `abi::KernelDescriptor`
        let descriptor = cx.context.struct_type(
            &[
                pointer.into(),
                pointer.into(),
                pointer.into(),
                pointer.into(),
                word.into(),
                word.into(),
                word.into(),
                word.into(),
                word.into(),
            ],
            false,
        );
        let array = descriptor.array_type(cx.ir.kernels.len() as u32);
        let kernels = cx.module.add_global(array, None, abi::KERNELS_SYMBOL);
        kernels.set_constant(true);
        export(kernels);
        let (mut loops_forever, mut is_recursive) = (Vec::new(), Vec::new());
        if options.check {
            let calls = CallGraph::of(cx.ir);
            let may_loop = |id| loops::may_loop_forever(cx.ir.function(id));
            (loops_forever, is_recursive) = (calls.may_reach(may_loop), calls.recursive());
        }
        Ok(CpuTarget {
            check: options.check,
            loops_forever,
            is_recursive,
            has_v3: options.has_v3,
            table: table.as_pointer_value(),
            kernels,
            descriptor,
            shared: SharedMemory::of(cx.ir, red_zone(options.check))?,
        })
    }

    /// The size of the red zone before and after each static, in bytes.
    pub(super) fn red_zone(&self) -> u64 {
        red_zone(self.check)
    }

    /// The address of a kernel's descriptor.
    pub(super) fn descriptor(
        &self,
        cx: &ModuleContext<'ctx, '_>,
        kernel: KernelId,
    ) -> PointerValue<'ctx> {
        let index = cx.int_type(64).const_int(u64::from(kernel.0), false);
        let array = self.kernels.as_pointer_value();
        // SAFETY: inkwell marks this unsafe because LLVM accepts any indices; one i64 is
        // well-typed, and the callers' kernels are the array's.
        unsafe { array.const_in_bounds_gep(self.descriptor, &[index]) }
    }
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Whether the program calls code of other compilers.
    fn is_linked(&self) -> bool {
        self.ir.externs.iter().any(|item| item.span.is_some())
    }

    /// The address of the variable that follows the red zone at the start of `guarded`.
    pub(super) fn inside_guarded(
        &self,
        guarded: GlobalValue<'ctx>,
        zone: u64,
    ) -> PointerValue<'ctx> {
        let (byte, offset) = (self.int_type(8), self.int_type(64).const_int(zone, false));
        // SAFETY: inkwell marks this unsafe because LLVM accepts any indices; one i64 into an i8 is
        // well-typed.
        unsafe { guarded.as_pointer_value().const_in_bounds_gep(byte, &[offset]) }
    }

    /// Exports the variable with an address of [`Self::inside_guarded`].
    pub(super) fn export_guarded(&self, inside: PointerValue<'ctx>, name: &str) -> Result<()> {
        let byte = self.int_type(8);
        let name =
            std::ffi::CString::new(name).map_err(|_| crate::codegen::bug("a name with a NUL"))?;
        // SAFETY: the module, the type and the address belong to this context, and the name is a C
        // string. The result is an alias, which has a linkage and a visibility, as all globals.
        unsafe {
            let alias = LLVMAddAlias2(
                self.module.as_mut_ptr(),
                byte.as_type_ref(),
                0,
                inside.as_value_ref(),
                name.as_ptr(),
            );
            LLVMSetLinkage(alias, LLVMLinkage::LLVMExternalLinkage);
            LLVMSetVisibility(alias, LLVMVisibility::LLVMProtectedVisibility);
        }
        Ok(())
    }

    /// Adds the attributes of every function on the CPU.
    pub(in crate::codegen) fn add_cpu_attributes(&self, function: FunctionValue<'ctx>) {
        // A coroutine's stack ends in a guard page, which a large frame must not skip.
        let probe = self.context.create_string_attribute("probe-stack", "inline-asm");
        function.add_attribute(AttributeLoc::Function, probe);
        // An access at null is a fault, as the runtime reports it, and no reason to drop the code before it.
        self.add_attribute(function, AttributeLoc::Function, "null_pointer_is_valid", 0);
    }

    /// A NUL-terminated string constant.
    fn c_string(&self, name: &str, text: &str) -> PointerValue<'ctx> {
        let bytes = self.context.const_string(text.as_bytes(), true);
        let global = self.module.add_global(bytes.get_type(), None, name);
        global.set_initializer(&bytes.as_basic_value_enum());
        global.set_constant(true);
        global.set_linkage(Linkage::Private);
        global.as_pointer_value()
    }
}
