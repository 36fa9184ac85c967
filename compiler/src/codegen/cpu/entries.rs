//! Kernel entries and descriptors, through which the CPU device runs kernels.

use gridlet_artifact::cpu::abi;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Linkage;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue};

use crate::codegen::bug;
use crate::codegen::context::ModuleContext;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::values::{int, pointer};
use crate::error::{Error, Result};
use gridlet_lang::builtins::Builtin;
use gridlet_lang::ir::{self, InstKind, KernelId, graph, loops, symbol};
use gridlet_lang::layout::buffer_layout;
use gridlet_lang::types::Type;

/// The entry for whole blocks, and its variant for processors of level x86-64-v3.
pub(super) const BLOCKS: &str = "blocks";
pub(super) const BLOCKS_V3: &str = "blocks.v3";

/// Fields of the geometry.
pub(super) const THREAD_IDX: u32 = 0;
pub(super) const BLOCK_IDX: u32 = 1;
pub(super) const BLOCK_DIM: u32 = 2;
pub(super) const GRID_DIM: u32 = 3;

/// For each kernel, the properties that decide how it runs.
struct Requirements {
    /// Whether each thread of a block needs its own stack, because threads wait for each other,
    /// also in polling loops. A function without geometry that calls `lane_id()` or reads the last
    /// error needs it too: only the device then knows the calling thread.
    needs_threads: Vec<bool>,
    /// Whether it has a loop that may wait for another thread's write.
    may_wait: Vec<bool>,
    /// Whether it calls the device for resources of its block: launches and streams.
    needs_block: Vec<bool>,
    /// Whether a function that it may call has an `assert` but no geometry, and so does not know
    /// its thread.
    assert_lacks_geometry: Vec<bool>,
}

