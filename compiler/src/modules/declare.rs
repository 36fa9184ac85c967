//! Kernels and thread indices for modules that are built through inkwell.

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::module::Module;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue};

use super::kernels;
use super::launch::{building, mark_kernel, yours};
use crate::error::Result;

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
/// [`crate::Error::Invalid`] if PTX cannot spell the name, or the module has a function or variable of that name.
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
    let context = module.get_context();
    let function = module.add_function(name, context.void_type().fn_type(parameters, false), None);
    mark_kernel(function);
    let entry = context.append_basic_block(function, "entry");
    builder.position_at_end(entry);
    builder.unset_current_debug_location();
    Ok(NewKernel { function, entry, parameters: function.get_param_iter().collect() })
}

/// Emits the index of the thread in its grid along an axis, 0, 1 or 2: an `i32`.
///
/// # Errors
/// [`crate::Error::Invalid`] if there is no such axis, or the builder has no position.
pub fn thread_index<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    axis: u32,
) -> Result<IntValue<'ctx>> {
    let axis = ["x", "y", "z"].get(axis as usize);
    let axis = axis.ok_or_else(|| yours("an axis is 0, 1 or 2"))?;
    let word = module.get_context().i32_type();
    let register = |name: &str| {
        let name = format!("llvm.nvvm.read.ptx.sreg.{name}.{axis}");
        let function = module.get_function(&name);
        let function =
            function.unwrap_or_else(|| module.add_function(&name, word.fn_type(&[], false), None));
        let call = builder.build_call(function, &[], "")?;
        Ok::<_, BuilderError>(call.try_as_basic_value().unwrap_basic().into_int_value())
    };
    let emit = || {
        let first = builder.build_int_mul(register("ctaid")?, register("ntid")?, "first")?;
        builder.build_int_add(first, register("tid")?, "index")
    };
    emit().map_err(building)
}
