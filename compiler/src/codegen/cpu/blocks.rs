//! The entry that runs whole blocks: loops around the body, written so that LLVM can vectorise
//! across threads.

use gridlet_artifact::cpu::abi;
use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PointerValue};

use super::entries::{BLOCK_DIM, BLOCK_IDX, BLOCKS_V3, GRID_DIM, THREAD_IDX};
use crate::codegen::bug;
use crate::codegen::context::ModuleContext;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::values::{int, pointer};
use crate::error::{Error, Result};
use gridlet_lang::ir::guards::{Guard, guards, stored_once};
use gridlet_lang::ir::{Function, FunctionId, InstId, InstKind, KernelId, Operand};
use gridlet_lang::types::{Scalar, Type};

/// A kernel's body, called for each thread of a row: threads that differ only in `thread_idx.x`.
struct Row<'a, 'ctx> {
    id: FunctionId,
    body: &'a Function,
    callee: FunctionValue<'ctx>,
    /// For each slot of the body, its only value.
    stored: Vec<Option<Operand>>,
    guards: Vec<Guard>,
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Defines an entry for whole blocks and returns its address. `is_tied`: its threads call the
    /// device, so vectorising the rest does not pay.
    pub(super) fn define_blocks(
        &self,
        kernel: KernelId,
        kind: &str,
        is_tied: bool,
    ) -> Result<PointerValue<'ctx>> {
        let kernel = self.ir.kernel(kernel);
        let value = self.declare_cpu_entry(&kernel.name, kind)?;
        if kind == BLOCKS_V3 {
            let level = self.context.create_string_attribute("target-cpu", abi::LEVEL_V3);
            value.add_attribute(AttributeLoc::Function, level);
        }
        let entry = self.context.append_basic_block(value, "entry");
        let mut emitter = FunctionEmitter::new(self, kernel.entry, value, vec![entry]);
        emitter.enter_function()?;
        self.builder.position_at_end(entry);
        let geometry = emitter.geometry_argument()?;
        emitter.parameters = emitter.load_parameters()?;
        let callee = self.functions.get(kernel.body.index());
        let body = self.ir.function(kernel.body);
        let row = Row {
            id: kernel.body,
            body,
            callee: *callee.ok_or_else(|| bug("a missing body"))?,
            stored: stored_once(body),
            guards: if is_tied { Vec::new() } else { guards(self.ir, body) },
        };
        emitter.each_block(geometry, &|emitter, geometry| {
            let [width, height, depth] = emitter.lanes_of(geometry, BLOCK_DIM)?;
            let zero = self.int_type(32).const_zero();
            emitter.count("z", zero, depth, &|emitter, z| {
                emitter.count("y", zero, height, &|emitter, y| {
                    emitter.row(&row, width, &|emitter, x| {
                        emitter.with_field(geometry, THREAD_IDX, [x, y, z])
                    })
                })
            })
        })?;
        self.builder.build_return(None)?;
        Ok(value.as_global_value().as_pointer_value())
    }
}

/// Computes the geometry of a thread of a row.
type Geometry<'e, 'a, 'ctx, 'ir> =
    &'e dyn Fn(&FunctionEmitter<'a, 'ctx, 'ir>, IntValue<'ctx>) -> Result<BasicValueEnum<'ctx>>;

impl<'a, 'ctx, 'ir> FunctionEmitter<'a, 'ctx, 'ir> {
    /// The three lanes of a geometry field.
    fn lanes_of(&self, geometry: BasicValueEnum<'ctx>, field: u32) -> Result<[IntValue<'ctx>; 3]> {
        let dim3 = self.part_of(geometry, &Type::GEOMETRY, field, "")?;
        let lane = |axis| int(self.part_of(dim3, &Type::DIM3, axis, "")?);
        Ok([lane(0)?, lane(1)?, lane(2)?])
    }

    /// The geometry with one field replaced.
    fn with_field(
        &self,
        geometry: BasicValueEnum<'ctx>,
        field: u32,
        lanes: [IntValue<'ctx>; 3],
    ) -> Result<BasicValueEnum<'ctx>> {
        let dim3 = self.aggregate(&lanes.map(Into::into), &Type::DIM3)?;
        self.insert(geometry, dim3, u64::from(field), "geometry")
    }

