//! PTX in assembly for `llvm.nvvm.*` intrinsics that libNVVM would call as unknown functions.

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, BasicTypeEnum};
use inkwell::values::{
    AnyValue as _, AnyValueEnum, BasicMetadataValueEnum, BasicValueEnum, FunctionValue,
    InstructionValue,
};

use super::build::{bug, calls_of, replace};
use crate::error::Result;

/// The side effects of a piece of assembly.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Pure,
    /// Its result depends on when it runs, or on which threads run it.
    Bound,
    /// It also orders memory accesses.
    Memory,
}
use Effect::{Bound, Memory, Pure};

/// PTX for intrinsics, by the names behind `llvm.nvvm.`: `$0` is the result, if there is one, followed by the operands.
const ASSEMBLY: [(&str, &str, Effect); 54] = [
    ("activemask", "activemask.b32 $0;", Bound),
    ("barrier.cluster.arrive", "barrier.cluster.arrive;", Memory),
    ("barrier.cluster.arrive.aligned", "barrier.cluster.arrive.aligned;", Memory),
    ("barrier.cluster.arrive.relaxed", "barrier.cluster.arrive.relaxed;", Memory),
    ("barrier.cluster.arrive.relaxed.aligned", "barrier.cluster.arrive.relaxed.aligned;", Memory),
    ("barrier.cluster.wait", "barrier.cluster.wait;", Memory),
    ("barrier.cluster.wait.aligned", "barrier.cluster.wait.aligned;", Memory),
    ("barrier.cta.arrive.aligned.count", "barrier.arrive.aligned $0, $1;", Memory),
    ("barrier.cta.arrive.count", "barrier.arrive $0, $1;", Memory),
    ("barrier.cta.sync.aligned.count", "barrier.sync.aligned $0, $1;", Memory),
    ("div.full", "div.full.f32 $0, $1, $2;", Pure),
    ("div.full.ftz", "div.full.ftz.f32 $0, $1, $2;", Pure),
    ("fence.mbarrier_init.release.cluster", "fence.mbarrier_init.release.cluster;", Memory),
    ("fence.proxy.alias", "fence.proxy.alias;", Memory),
    ("fence.proxy.async", "fence.proxy.async;", Memory),
    ("fence.sc.cluster", "fence.sc.cluster;", Memory),
    ("fshl.clamp", "shf.l.clamp.b32 $0, $2, $1, $3;", Pure),
    ("fshr.clamp", "shf.r.clamp.b32 $0, $2, $1, $3;", Pure),
    ("griddepcontrol.launch.dependents", "griddepcontrol.launch_dependents;", Memory),
    ("griddepcontrol.wait", "griddepcontrol.wait;", Memory),
    ("idp4a.s.s", "dp4a.s32.s32 $0, $1, $2, $3;", Pure),
    ("idp4a.s.u", "dp4a.s32.u32 $0, $1, $2, $3;", Pure),
    ("idp4a.u.s", "dp4a.u32.s32 $0, $1, $2, $3;", Pure),
    ("idp4a.u.u", "dp4a.u32.u32 $0, $1, $2, $3;", Pure),
    ("nanosleep", "nanosleep.u32 $0;", Bound),
    ("rcp.approx.ftz.f", "rcp.approx.ftz.f32 $0, $1;", Pure),
    ("read.ptx.sreg.aggr_smem_size", "mov.u32 $0, %aggr_smem_size;", Pure),
    ("read.ptx.sreg.cluster.ctaid.x", "mov.u32 $0, %cluster_ctaid.x;", Pure),
    ("read.ptx.sreg.cluster.ctaid.y", "mov.u32 $0, %cluster_ctaid.y;", Pure),
    ("read.ptx.sreg.cluster.ctaid.z", "mov.u32 $0, %cluster_ctaid.z;", Pure),
    ("read.ptx.sreg.cluster.ctarank", "mov.u32 $0, %cluster_ctarank;", Pure),
    ("read.ptx.sreg.cluster.nctaid.x", "mov.u32 $0, %cluster_nctaid.x;", Pure),
    ("read.ptx.sreg.cluster.nctaid.y", "mov.u32 $0, %cluster_nctaid.y;", Pure),
    ("read.ptx.sreg.cluster.nctaid.z", "mov.u32 $0, %cluster_nctaid.z;", Pure),
    ("read.ptx.sreg.cluster.nctarank", "mov.u32 $0, %cluster_nctarank;", Pure),
    ("read.ptx.sreg.clusterid.x", "mov.u32 $0, %clusterid.x;", Pure),
    ("read.ptx.sreg.clusterid.y", "mov.u32 $0, %clusterid.y;", Pure),
    ("read.ptx.sreg.clusterid.z", "mov.u32 $0, %clusterid.z;", Pure),
    ("read.ptx.sreg.dynamic_smem_size", "mov.u32 $0, %dynamic_smem_size;", Pure),
    ("read.ptx.sreg.globaltimer", "mov.u64 $0, %globaltimer;", Bound),
    ("read.ptx.sreg.globaltimer.lo", "mov.u32 $0, %globaltimer_lo;", Bound),
    ("read.ptx.sreg.nclusterid.x", "mov.u32 $0, %nclusterid.x;", Pure),
    ("read.ptx.sreg.nclusterid.y", "mov.u32 $0, %nclusterid.y;", Pure),
    ("read.ptx.sreg.nclusterid.z", "mov.u32 $0, %nclusterid.z;", Pure),
    ("read.ptx.sreg.total_smem_size", "mov.u32 $0, %total_smem_size;", Pure),
    ("redux.sync.add", "redux.sync.add.s32 $0, $1, $2;", Bound),
    ("redux.sync.and", "redux.sync.and.b32 $0, $1, $2;", Bound),
    ("redux.sync.max", "redux.sync.max.s32 $0, $1, $2;", Bound),
    ("redux.sync.min", "redux.sync.min.s32 $0, $1, $2;", Bound),
    ("redux.sync.or", "redux.sync.or.b32 $0, $1, $2;", Bound),
    ("redux.sync.umax", "redux.sync.max.u32 $0, $1, $2;", Bound),
    ("redux.sync.umin", "redux.sync.min.u32 $0, $1, $2;", Bound),
    ("redux.sync.xor", "redux.sync.xor.b32 $0, $1, $2;", Bound),
    ("rsqrt.approx.ftz.d", "rsqrt.approx.ftz.f64 $0, $1;", Pure),
];

