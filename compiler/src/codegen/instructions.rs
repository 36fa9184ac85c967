//! PTX instructions that the language lacks, and that the scheduler of resident launches calls like functions.

use inkwell::attributes::AttributeLoc;
use inkwell::module::Linkage;
use inkwell::values::{BasicMetadataValueEnum, FunctionValue};

use super::context::{ModuleContext, Target};
use super::{bug, values::result};
use crate::error::Result;
use gridlet_lang::ir::Extern;
use gridlet_lang::launch::resident::instructions::{
    ACQUIRE, ACQUIRE_BLOCK, BARRIER, FENCE_BLOCK, GLOBAL, RELEASE, RELEASE_BLOCK, SHARED, SLEEP,
    THREAD,
};

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Defines the function that stands for an instruction; `None` if `item` is no such function.
    pub(super) fn define_instruction(&self, item: &Extern) -> Result<Option<FunctionValue<'ctx>>> {
        // Older GPUs lack fences of one direction.
        let split =
            matches!(&self.target, Target::Nvptx(options) if options.arch.has_split_fences());
        let fence = |one, both| if split { one } else { both };
        // PTX ISA, "barrier", "fence", "nanosleep", "%tid".
        let (text, constraints) = match item.name.as_str() {
            BARRIER => ("barrier.sync.aligned $0, $1;", "r,r,~{memory}"),
            ACQUIRE => (fence("fence.acquire.gpu;", "fence.acq_rel.gpu;"), "~{memory}"),
            RELEASE => (fence("fence.release.gpu;", "fence.acq_rel.gpu;"), "~{memory}"),
            ACQUIRE_BLOCK => (fence("fence.acquire.cta;", "fence.acq_rel.cta;"), "~{memory}"),
            RELEASE_BLOCK => (fence("fence.release.cta;", "fence.acq_rel.cta;"), "~{memory}"),
            FENCE_BLOCK => ("fence.acq_rel.cta;", "~{memory}"),
            SLEEP => ("nanosleep.u32 $0;", "r,~{memory}"),
            THREAD => ("mov.u32 $0, %tid.x;", "=r"),
            SHARED | GLOBAL => ("", ""),
            _ => return Ok(None),
        };
        if self.cpu().is_some() {
            return Err(bug(format!("`{}` on the CPU", item.name)));
        }
        let word = self.int_type(32).into();
        let parameter = if item.name == GLOBAL { self.int_type(64).into() } else { word };
        let parameters = vec![parameter; item.parameters.len()];
        let of_result = match item.name.as_str() {
            THREAD => Some(word),
            SHARED | GLOBAL => Some(self.pointer_type().into()),
            _ => None,
        };
        let ty = self.function_type(of_result, &parameters);
        let function = self.add_function(&item.name, ty)?;
        function.set_linkage(Linkage::Internal);
        self.add_attribute(function, AttributeLoc::Function, "alwaysinline", 0);
        self.builder.position_at_end(self.context.append_basic_block(function, "entry"));
        if item.name == SHARED {
            let address = self.dynamic_shared.ok_or_else(|| bug("no dynamic shared memory"))?;
            self.builder.build_return(Some(&address))?;
            return Ok(Some(function));
        }
        if let (GLOBAL, Some(address)) = (item.name.as_str(), function.get_first_param()) {
            let generic = self.pointer_type();
            let pointer = self.builder.build_int_to_ptr(address.into_int_value(), generic, "")?;
            self.builder.build_return(Some(&pointer))?;
            return Ok(Some(function));
        }
        // Only the register can be read anywhere.
        let has_effect = item.name != THREAD;
        let assembly = self.context.create_inline_asm(
            ty,
            text.into(),
            constraints.into(),
            has_effect,
            false,
            None,
            false,
        );
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> =
            function.get_param_iter().map(|argument| argument.into()).collect();
        let call = self.builder.build_indirect_call(ty, assembly, &arguments, "")?;
        if has_effect {
            for name in ["convergent", "nounwind"] {
                let kind = inkwell::attributes::Attribute::get_named_enum_kind_id(name);
                let attribute = self.context.create_enum_attribute(kind, 0);
                call.add_attribute(AttributeLoc::Function, attribute);
            }
            self.builder.build_return(None)?;
        } else {
            self.builder.build_return(Some(&result(call)?))?;
        }
        Ok(Some(function))
    }
}