    /// Calls `inner` with the geometry of each block, starting with the block in the given
    /// geometry.
    fn each_block(
        &self,
        geometry: BasicValueEnum<'ctx>,
        inner: &dyn Fn(&Self, BasicValueEnum<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let build = self.build();
        let (word, wide) = (self.cx.int_type(32), self.cx.int_type(64));
        let blocks = self.value.get_nth_param(2).ok_or_else(|| bug("no number of blocks"))?;
        let first = self.lanes_of(geometry, BLOCK_IDX)?;
        let [width, height, _] = self.lanes_of(geometry, GRID_DIM)?;
        let indices = [
            build.build_alloca(word, "block.x")?,
            build.build_alloca(word, "block.y")?,
            build.build_alloca(word, "block.z")?,
        ];
        for (index, first) in indices.iter().zip(first) {
            build.build_store(*index, first)?;
        }
        let shown = pointer(self.value.get_first_param().ok_or_else(|| bug("no geometry"))?)?;
        let (_, field) = self.cx.part(&Type::GEOMETRY, u64::from(BLOCK_IDX))?;
        self.count("block", wide.const_zero(), int(blocks)?, &|emitter, _| {
            let mut at = first;
            for (axis, index) in indices.iter().enumerate() {
                at[axis] = int(build.build_load(word, *index, "")?)?;
                // The device reads the block from here when it reports a fault.
                let (_, lane) = emitter.cx.part(&Type::DIM3, axis as u64)?;
                let store =
                    build.build_store(emitter.offset(shown, field + lane, "")?, at[axis])?;
                let set = store.set_volatile(true);
                set.map_err(|error| bug(format!("a volatile store: {error}")))?;
            }
            inner(emitter, emitter.with_field(geometry, BLOCK_IDX, at)?)?;
            let mut carry = word.const_int(1, false);
            for (axis, extent) in [Some(width), Some(height), None].into_iter().enumerate() {
                let mut next = build.build_int_add(at[axis], carry, "")?;
                if let Some(extent) = extent {
                    let is_over = build.build_int_compare(IntPredicate::EQ, next, extent, "")?;
                    let zero = word.const_zero();
                    next = int(build.build_select(is_over, zero, next, "")?)?;
                    carry = build.build_int_z_extend(is_over, word, "")?;
                }
                build.build_store(indices[axis], next)?;
            }
            Ok(())
        })
    }

    /// Calls `inner` with each number from `first` up to, but not including, `end`.
    fn count(
        &self,
        name: &str,
        first: IntValue<'ctx>,
        end: IntValue<'ctx>,
        inner: &dyn Fn(&Self, IntValue<'ctx>) -> Result<()>,
    ) -> Result<()> {
        let build = self.build();
        let here = || build.get_insert_block().ok_or_else(|| bug("no block to emit into"));
        let before = here()?;
        let [head, body, after] = ["head", "body", "end"]
            .map(|part| self.cx.context.append_basic_block(self.value, &format!("{name}.{part}")));
        build.build_unconditional_branch(head)?;
        build.position_at_end(head);
        let phi = build.build_phi(end.get_type(), name)?;
        phi.add_incoming(&[(&first, before)]);
        let at = int(phi.as_basic_value())?;
        let is_inside = build.build_int_compare(IntPredicate::ULT, at, end, "")?;
        build.build_conditional_branch(is_inside, body, after)?;
        build.position_at_end(body);
        inner(self, at)?;
        // Cannot wrap: it was below `end`.
        let next = build.build_int_nuw_add(at, end.get_type().const_int(1, false), "")?;
        phi.add_incoming(&[(&next, here()?)]);
        build.build_unconditional_branch(head)?;
        build.position_at_end(after);
        Ok(())
    }

    /// Runs a row: in a loop without guards if all threads pass them, else in a loop with them.
    fn row(
        &self,
        row: &Row<'a, 'ctx>,
        threads: IntValue<'ctx>,
        geometry: Geometry<'_, 'a, 'ctx, 'ir>,
    ) -> Result<()> {
        let zero = self.cx.int_type(32).const_zero();
        let call = |emitter: &Self, x| {
            let geometry = geometry(emitter, x)?;
            let arguments = [vec![geometry], emitter.parameters.clone()].concat();
            emitter.call(row.callee, arguments, &Type::Unit, "").map(|_| ())
        };
        if row.guards.is_empty() {
            return self.count("x", zero, threads, &call);
        }
        let build = self.build();
        let pass = self.all_pass(row, threads, geometry)?;
        let [all, some, end] = ["row.all", "row.some", "row.end"]
            .map(|name| self.cx.context.append_basic_block(self.value, name));
        build.build_conditional_branch(pass, all, some)?;
        build.position_at_end(all);
        self.count("x", zero, threads, &|emitter, x| {
            let thread = emitter.at_guards(row, geometry(emitter, x)?)?;
            for guard in &row.guards {
                let passes = thread.passes(guard)?;
                let ty = passes.get_type().into();
                let assume = emitter.cx.declare("llvm.assume", None, &[ty])?;
                emitter.emit_call(assume, &[passes.into()], "")?;
            }
            call(emitter, x)
        })?;
        build.build_unconditional_branch(end)?;
        build.position_at_end(some);
        self.count("x", zero, threads, &call)?;
        build.build_unconditional_branch(end)?;
        build.position_at_end(end);
        Ok(())
    }

    /// Whether all threads of a row pass the guards, decided conservatively: the first and the last
    /// thread pass, and no compared value wraps between them.
    fn all_pass(
        &self,
        row: &Row<'a, 'ctx>,
        threads: IntValue<'ctx>,
        geometry: Geometry<'_, 'a, 'ctx, 'ir>,
    ) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let word = self.cx.int_type(32);
        let last = build.build_int_sub(threads, word.const_int(1, false), "last")?;
        let ends = [
            self.at_guards(row, geometry(self, word.const_zero())?)?,
            self.at_guards(row, geometry(self, last)?)?,
        ];
        let mut all = self.cx.context.bool_type().const_all_ones();
        let mut seen: Vec<InstId> = Vec::new();
        for guard in &row.guards {
            for &(id, rises) in &guard.steps {
                if !seen.contains(&id) {
                    seen.push(id);
                    let [first, last] =
                        [&ends[0], &ends[1]].map(|end| end.integer(&Operand::Inst(id)));
                    let (low, high) = if rises { (first?, last?) } else { (last?, first?) };
                    let is_below = build.build_int_compare(self.less(row, id), high, low, "")?;
                    all = build.build_and(all, build.build_not(is_below, "")?, "")?;
                }
            }
            for end in &ends {
                all = build.build_and(all, end.passes(guard)?, "")?;
            }
            if guard.is_equality {
                // Both ends are on the same side.
                let (stepping, fixed) = &guard.compared;
                let Operand::Inst(id) = stepping else { return Err(bug("a step of no value")) };
                let less = self.less(row, *id);
                let fixed = ends[0].integer(fixed)?;
                let [first, last] = [&ends[0], &ends[1]].map(|end| {
                    Ok::<_, Error>(build.build_int_compare(
                        less,
                        end.integer(stepping)?,
                        fixed,
                        "",
                    )?)
                });
                let same = build.build_int_compare(IntPredicate::EQ, first?, last?, "")?;
                all = build.build_and(all, same, "")?;
            }
        }
        Ok(all)
    }

    /// The signed or unsigned less-than predicate for an instruction of the body.
    fn less(&self, row: &Row<'a, 'ctx>, id: InstId) -> IntPredicate {
        let ty = row.body.instructions[id.index()].ty.as_scalar();
        if ty.is_some_and(Scalar::is_signed) { IntPredicate::SLT } else { IntPredicate::ULT }
    }

    /// Computes the values that the guards compare, for a thread with that geometry.
    fn at_guards(
        &self,
        row: &Row<'a, 'ctx>,
        geometry: BasicValueEnum<'ctx>,
    ) -> Result<FunctionEmitter<'a, 'ctx, 'ir>> {
        let entry = self.value.get_first_basic_block().ok_or_else(|| bug("no entry"))?;
        let mut thread = FunctionEmitter::new(self.cx, row.id, self.value, vec![entry]);
        thread.parameters = [vec![geometry], self.parameters.clone()].concat();
        for &id in row.guards.iter().flat_map(|guard| &guard.needs) {
            if thread.values[id.index()].is_some() {
                continue;
            }
            let value = match &row.body.instructions[id.index()].kind {
                InstKind::Load(Operand::Slot(slot)) => {
                    let stored = row.stored.get(slot.index()).and_then(Option::as_ref);
                    Some(thread.operand(stored.ok_or_else(|| bug("a slot with several values"))?)?)
                }
                _ => thread.emit_instruction(id)?,
            };
            thread.values[id.index()] = value;
        }
        Ok(thread)
    }

    fn integer(&self, operand: &Operand) -> Result<IntValue<'ctx>> {
        int(self.operand(operand)?)
    }

    /// Whether a guard lets the thread with these values do work.
    fn passes(&self, guard: &Guard) -> Result<IntValue<'ctx>> {
        let condition = self.integer(&Operand::Inst(guard.condition))?;
        Ok(if guard.expected { condition } else { self.build().build_not(condition, "")? })
    }
}