/// The PTX of an intrinsic, by its name behind `llvm.nvvm.`.
pub(super) fn of(name: &str) -> Option<(String, Effect)> {
    let known = ASSEMBLY.iter().find(|(known, ..)| *known == name);
    known.map(|(_, ptx, effect)| ((*ptx).to_owned(), *effect)).or_else(|| reduction(name))
}

/// The PTX of a barrier that combines predicates, `llvm.nvvm.barrier.cta.red.*`.
fn reduction(name: &str) -> Option<(String, Effect)> {
    let parts: Vec<&str> = name.strip_prefix("barrier.cta.red.")?.split('.').collect();
    let (operation, aligned, counted) = match parts[..] {
        [operation, "aligned", all] => (operation, ".aligned", all == "count"),
        [operation, all] => (operation, "", all == "count"),
        _ => return None,
    };
    let (threads, predicate) = if counted { (", $2", "$3") } else { ("", "$2") };
    let (ty, result, after) = match operation {
        "popc" => ("u32", "$0", ""),
        _ => ("pred", "q", " selp.u32 $0, 1, 0, q;"),
    };
    let ptx = format!(
        "{{ .reg .pred p, q; setp.ne.u32 p, {predicate}, 0; \
         barrier.red.{operation}{aligned}.{ty} {result}, $1{threads}, p;{after} }}"
    );
    Some((ptx, Memory))
}

/// How the names of intrinsics start that libNVVM 13.0 lacks in the modern dialect, behind `llvm.nvvm.`.
const MODERN_LACKS: [&str; 10] = [
    "activemask",
    "barrier.cta.arrive.",
    "barrier.cta.red.",
    "barrier.cta.sync.aligned.count",
    "fence.mbarrier_init.",
    "fence.proxy.a",
    "nanosleep",
    "read.ptx.sreg.aggr_smem_size",
    "read.ptx.sreg.dynamic_smem_size",
    "read.ptx.sreg.total_smem_size",
];

/// The PTX of an intrinsic that libNVVM lacks in the modern dialect.
fn of_modern(function: FunctionValue<'_>) -> Option<(String, Effect)> {
    let symbol = function.get_name().to_string_lossy();
    let name = symbol.strip_prefix("llvm.nvvm.")?;
    let lacks = MODERN_LACKS.iter().any(|known| name.starts_with(known));
    if lacks || name == "read.ptx.sreg.globaltimer.lo" { of(name) } else { None }
}

