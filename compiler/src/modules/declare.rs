//! Kernels and thread indices for modules that are built through inkwell.

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, FunctionType};
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue};

use super::kernels;
use super::launch::{building, mark_kernel, yours};
use crate::error::Result;
use crate::nvvm::legacy::llvm;

/// A kernel with an empty block.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewKernel<'ctx> {
    /// The function.
    pub function: FunctionValue<'ctx>,
    /// Its first block, which is empty.
    pub entry: BasicBlock<'ctx>,
    /// Its parameters.
    pub parameters: Vec<BasicValueEnum<'ctx>>,
}

/// Adds a kernel to a module, marked as one for both dialects, and puts the builder into its first block, without a debug location.
///
/// # Errors
/// [`crate::Error::Invalid`] if PTX cannot spell the name, the module has a function or variable of that name, or a parameter is
/// metadata.
pub fn new_kernel<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    name: &str,
    parameters: &[BasicMetadataTypeEnum<'ctx>],
) -> Result<NewKernel<'ctx>> {
    if let Some(problem) = kernels::wrong_name(name) {
        return Err(yours(problem));
    }
    if module.get_function(name).is_some() || module.get_global(name).is_some() {
        return Err(yours(format!("there are two `{name}`; a kernel needs a name of its own")));
    }
    let is_metadata = |ty: &BasicMetadataTypeEnum<'_>| ty.is_metadata_type();
    if let Some(at) = parameters.iter().position(is_metadata) {
        return Err(yours(format!(
            "kernel `{name}`: parameter {at} has LLVM's metadata type, which has no values at run time; give it another type"
        )));
    }
    let context = module.get_context();
    let function = module.add_function(name, context.void_type().fn_type(parameters, false), None);
    mark_kernel(function);
    let entry = context.append_basic_block(function, "entry");
    builder.position_at_end(entry);
    builder.unset_current_debug_location();
    Ok(NewKernel { function, entry, parameters: function.get_param_iter().collect() })
}

/// A function that code calls: its name, its type, and whose it is, for messages.
pub(super) type Callee<'ctx> = (String, FunctionType<'ctx>, &'static str);

/// The functions of these names and types. Those that the module lacks are declared, if all names are free.
///
/// # Errors
/// [`crate::Error::Invalid`] if a name means something else in the module, which is then left as it was.
pub(super) fn callees<'ctx, const N: usize>(
    module: &Module<'ctx>,
    wanted: [Callee<'ctx>; N],
) -> Result<[FunctionValue<'ctx>; N]> {
    let known = |(name, ty, _): &Callee<'ctx>| {
        module.get_function(name).filter(|known| known.get_type() == *ty)
    };
    for callee in wanted.iter().filter(|callee| known(callee).is_none()) {
        let (name, ty, whose) = callee;
        let ty = ty.print_to_string().to_string();
        free(module, name, &format!("{whose}, of the type `{ty}`"))?;
    }
    Ok(wanted.map(|callee| {
        known(&callee).unwrap_or_else(|| module.add_function(&callee.0, callee.1, None))
    }))
}

/// Checks that the module gives a name no meaning, because it is that of `what`.
pub(super) fn free(module: &Module<'_>, name: &str, what: &str) -> Result<()> {
    let view = llvm::Module::new(module);
    let found = [view.functions(), view.variables(), view.aliases(), view.resolvers()].concat();
    let found = found.into_iter().find(|known| kernels::name(*known) == name);
    let Some(found) = found else { return Ok(()) };
    let ty = found.value_type().print();
    Err(yours(format!(
        "the module has a `{name}` of the type `{ty}`, but the name is that of {what}; rename yours"
    )))
}

/// Emits the index of the thread in its grid along an axis, 0, 1 or 2: an `i32`.
///
/// # Errors
/// [`crate::Error::Invalid`] if there is no such axis, the builder has no position, or the module has LLVM's intrinsics with
/// another type.
pub fn thread_index<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    axis: u32,
) -> Result<IntValue<'ctx>> {
    let axis = ["x", "y", "z"].get(axis as usize);
    let axis = axis.ok_or_else(|| yours("an axis is 0, 1 or 2"))?;
    if builder.get_insert_block().is_none() {
        return Err(yours("the builder has no position for an index"));
    }
    let word = module.get_context().i32_type();
    let register = |name: &str| {
        let name = format!("llvm.nvvm.read.ptx.sreg.{name}.{axis}");
        (name, word.fn_type(&[], false), "an intrinsic of LLVM")
    };
    let registers = callees(module, ["ctaid", "ntid", "tid"].map(register))?;
    let read = |register| {
        let call = builder.build_call(register, &[], "")?;
        Ok::<_, BuilderError>(call.try_as_basic_value().unwrap_basic().into_int_value())
    };
    let index = || {
        let [block, threads, thread] = registers;
        let first = builder.build_int_mul(read(block)?, read(threads)?, "first")?;
        builder.build_int_add(first, read(thread)?, "index")
    };
    index().map_err(building)
}
