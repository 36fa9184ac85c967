//! State shared by the functions of a module: the LLVM module, types, symbols and declared
//! functions.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::{TargetData, TargetTriple};
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType, StructType};
use inkwell::values::{FunctionValue, PointerValue};

use super::cpu::CpuTarget;
use super::debug::Debug;
use super::{GpuModuleOptions, OWN_DATA_LAYOUT, TRIPLE, bug};
use crate::error::{Error, Result};
use gridlet_lang::ir::{self, graph::functions_with_loops, read_only::read_only_loads};
use gridlet_lang::launch::resident::PointerSpaces;
use gridlet_lang::launch::{self, DeviceFunction};
use gridlet_lang::types::StructId;

/// The LLVM module under construction, and the tables that refer into it.
pub(super) struct ModuleContext<'ctx, 'ir> {
    pub(super) context: &'ctx Context,
    pub(super) ir: &'ir ir::Module,
    pub(super) module: Module<'ctx>,
    pub(super) builder: Builder<'ctx>,
    /// The carrier types made so far.
    pub(super) structs: RefCell<BTreeMap<StructId, StructType<'ctx>>>,
    /// Generic addresses, indexed by `ir::GlobalId`.
    pub(super) globals: Vec<PointerValue<'ctx>>,
    /// Indexed by `ir::FunctionId`.
    pub(super) functions: Vec<FunctionValue<'ctx>>,
    /// Indexed by `ir::ExternId`.
    pub(super) externs: Vec<FunctionValue<'ctx>>,
    /// Functions of CUDA, libdevice and LLVM that the module calls, by name.
    declared: RefCell<BTreeMap<String, FunctionValue<'ctx>>>,
    /// Generic address of the block's dynamic shared memory, if the module uses it.
    pub(super) dynamic_shared: Option<PointerValue<'ctx>>,
    /// The debug information, if the module has any.
    pub(super) debug: Option<Debug<'ctx>>,
    /// Computed on first use.
    spaces: OnceCell<PointerSpaces>,
    /// By function, whether it has a loop, or one that it calls; computed on first use.
    has_loops: OnceCell<Vec<bool>>,
    /// See [`read_only_loads`]; computed on first use.
    read_only_loads: OnceCell<Vec<Vec<bool>>>,
    /// The target.
    pub(super) target: Target<'ctx>,
}

/// The target of a module.
pub(super) enum Target<'ctx> {
    /// A GPU, through libNVVM or LLVM's NVPTX back end.
    Nvptx(GpuModuleOptions),
    /// The CPU device on the machine that the compiler runs on.
    Cpu(Box<CpuTarget<'ctx>>),
}

impl<'ctx, 'ir> ModuleContext<'ctx, 'ir> {
    /// An empty module, named after the first source file without its folder: a full path would
    /// make the output depend on the source's location.
    pub(super) fn new(
        context: &'ctx Context,
        ir: &'ir ir::Module,
        options: GpuModuleOptions,
    ) -> Result<Self> {
        let source = ir.sources.files().first().map_or("module", |file| file.name.as_str());
        let name = source.rsplit(['/', '\\']).next().unwrap_or(source);
        let module = context.create_module(name);
        module.set_source_file_name(name);
        module.set_triple(&TargetTriple::create(TRIPLE));
        module.set_data_layout(&TargetData::create(OWN_DATA_LAYOUT).get_data_layout());
        Ok(ModuleContext {
            context,
            ir,
            module,
            builder: context.create_builder(),
            structs: RefCell::default(),
            globals: Vec::new(),
            functions: Vec::new(),
            externs: Vec::new(),
            declared: RefCell::default(),
            dynamic_shared: None,
            debug: None,
            spaces: OnceCell::new(),
            has_loops: OnceCell::new(),
            read_only_loads: OnceCell::new(),
            target: Target::Nvptx(options),
        })
    }