/// Whether a module has intrinsics that [`write()`] replaces.
pub(super) fn is_needed(module: &Module<'_>) -> bool {
    module.get_functions().any(|function| of_modern(function).is_some())
}

/// Replaces the calls of intrinsics that libNVVM lacks in the modern dialect.
pub(super) fn write(module: &Module<'_>) -> Result<()> {
    let found = module.get_functions().filter_map(|one| Some((one, of_modern(one)?)));
    for (function, (ptx, effect)) in found.collect::<Vec<_>>() {
        for call in calls_of(function) {
            write_call(module, function, call, &ptx, effect)?;
        }
        // SAFETY: a declaration that nothing uses.
        unsafe { function.delete() };
    }
    Ok(())
}

/// Assembly in place of a call. It cannot take predicates as operands: an `i1` goes in as an `i32` that is 0 or 1, and comes out as one.
fn write_call<'ctx>(
    module: &Module<'ctx>,
    function: FunctionValue<'ctx>,
    call: InstructionValue<'ctx>,
    ptx: &str,
    effect: Effect,
) -> Result<()> {
    let (context, builder) = (module.get_context(), module.get_context().create_builder());
    builder.position_before(&call);
    let word = context.i32_type();
    let is_bit = |ty: BasicTypeEnum<'ctx>| ty == context.bool_type().into();
    let result = function.get_type().get_return_type();
    let mut constraints = vec![];
    if let Some(ty) = result {
        constraints.push(format!("={}", register(ty)));
    }
    let (mut arguments, mut types) = (vec![], vec![]);
    for at in 0..function.count_params() {
        let given = call.get_operand(at).and_then(|operand| operand.value()).ok_or_else(bug)?;
        let given: BasicValueEnum<'ctx> = match given {
            BasicValueEnum::IntValue(bit) if is_bit(given.get_type()) => {
                builder.build_int_z_extend(bit, word, "").map_err(|_| bug())?.into()
            }
            other => other,
        };
        constraints.push(register(given.get_type()).to_string());
        types.push(BasicMetadataTypeEnum::from(given.get_type()));
        arguments.push(BasicMetadataValueEnum::from(given));
    }
    if effect == Memory {
        constraints.push("~{memory}".to_owned());
    }
    let ty = match result {
        None => context.void_type().fn_type(&types, false),
        Some(ty) if is_bit(ty) => word.fn_type(&types, false),
        Some(BasicTypeEnum::IntType(ty)) => ty.fn_type(&types, false),
        Some(BasicTypeEnum::FloatType(ty)) => ty.fn_type(&types, false),
        Some(_) => return Err(bug()),
    };
    let text = constraints.join(",");
    let assembly =
        context.create_inline_asm(ty, ptx.to_owned(), text, effect != Pure, false, None, false);
    let made = builder.build_indirect_call(ty, assembly, &arguments, "").map_err(|_| bug())?;
    if effect != Pure {
        let convergent = Attribute::get_named_enum_kind_id("convergent");
        made.add_attribute(AttributeLoc::Function, context.create_enum_attribute(convergent, 0));
    }
    let value = match (result, made.as_any_value_enum()) {
        (Some(ty), AnyValueEnum::IntValue(number)) if is_bit(ty) => {
            let zero = word.const_zero();
            let ne = inkwell::IntPredicate::NE;
            Some(builder.build_int_compare(ne, number, zero, "").map_err(|_| bug())?.into())
        }
        (None, _) => None,
        (Some(_), value) => BasicValueEnum::try_from(value).ok(),
    };
    replace(call, value);
    Ok(())
}

/// The constraint letter of a type; pointers are generic.
fn register(ty: BasicTypeEnum<'_>) -> char {
    match ty {
        BasicTypeEnum::IntType(ty) if ty.get_bit_width() == 64 => 'l',
        BasicTypeEnum::IntType(ty) if ty.get_bit_width() == 16 => 'h',
        BasicTypeEnum::FloatType(ty) if ty.get_bit_width() == 64 => 'd',
        BasicTypeEnum::FloatType(_) => 'f',
        BasicTypeEnum::PointerType(ty) if ty.get_address_space() == AddressSpace::from(3) => 'r',
        BasicTypeEnum::PointerType(_) => 'l',
        _ => 'r',
    }
}
