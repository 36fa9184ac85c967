//! How the CPU device runs a kernel: its entries and its descriptor.

use gridlet_runtime::cpu::abi;
use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Linkage;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue};

use crate::builtins::Builtin;
use crate::codegen::bug;
use crate::codegen::context::ModuleContext;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::instruction::runtime_function;
use crate::codegen::values::pointer;
use crate::error::{Error, Result};
use crate::ir::{self, InstKind, KernelId, graph, loops, symbol};
use crate::launch::symbols::RuntimeFunction;
use crate::layout::buffer_layout;
use crate::types::Type;

/// Field of the geometry that tells the threads of a block apart.
const THREAD_IDX: u64 = 0;
/// Field of the geometry with the size of the block.
const BLOCK_DIM: u64 = 2;

/// Whether each thread of a block needs a stack of its own in a kernel: where threads wait for each other, be it
/// in a loop. `lane_id()` waits for nobody, but without the geometry only the device knows which thread asks; so it is
/// with the last error.
fn needs_threads(module: &ir::Module, kernel: KernelId) -> bool {
    let waits = graph::waits(module, kernel);
    let needs = |id| {
        let function = module.function(id);
        let mut kinds = function.instructions.iter().map(|inst| &inst.kind);
        let asks_for_lane =
            kinds.any(|kind| matches!(kind, InstKind::Builtin { builtin: Builtin::LaneId, .. }));
        let asks_for_error = |kind: &InstKind| match kind {
            InstKind::CallExtern { function, .. } => {
                let called = module.externs.get(function.index());
                called.and_then(|called| runtime_function(&called.name))
                    == Some(RuntimeFunction::GetLastError)
            }
            _ => false,
        };
        (asks_for_lane && !function.takes_geometry)
            || function.instructions.iter().any(|inst| asks_for_error(&inst.kind))
            || loops::waiting_heads(function).contains(&true)
    };
    waits.block
        || waits.warp
        || graph::reachable(module, module.kernel(kernel).body).into_iter().any(needs)
}