    /// The CPU-specific state, if the module is for the CPU.
    pub(super) fn cpu(&self) -> Option<&CpuTarget<'ctx>> {
        match &self.target {
            Target::Nvptx(_) => None,
            Target::Cpu(cpu) => Some(cpu),
        }
    }

    /// Whether the GPU converts to `bf16` and has fused multiply-adds of it (PTX ISA, "cvt", "fma").
    pub(super) fn has_bf16(&self) -> bool {
        matches!(&self.target, Target::Nvptx(options) if options.arch.has_bf16())
    }

    /// Whether libdevice's function of `f32` is replaced by its approximation.
    pub(super) fn is_fast_function(&self, name: &str) -> bool {
        const FAST: [&str; 8] = ["sin", "cos", "tan", "exp", "log", "log2", "log10", "pow"];
        let Target::Nvptx(options) = &self.target else { return false };
        options.fast_math && (FAST.contains(&name) || name == "tanh" && options.arch.has_tanh())
    }

    /// Whether operations on `f32` may be approximate.
    pub(super) fn is_fast_math(&self) -> bool {
        matches!(&self.target, Target::Nvptx(options) if options.fast_math)
    }

    /// Whether the GPU converts to two narrow floats at once, and computes with them.
    pub(super) fn has_packed_floats(&self) -> bool {
        self.has_bf16()
    }

    /// Whether a pointer of a function certainly points to global memory.
    pub(super) fn is_global(&self, function: ir::FunctionId, pointer: &ir::Operand) -> bool {
        self.spaces().is_global(self.ir, function, pointer)
    }

    /// Whether a pointer certainly points to the shared memory of the block.
    pub(super) fn is_shared(&self, function: ir::FunctionId, pointer: &ir::Operand) -> bool {
        self.spaces().is_shared(self.ir, function, pointer)
    }

    fn spaces(&self) -> &PointerSpaces {
        self.spaces.get_or_init(|| PointerSpaces::of(self.ir))
    }

    /// Whether a function has a loop, or one that it calls.
    pub(super) fn has_loops(&self, function: ir::FunctionId) -> bool {
        let all = self.has_loops.get_or_init(|| functions_with_loops(self.ir));
        all.get(function.index()).is_some_and(|has_loops| *has_loops)
    }

    /// Whether a load on a GPU reads a `static` variable that nothing writes meanwhile.
    pub(super) fn is_read_only_load(&self, function: ir::FunctionId, load: ir::InstId) -> bool {
        if self.cpu().is_some() {
            return false;
        }
        let loads = self.read_only_loads.get_or_init(|| read_only_loads(self.ir));
        loads.get(function.index()).is_some_and(|loads| loads[load.index()])
    }

    /// A function that the device provides; `None` for those of other modules.
    pub(super) fn device_function(&self, id: ir::ExternId) -> Option<DeviceFunction> {
        let item = self.ir.externs.get(id.index())?;
        if item.span.is_some() { None } else { launch::device_function(&item.name) }
    }

    /// A function type; without a result type it returns nothing.
    pub(super) fn function_type(
        &self,
        result: Option<BasicTypeEnum<'ctx>>,
        parameters: &[BasicTypeEnum<'ctx>],
    ) -> FunctionType<'ctx> {
        let parameters: Vec<BasicMetadataTypeEnum<'ctx>> =
            parameters.iter().map(|&ty| ty.into()).collect();
        match result {
            Some(result) => result.fn_type(&parameters, false),
            None => self.context.void_type().fn_type(&parameters, false),
        }
    }

    /// The function of CUDA, libdevice or LLVM called `name`, declared on first use.
    pub(super) fn declare(
        &self,
        name: &str,
        result: Option<BasicTypeEnum<'ctx>>,
        parameters: &[BasicTypeEnum<'ctx>],
    ) -> Result<FunctionValue<'ctx>> {
        if let Some(&known) = self.declared.borrow().get(name) {
            return Ok(known);
        }
        if self.cpu().is_some() && name.starts_with("llvm.nvvm.") {
            return Err(Error::Invalid(format!("the CPU device does not implement `{name}` yet")));
        }
        let ty = self.function_type(result, parameters);
        // The program may declare a C function itself.
        let own = self.module.get_function(name).filter(|known| known.get_type() == ty);
        let function = own.map_or_else(|| self.add_function(name, ty), Ok)?;
        self.declared.borrow_mut().insert(name.into(), function);
        Ok(function)
    }

    /// Adds a function whose symbol must be `name`.
    pub(super) fn add_function(
        &self,
        name: &str,
        ty: FunctionType<'ctx>,
    ) -> Result<FunctionValue<'ctx>> {
        if self.module.get_function(name).is_some() || self.module.get_global(name).is_some() {
            return Err(Error::Invalid(format!(
                "the program declares `{name}` with other types than the function of that name that a \
                 built-in calls; rename yours"
            )));
        }
        let function = self.module.add_function(name, ty, None);
        // Any function may contain a barrier. LLVM drops `convergent` where it is unnecessary. The
        // CPU device runs threads separately, so there it would only hinder optimisation.
        if self.cpu().is_none() {
            self.add_attribute(function, AttributeLoc::Function, "convergent", 0);
        }
        // Nothing unwinds: a trap ends the grid.
        self.add_attribute(function, AttributeLoc::Function, "nounwind", 0);
        Ok(function)
    }

    /// Adds an attribute by its LLVM name.
    pub(super) fn add_attribute(
        &self,
        function: FunctionValue<'ctx>,
        place: AttributeLoc,
        name: &str,
        value: u64,
    ) {
        let kind = Attribute::get_named_enum_kind_id(name);
        function.add_attribute(place, self.context.create_enum_attribute(kind, value));
    }

    /// Adds the module's metadata, and verifies the module.
    pub(super) fn finish(self) -> Result<Module<'ctx>> {
        match &self.target {
            Target::Nvptx(_) => self.finish_nvptx()?,
            Target::Cpu(_) => {}
        }
        self.describe_globals()?;
        if let Some(debug) = &self.debug {
            debug.finish();
        }
        match self.module.verify() {
            Ok(()) => Ok(self.module),
            Err(message) => Err(bug(format!("LLVM's verifier: {}", message.to_string()))),
        }
    }

    fn finish_nvptx(&self) -> Result<()> {
        strip_intrinsic_attributes(&self.module);
        if matches!(&self.target, Target::Nvptx(options) if !options.version) {
            return Ok(());
        }
        let number = |value: u64| self.int_type(32).const_int(value, false).into();
        let mut version = vec![number(2), number(0)];
        if self.debug.is_some() {
            // The version of the debug information in the modern dialect, as `nvvmIRVersion` gives it.
            version.extend([number(3), number(2)]);
        }
        let version = self.context.metadata_node(&version);
        self.module
            .add_global_metadata("nvvmir.version", &version)
            .map_err(|error| bug(format!("nvvmir.version: {error}")))
    }
}

/// Removes LLVM's own attributes from declarations of intrinsics. Many are newer than the consumers of the text, and every
/// consumer adds its own again.
pub(super) fn strip_intrinsic_attributes(module: &Module<'_>) {
    let intrinsics = module
        .get_functions()
        .filter(|function| function.get_name().to_bytes().starts_with(b"llvm."));
    for function in intrinsics {
        let places = [AttributeLoc::Function, AttributeLoc::Return]
            .into_iter()
            .chain((0..function.count_params()).map(AttributeLoc::Param));
        for place in places {
            for kind in 1..=Attribute::get_last_enum_kind_id() {
                function.remove_enum_attribute(place, kind);
            }
        }
    }
}