impl Requirements {
    /// Analyses all kernels of a module.
    fn of(cx: &ModuleContext<'_, '_>) -> Self {
        let module = cx.ir;
        let has = |function: &ir::Function, is: &dyn Fn(&InstKind) -> bool| {
            function.instructions.iter().any(|inst| is(&inst.kind))
        };
        let is_builtin = |kind: &InstKind, wanted: Builtin| match kind {
            InstKind::Builtin { builtin, .. } => *builtin == wanted,
            _ => false,
        };
        let device_function = |kind: &InstKind| match kind {
            InstKind::CallExtern { function, .. } => cx.device_function(*function),
            _ => None,
        };
        let asks_per_thread =
            |kind: &InstKind| device_function(kind).is_some_and(|called| called.is_per_thread);
        let calls_device = |kind: &InstKind| device_function(kind).is_some();
        let may_wait =
            graph::of_kernels(module, |function| loops::waiting_heads(function).contains(&true));
        let mut needs_threads = graph::of_kernels(module, |function| {
            let asks_for_lane = |kind: &InstKind| is_builtin(kind, Builtin::LaneId);
            (!function.takes_geometry && has(function, &asks_for_lane))
                || has(function, &asks_per_thread)
        });
        let waits = graph::waits(module).into_iter().zip(&may_wait);
        for (needs_threads, (waits, may_wait)) in needs_threads.iter_mut().zip(waits) {
            *needs_threads |= waits.block || waits.warp || *may_wait;
        }
        Requirements {
            needs_threads,
            may_wait,
            needs_block: graph::of_kernels(module, |function| has(function, &calls_device)),
            assert_lacks_geometry: graph::of_kernels(module, |function| {
                let is_assert = |kind: &InstKind| is_builtin(kind, Builtin::Assert);
                !function.takes_geometry && has(function, &is_assert)
            }),
        }
    }
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Declares an entry of a kernel: an `abi::Entry`, or an `abi::BlocksEntry`, which also takes a
    /// number of blocks.
    pub(in crate::codegen) fn declare_cpu_entry(
        &self,
        kernel: &str,
        kind: &str,
    ) -> Result<FunctionValue<'ctx>> {
        let pointer = self.pointer_type().into();
        let runs_blocks = kind.starts_with(BLOCKS);
        let mut types = vec![pointer, pointer];
        if runs_blocks {
            types.push(self.int_type(64).into());
        }
        let ty = self.function_type(None, &types);
        let value = self.add_function(&format!("{}.{kind}", symbol::internal(kernel)), ty)?;
        value.set_linkage(Linkage::Internal);
        if let Some(parameter) = value.get_nth_param(2) {
            parameter.set_name("blocks");
        }
        for (at, (name, alignment)) in [("geometry", 8), ("parameters", 64)].into_iter().enumerate()
        {
            let place = AttributeLoc::Param(at as u32);
            self.add_attribute(value, place, "align", alignment);
            // The blocks entry writes the current block into the geometry.
            if !(runs_blocks && name == "geometry") {
                self.add_attribute(value, place, "readonly", 0);
            }
            // Only the image's own thread accesses them.
            self.add_attribute(value, place, "noalias", 0);
            if let Some(parameter) = value.get_nth_param(at as u32) {
                parameter.set_name(name);
            }
        }
        Ok(value)
    }

    /// Defines the kernel table and the entries that run whole blocks.
    pub(super) fn define_descriptors(&self) -> Result<()> {
        let Some(cpu) = self.cpu() else { return Err(bug("descriptors of a module for a GPU")) };
        let word = |value: u64| self.int_type(32).const_int(value, false).as_basic_value_enum();
        let requirements = Requirements::of(self);
        let mut descriptors = Vec::with_capacity(self.ir.kernels.len());
        for (at, kernel) in self.ir.kernels.iter().enumerate() {
            let thread =
                *self.functions.get(kernel.entry.index()).ok_or_else(|| bug("a missing entry"))?;
            let id = KernelId(at as u32);
            let needs_threads = requirements.needs_threads[at];
            let is_tied = requirements.needs_block[at];
            let null = self.pointer_type().const_null();
            let (mut blocks, mut blocks_v3) = (null, null);
            if !needs_threads {
                blocks = self.define_blocks(id, BLOCKS, is_tied)?;
            }
            // Kernels that wait for the device gain nothing from wider vectors.
            if !needs_threads && !is_tied && cpu.has_v3 {
                blocks_v3 = self.define_blocks(id, BLOCKS_V3, is_tied)?;
            }
            let types = kernel.parameters.iter().map(|parameter| &parameter.ty);
            let flags = if needs_threads { abi::NEEDS_THREADS } else { 0 }
                | if is_tied { abi::BLOCK_BY_BLOCK } else { 0 }
                | if cpu.check { abi::CHECKED } else { 0 }
                | if requirements.may_wait[at] { abi::WAITS } else { 0 }
                | if self.is_linked() { abi::LINKED } else { 0 }
                | if requirements.assert_lacks_geometry[at] { abi::NAMES_THREADS } else { 0 };
            let name = format!("gridlet.name.{}", symbol::internal(&kernel.name));
            descriptors.push(cpu.descriptor.const_named_struct(&[
                self.c_string(&name, symbol::source_name(&kernel.name)).into(),
                thread.as_global_value().as_pointer_value().into(),
                blocks.into(),
                blocks_v3.into(),
                word(buffer_layout(types, &self.ir.structs).size),
                word(u64::from(cpu.shared.bytes[at])),
                word(u64::from(flags)),
                word(u64::from(cpu.shared.span)),
                word(kernel.launch_bounds.map_or(0, |bounds| bounds.max_threads.into())),
            ]));
        }
        cpu.kernels.set_initializer(&cpu.descriptor.const_array(&descriptors));
        Ok(())
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    fn entry_argument(&self, index: u32) -> Result<BasicValueEnum<'ctx>> {
        self.value.get_nth_param(index).ok_or_else(|| bug("an entry without arguments"))
    }

    /// The geometry argument of an entry.
    pub(in crate::codegen) fn geometry_argument(&self) -> Result<BasicValueEnum<'ctx>> {
        let from = pointer(self.entry_argument(0)?)?;
        self.load_part(from, 0, &Type::GEOMETRY, "geometry", true)
    }

    /// Loads an entry's parameters from the packed buffer.
    pub(in crate::codegen) fn load_parameters(&self) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let buffer = pointer(self.entry_argument(1)?)?;
        let parameters = &self.function.parameters;
        let layout =
            buffer_layout(parameters.iter().map(|parameter| &parameter.ty), &self.cx.ir.structs);
        let slots = parameters.iter().zip(&layout.slots);
        slots
            .map(|(parameter, slot)| {
                self.load_part(buffer, slot.offset, &parameter.ty, &parameter.name, true)
            })
            .collect()
    }

    /// The thread's number in its block, computed from the geometry, with x as the fastest
    /// dimension (CUDA Programming Guide, "Thread Hierarchy").
    pub(super) fn thread_number(&self) -> Result<IntValue<'ctx>> {
        let geometry = *self
            .parameters
            .first()
            .ok_or_else(|| Error::internal("codegen", "no geometry in a function that takes it"))?;
        let dim = |field: u32, axis: u32| -> Result<IntValue<'ctx>> {
            let dim3 = self.part_of(geometry, &Type::GEOMETRY, field, "")?;
            int(self.part_of(dim3, &Type::DIM3, axis, "")?)
        };
        let build = self.build();
        let mut number = dim(THREAD_IDX, 2)?;
        for axis in [1, 0] {
            number = build.build_int_mul(number, dim(BLOCK_DIM, axis)?, "")?;
            number = build.build_int_add(number, dim(THREAD_IDX, axis)?, "")?;
        }
        Ok(number)
    }

    /// The thread's lane, computed from the geometry.
    pub(super) fn lane_of_geometry(&self) -> Result<BasicValueEnum<'ctx>> {
        let mask = self.cx.int_type(32).const_int(31, false);
        Ok(self.build().build_and(self.thread_number()?, mask, "lane")?.into())
    }
}