/// Whether a kernel, or a function that it may call, has an `assert`.
fn asserts(module: &ir::Module, kernel: KernelId) -> bool {
    let is_assert =
        |kind: &InstKind| matches!(kind, InstKind::Builtin { builtin: Builtin::Assert, .. });
    graph::reachable(module, module.kernel(kernel).body)
        .into_iter()
        .any(|id| module.function(id).instructions.iter().any(|inst| is_assert(&inst.kind)))
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Declares an entry of a kernel: an `abi::Entry`.
    pub(in crate::codegen) fn declare_cpu_entry(
        &self,
        kernel: &str,
        kind: &str,
    ) -> Result<FunctionValue<'ctx>> {
        let pointer = self.pointer_type().into();
        let ty = self.function_type(None, &[pointer, pointer]);
        let value = self.add_function(&format!("{}.{kind}", symbol::internal(kernel)), ty)?;
        value.set_linkage(Linkage::Internal);
        for (at, (name, alignment)) in [("geometry", 8), ("parameters", 64)].into_iter().enumerate()
        {
            let place = AttributeLoc::Param(at as u32);
            self.add_attribute(value, place, "align", alignment);
            self.add_attribute(value, place, "readonly", 0);
            // Only the image's own thread has them.
            self.add_attribute(value, place, "noalias", 0);
            if let Some(parameter) = value.get_nth_param(at as u32) {
                parameter.set_name(name);
            }
        }
        Ok(value)
    }

    /// Defines the table of kernels, and the entries that run a whole block.
    pub(super) fn define_descriptors(&self) -> Result<()> {
        let Some(cpu) = self.cpu() else { return Err(bug("descriptors of a module for a GPU")) };
        let word = |value: u64| self.int_type(32).const_int(value, false).as_basic_value_enum();
        let mut descriptors = Vec::with_capacity(self.ir.kernels.len());
        for (at, kernel) in self.ir.kernels.iter().enumerate() {
            let thread = *self
                .functions
                .get(kernel.entry.index())
                .ok_or_else(|| bug("an entry that is not there"))?;
            let id = KernelId(at as u32);
            let needs_threads = needs_threads(self.ir, id);
            let serial = if needs_threads {
                self.pointer_type().const_null()
            } else {
                let serial = self.declare_cpu_entry(&kernel.name, "serial")?;
                self.define_serial(id, serial)?;
                serial.as_global_value().as_pointer_value()
            };
            let types = kernel.parameters.iter().map(|parameter| &parameter.ty);
            let flags = if needs_threads { abi::NEEDS_THREADS } else { 0 }
                | if cpu.check { abi::CHECKED } else { 0 }
                | if asserts(self.ir, id) { abi::NAMES_THREADS } else { 0 };
            let name = format!("gridlet.name.{}", symbol::internal(&kernel.name));
            descriptors.push(cpu.descriptor.const_named_struct(&[
                self.c_string(&name, &kernel.name).into(),
                thread.as_global_value().as_pointer_value().into(),
                serial.into(),
                word(buffer_layout(types, &self.ir.structs).size),
                word(u64::from(cpu.shared.bytes)),
                word(u64::from(flags)),
                word(u64::from(cpu.shared.span)),
            ]));
        }
        cpu.kernels.set_initializer(&cpu.descriptor.const_array(&descriptors));
        Ok(())
    }

    /// Three loops around the body, x innermost.
    fn define_serial(&self, kernel: KernelId, value: FunctionValue<'ctx>) -> Result<()> {
        let kernel = self.ir.kernel(kernel);
        let entry = self.context.append_basic_block(value, "entry");
        let mut emitter =
            FunctionEmitter::new(self, self.ir.function(kernel.entry), value, vec![entry]);
        emitter.enter_function();
        self.builder.position_at_end(entry);
        let geometry = emitter.geometry_argument()?;
        let parameters = emitter.load_parameters()?;
        let block_dim =
            emitter.part_of(geometry, &Type::GEOMETRY, BLOCK_DIM as u32, "block_dim")?;
        let mut sizes = Vec::with_capacity(3);
        for axis in 0..3 {
            sizes.push(emitter.part_of(block_dim, &Type::DIM3, axis, "")?);
        }
        let body = *self
            .functions
            .get(kernel.body.index())
            .ok_or_else(|| bug("a body that is not there"))?;
        emitter.parameters = parameters;
        emitter.loops(&sizes, &mut Vec::new(), &|emitter, thread| {
            let lanes: Vec<_> = thread.iter().rev().map(|&at| at.into()).collect();
            let thread_idx = emitter.aggregate(&lanes, &Type::DIM3)?;
            let geometry = emitter.insert(geometry, thread_idx, THREAD_IDX, "geometry")?;
            let arguments = [vec![geometry], emitter.parameters.clone()].concat();
            emitter.call(body, arguments, &Type::Unit, "").map(|_| ())
        })?;
        self.builder.build_return(None)?;
        Ok(())
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    fn entry_argument(&self, index: u32) -> Result<BasicValueEnum<'ctx>> {
        self.value.get_nth_param(index).ok_or_else(|| bug("an entry without arguments"))
    }

    /// The geometry that an entry is given.
    pub(in crate::codegen) fn geometry_argument(&self) -> Result<BasicValueEnum<'ctx>> {
        let from = pointer(self.entry_argument(0)?)?;
        self.load_part(from, 0, &Type::GEOMETRY, "geometry", true)
    }

    /// An entry's parameters, from the packed buffer.
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

    /// Loops over the axes whose sizes are left, the last outermost, and calls `inner` with the indices so far,
    /// the outermost first.
    fn loops(
        &self,
        sizes: &[BasicValueEnum<'ctx>],
        indices: &mut Vec<IntValue<'ctx>>,
        inner: &dyn Fn(&Self, &[IntValue<'ctx>]) -> Result<()>,
    ) -> Result<()> {
        let Some((&size, inner_sizes)) = sizes.split_last() else { return inner(self, indices) };
        let axis = ["x", "y", "z"].get(inner_sizes.len()).copied().unwrap_or("w");
        let build = self.build();
        let (word, context) = (self.cx.int_type(32), self.cx.context);
        let before = build.get_insert_block().ok_or_else(|| bug("no block to emit into"))?;
        let [head, body, end] = ["head", "body", "end"]
            .map(|part| context.append_basic_block(self.value, &format!("{axis}.{part}")));
        build.build_unconditional_branch(head)?;
        build.position_at_end(head);
        let index = build.build_phi(word, axis)?;
        index.add_incoming(&[(&word.const_zero(), before)]);
        let at = crate::codegen::values::int(index.as_basic_value())?;
        let size = crate::codegen::values::int(size)?;
        let is_inside = build.build_int_compare(IntPredicate::ULT, at, size, "")?;
        build.build_conditional_branch(is_inside, body, end)?;
        build.position_at_end(body);
        indices.push(at);
        self.loops(inner_sizes, indices, inner)?;
        indices.pop();
        let next = build.build_int_add(at, word.const_int(1, false), "")?;
        let last = build.get_insert_block().ok_or_else(|| bug("no block to emit into"))?;
        index.add_incoming(&[(&next, last)]);
        build.build_unconditional_branch(head)?;
        build.position_at_end(end);
        Ok(())
    }

    /// The thread's lane, from the geometry: threads are numbered x first (CUDA Programming Guide, "Thread
    /// Hierarchy").
    pub(super) fn lane_of_geometry(&self) -> Result<BasicValueEnum<'ctx>> {
        let geometry = *self
            .parameters
            .first()
            .ok_or_else(|| Error::internal("codegen", "no geometry in a function that takes it"))?;
        let dim = |field: u64, axis: u32| -> Result<IntValue<'ctx>> {
            let dim3 = self.part_of(geometry, &Type::GEOMETRY, field as u32, "")?;
            crate::codegen::values::int(self.part_of(dim3, &Type::DIM3, axis, "")?)
        };
        let build = self.build();
        let mut linear = dim(THREAD_IDX, 2)?;
        for axis in [1, 0] {
            linear = build.build_int_mul(linear, dim(BLOCK_DIM, axis)?, "")?;
            linear = build.build_int_add(linear, dim(THREAD_IDX, axis)?, "")?;
        }
        let mask = self.cx.int_type(32).const_int(31, false);
        Ok(build.build_and(linear, mask, "lane")?.into())
    }
}
