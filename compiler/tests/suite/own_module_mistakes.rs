//! Mistakes of those who build modules through inkwell: each ends in an error that says what, where and what to do.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::time::Duration;

use gridlet::arch::{CudaArch, Dialect};
use gridlet::artifact;
use gridlet::compile::{BuildOptions, CpuOptions, Session, nvvm_text};
use gridlet::modules::{
    Launch, LaunchStream, Launches, NewKernel, Own, SourceLines, new_kernel, thread_index,
};
use gridlet::target::Target;
use gridlet_artifact::Artifact;
use gridlet_runtime::{CpuConfig, Device, LaunchConfig, Program};
use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicMetadataTypeEnum;

const TIME_OUT: Duration = Duration::from_secs(60);

/// A module with a kernel `child()`, and a kernel `parent()` in whose open block the builder is.
struct Kit<'ctx> {
    context: &'ctx Context,
    module: Module<'ctx>,
    builder: Builder<'ctx>,
    child: NewKernel<'ctx>,
    parent: NewKernel<'ctx>,
}

impl<'ctx> Kit<'ctx> {
    fn new(context: &'ctx Context) -> Self {
        let (module, builder) = (context.create_module("p.toy"), context.create_builder());
        let child = new_kernel(&module, &builder, "child", &[]).unwrap();
        builder.build_return(None).unwrap();
        let parent = new_kernel(&module, &builder, "parent", &[]).unwrap();
        Kit { context, module, builder, child, parent }
    }

    fn launch(&self) -> Launch<'ctx> {
        Launch::new(self.child.function, &[])
    }

    fn launches(&self) -> Launches<'_, 'ctx> {
        Launches::new(&self.module, CudaArch::DEFAULT)
    }

    fn end(&self) {
        self.builder.build_return(None).unwrap();
    }
}

/// The error of a lost launch, if `limit` launches fit into memory.
fn lost(bundle: &Artifact, limit: u64) -> String {
    // The first child must not run before the others are launched.
    let device = Device::open_cpu(CpuConfig { threads: Some(1), ..CpuConfig::default() }).unwrap();
    device.set_pending_launch_limit(limit).unwrap();
    let program = Program::load(&device, bundle).unwrap();
    let stream = device.stream().unwrap();
    let parent = program.kernel("parent").unwrap();
    stream.launch(&parent, &LaunchConfig::new(1, 1), &[]).unwrap();
    stream.synchronize(TIME_OUT).unwrap_err().to_string()
}

fn cpu_bundle(module: Module<'_>) -> Artifact {
    let own = Own::of(module).unwrap();
    own.check(CudaArch::DEFAULT).unwrap();
    let (cuda, cpu) = (BuildOptions::default(), CpuOptions::default());
    artifact::build_own(&Session::new(), &own, &[Target::Cpu], &cuda, &cpu).unwrap()
}

#[test]
fn names_that_launches_need_are_not_for_other_things() {
    let buffer = "cudaGetParameterBufferV2";
    let launch = "cudaLaunchDeviceV2";
    let record = "own.gridlet.record_lost_launch";
    type Take = for<'ctx> fn(&Kit<'ctx>, &str);
    let function: Take = |kit, name| {
        kit.module.add_function(name, kit.context.i32_type().fn_type(&[], false), None);
    };
    let variable: Take = |kit, name| {
        let word = kit.context.i32_type();
        kit.module.add_global(word, None, name).set_initializer(&word.const_zero());
    };
    let of_dim3: Take = |kit, name| {
        kit.context.opaque_struct_type(name).set_body(&[kit.context.i64_type().into()], false);
        let ty = kit.context.get_struct_type(name).unwrap();
        kit.module.add_global(ty, None, "g").set_initializer(&ty.const_zero());
    };
    let cases = [
        (buffer, function, "`cudaGetParameterBufferV2` of the type `i32 ()`"),
        (buffer, function, "of the type `ptr (ptr, %struct.dim3, %struct.dim3, i32)`; rename"),
        (buffer, variable, "`cudaGetParameterBufferV2` of the type `i32`"),
        (launch, function, "of the type `i32 (ptr, ptr)`; rename"),
        (launch, variable, "function of CUDA's device runtime"),
        (record, function, "function of Gridlet, of the type `void (i32, i32, i32)`; rename"),
        ("struct.dim3", of_dim3, "`struct.dim3` that is not `{ i32, i32, i32 }`"),
    ];
    for (name, take, wanted) in cases {
        let context = Context::create();
        let kit = Kit::new(&context);
        take(&kit, name);
        let before = kit.module.print_to_string().to_string();
        let error = kit.launches().emit(&kit.builder, &kit.launch().at("p.toy", 5)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("your module: p.toy:5: ") && error.contains(wanted), "{error}");
        assert_eq!(kit.module.print_to_string().to_string(), before, "{name}");
    }

    let context = Context::create();
    let kit = Kit::new(&context);
    variable(&kit, "__gridlet_lost_launches");
    let mut launches = kit.launches();
    launches.emit(&kit.builder, &kit.launch()).unwrap();
    let error = launches.finish().unwrap_err().to_string();
    assert!(error.contains("`__gridlet_lost_launches` of the type `i32`, but"), "{error}");
    // A declaration of the record itself, for code that reads it.
    let of_record = Context::create();
    let with_record = Kit::new(&of_record);
    let (words, global) = (of_record.i32_type().array_type(4), Some(AddressSpace::from(1)));
    with_record.module.add_global(words, global, "__gridlet_lost_launches");
    let mut launches = with_record.launches();
    launches.emit(&with_record.builder, &with_record.launch()).unwrap();
    launches.finish().unwrap();
    function(&kit, "llvm.nvvm.read.ptx.sreg.ctaid.y");
    thread_index(&kit.module, &kit.builder, 1).unwrap();
    variable(&kit, "llvm.nvvm.read.ptx.sreg.tid.x");
    let before = kit.module.print_to_string().to_string();
    let error = thread_index(&kit.module, &kit.builder, 0).unwrap_err().to_string();
    assert!(error.contains("an intrinsic of LLVM, of the type `i32 ()`; rename"), "{error}");
    assert_eq!(kit.module.print_to_string().to_string(), before);
}

#[test]
fn a_builder_in_another_module_is_refused() {
    let context = Context::create();
    let (kit, other) = (Kit::new(&context), Kit::new(&context));
    let launch = kit.launch().at("p.toy", 5);
    let error = kit.launches().emit(&other.builder, &launch).unwrap_err().to_string();
    insta::assert_snapshot!(error);
    let error = kit.launches().emit_try(&other.builder, &launch).unwrap_err().to_string();
    assert!(error.contains("another module"), "{error}");
    kit.launches().emit(&kit.builder, &launch).unwrap();
}

/// Nor one that is wrong in itself.
#[test]
fn a_launch_that_fails_leaves_the_module_as_it_was() {
    let context = Context::create();
    let kit = Kit::new(&context);
    let before = kit.module.print_to_string().to_string();
    let zero = context.i32_type().const_zero();
    for launch in [kit.launch().grid(&[zero]), kit.launch().at("", 5)] {
        kit.launches().emit(&kit.builder, &launch).unwrap_err();
        kit.launches().emit_try(&kit.builder, &launch).unwrap_err();
    }
    let nowhere = context.create_builder();
    kit.launches().emit(&nowhere, &kit.launch()).unwrap_err();
    thread_index(&kit.module, &nowhere, 0).unwrap_err();
    assert_eq!(kit.module.print_to_string().to_string(), before);
}

#[test]
fn kernels_have_names_and_parameters_that_tools_take() {
    let context = Context::create();
    let kit = Kit::new(&context);
    for name in ["_", "WARP_SZ", "A7"] {
        let error = new_kernel(&kit.module, &kit.builder, name, &[]).unwrap_err().to_string();
        let wanted = format!(
            "your module: PTX has a meaning of its own for the name of the kernel `{name}`"
        );
        assert!(error.starts_with(&wanted), "{error}");
    }
    let types: [BasicMetadataTypeEnum<'_>; 2] =
        [context.i32_type().into(), context.metadata_type().into()];
    let error = new_kernel(&kit.module, &kit.builder, "k", &types).unwrap_err().to_string();
    let wanted = "your module: kernel `k`: parameter 1 has LLVM's metadata type";
    assert!(error.starts_with(wanted), "{error}");
}

/// One `finish` is for all launches of the module, and the files keep their numbers.
#[test]
fn several_lists_of_launches_are_completed_once() {
    let context = Context::create();
    let kit = Kit::new(&context);
    let (mut first, mut second) = (kit.launches(), kit.launches());
    first.emit(&kit.builder, &kit.launch().at("a.toy", 3)).unwrap();
    second.emit(&kit.builder, &kit.launch().at("b.toy", 4)).unwrap();
    let tail = kit.launch().stream(LaunchStream::Tail);
    first.emit(&kit.builder, &tail.at("a.toy", 5)).unwrap();
    second.finish().unwrap();
    let error = first.emit(&kit.builder, &kit.launch().at("a.toy", 6)).unwrap_err().to_string();
    let wanted = "your module: a.toy:6: the launches of the module are complete";
    assert!(error.starts_with(wanted), "{error}");
    first.finish().unwrap();
    kit.launches().finish().unwrap();
    kit.end();
    let text = kit.module.print_to_string().to_string();
    assert!(text.contains("call void @own.gridlet.open_turns"), "{text}");
    let bundle = cpu_bundle(kit.module);
    assert!(lost(&bundle, 1).contains("b.toy:4"), "{}", lost(&bundle, 1));
    assert!(lost(&bundle, 2).contains("a.toy:5"), "{}", lost(&bundle, 2));
}

#[test]
fn the_handle_of_a_stream_is_a_generic_pointer() {
    let context = Context::create();
    let kit = Kit::new(&context);
    let handle = context.ptr_type(AddressSpace::from(1_u16)).const_null();
    let launch = kit.launch().stream(LaunchStream::Handle(handle));
    let error = kit.launches().emit(&kit.builder, &launch).unwrap_err().to_string();
    assert!(error.contains("that of this launch is a `ptr addrspace(1)`"), "{error}");
}

#[test]
fn positions_are_those_that_tools_take() {
    let context = Context::create();
    let kit = Kit::new(&context);
    for name in ["", "src/", "src/.", "..", "a\"b.toy", "a\0b.toy", "a\nb.toy"] {
        let wanted = format!("your module: {name:?} cannot be the name of a source file");
        let error = SourceLines::new(&kit.module, name).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(&wanted), "{error}");
        let launch = kit.launch().at(name, 5);
        let error = kit.launches().emit(&kit.builder, &launch).unwrap_err().to_string();
        assert!(error.starts_with(&wanted), "{error}");
    }
    let lines = SourceLines::new(&kit.module, "src/my file.toy").unwrap();
    for line in [0, 1_000_001, u32::MAX] {
        let wanted = format!("your module: there is no line {line}; lines count from 1");
        let error = lines.at(&kit.builder, line).unwrap_err().to_string();
        assert!(error.starts_with(&wanted), "{error}");
        let launch = kit.launch().at("p.toy", line);
        let error = kit.launches().emit(&kit.builder, &launch).unwrap_err().to_string();
        assert!(error.starts_with(&wanted), "{error}");
    }
    lines.at(&kit.builder, 1_000_000).unwrap();
}

/// Also of a function whose debug information the caller wrote.
#[test]
fn a_function_may_have_lines_of_several_files() {
    use inkwell::debug_info::{AsDIScope as _, DWARFEmissionKind, DWARFSourceLanguage};

    for is_callers in [false, true] {
        let context = Context::create();
        let kit = Kit::new(&context);
        let first = SourceLines::new(&kit.module, "p.toy").unwrap();
        let second = SourceLines::new(&kit.module, "b.toy").unwrap();
        let (kind, language) = (DWARFEmissionKind::LineTablesOnly, DWARFSourceLanguage::C99);
        let (debug, unit) = kit.module.create_debug_info_builder(
            true, language, "own.toy", "/src", "toy", false, "", 0, "", kind, 0, false, false, "",
            "",
        );
        if is_callers {
            let file = unit.get_file();
            let ty = debug.create_subroutine_type(file, None, &[], 0);
            let scope = file.as_debug_info_scope();
            let of =
                debug.create_function(scope, "parent", None, file, 8, ty, true, true, 8, 0, false);
            kit.parent.function.set_subprogram(of);
        }
        let mut launches = kit.launches();
        first.at(&kit.builder, 11).unwrap();
        launches.emit(&kit.builder, &kit.launch()).unwrap();
        second.at(&kit.builder, 20).unwrap();
        launches.emit(&kit.builder, &kit.launch()).unwrap();
        first.at(&kit.builder, 12).unwrap();
        launches.emit(&kit.builder, &kit.launch()).unwrap();
        kit.end();
        launches.finish().unwrap();
        first.finish();
        second.finish();
        debug.finalize();
        for dialect in [Dialect::Legacy, Dialect::Modern] {
            let text = String::from_utf8(nvvm_text(&kit.module, dialect).unwrap().bytes).unwrap();
            assert!(text.contains("!DILexicalBlockFile(scope: "), "{text}");
        }
        let bundle = cpu_bundle(kit.module);
        for (limit, wanted) in [(1, "b.toy:20"), (2, "p.toy:12")] {
            let error = lost(&bundle, limit);
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
        assert!(bundle.manifest().sources.contains(&"b.toy".to_owned()));
    }
}

/// LLVM's verifier names neither the line nor what to do.
#[test]
fn modules_that_llvm_refuses_are_explained() {
    type Build = for<'ctx> fn(&Kit<'ctx>, &SourceLines<'_, 'ctx>, &mut Launches<'_, 'ctx>);
    let cases: [(Build, &str); 8] = [
        (
            |_, _, _| {},
            "function `parent`, at p.toy:11: block `entry` has no terminator; end it with a branch",
        ),
        (
            |kit, _, launches| launches.emit(&kit.builder, &kit.launch()).unwrap(),
            "function `parent`, at p.toy:11: the block behind the launch at p.toy:11 has no terminator",
        ),
        (
            |kit, _, launches| {
                launches.emit(&kit.builder, &kit.launch().at("q.toy", 7)).unwrap();
            },
            "function `parent`, at p.toy:11: the block behind the launch at q.toy:7 has no terminator",
        ),
        (
            |kit, _, launches| {
                launches.emit_try(&kit.builder, &kit.launch()).unwrap();
            },
            "the block behind the launch at p.toy:11 has no terminator",
        ),
        (
            |kit, lines, _| {
                kit.end();
                lines.at(&kit.builder, 12).unwrap();
                kit.builder.build_alloca(kit.context.i32_type(), "a").unwrap();
            },
            "function `parent`, at p.toy:11: block `entry` goes on behind its end",
        ),
        (
            |kit, lines, _| {
                new_kernel(&kit.module, &kit.builder, "q", &[]).unwrap();
                lines.at(&kit.builder, 20).unwrap();
                kit.end();
                kit.builder.position_at_end(kit.parent.entry);
                kit.end();
            },
            "function `parent`: an instruction has the debug location p.toy:20 of function `q`; call `SourceLines::at` again",
        ),
        (
            |kit, _, launches| {
                let next = kit.context.append_basic_block(kit.parent.function, "next");
                launches.emit(&kit.builder, &kit.launch()).unwrap();
                kit.builder.build_unconditional_branch(next).unwrap();
                kit.builder.position_at_end(next);
                let word = kit.context.i32_type();
                let phi = kit.builder.build_phi(word, "v").unwrap();
                phi.add_incoming(&[(&word.const_zero(), kit.parent.entry)]);
                kit.end();
            },
            "a `phi` names block `entry`, which does not branch to its block `next`; `Launches::emit` opens a block: take \
             `builder.get_insert_block()` after it",
        ),
        (
            |kit, _, _| {
                let next = kit.context.append_basic_block(kit.parent.function, "next");
                kit.builder.build_unconditional_branch(next).unwrap();
                kit.builder.position_at_end(next);
                kit.builder.build_phi(kit.context.i32_type(), "v").unwrap();
                kit.end();
            },
            "a `phi` has no value for block `entry`, which branches to its block `next`",
        ),
    ];
    for (build, wanted) in cases {
        let context = Context::create();
        let kit = Kit::new(&context);
        let lines = SourceLines::new(&kit.module, "p.toy").unwrap();
        lines.at(&kit.builder, 11).unwrap();
        // An instruction with a line.
        kit.builder.build_alloca(context.i32_type(), "first").unwrap();
        let mut launches = kit.launches();
        build(&kit, &lines, &mut launches);
        launches.finish().unwrap();
        lines.finish();
        let error = Own::of(kit.module).map(|_| ()).unwrap_err().to_string();
        let start = "p.toy: the module is not valid LLVM IR:\nfunction `parent`";
        assert!(error.starts_with(start) && error.contains(wanted), "{wanted}\n{error}");
    }
}

#[test]
fn blocks_have_the_size_that_the_child_requires() {
    let emit = |threads: Option<u64>| {
        let context = Context::create();
        let kit = Kit::new(&context);
        let required = context.create_string_attribute("nvvm.reqntid", "64");
        kit.child.function.add_attribute(AttributeLoc::Function, required);
        let threads = threads.map(|threads| context.i32_type().const_int(threads, false));
        let launch = kit.launch().block(threads.as_slice()).at("p.toy", 3);
        kit.launches().emit(&kit.builder, &launch).map_err(|error| error.to_string())
    };
    let said = "p.toy:3: a launch of kernel `child` cannot succeed: a block has 32 threads in x, but `child` requires 64";
    assert!(emit(Some(32)).unwrap_err().contains(said));
    assert!(emit(Some(64)).is_ok());
}

/// LLVM's verifier quotes instructions, and names no function.
#[test]
fn a_module_that_llvm_refuses_names_the_function() {
    let context = Context::create();
    let kit = Kit::new(&context);
    let word = context.i32_type();
    let taking = kit.module.add_function("f", word.fn_type(&[word.into()], false), None);
    kit.builder.build_call(taking, &[context.i64_type().const_zero().into()], "").unwrap();
    kit.end();
    let said = "in the function `parent`:\nCall parameter type does not match function signature!";
    let error = Session::new().ptx_of(&kit.module, &BuildOptions::default()).unwrap_err();
    assert!(error.to_string().contains(said), "{error}");
    let Err(error) = Own::of(kit.module) else { panic!("the module is valid") };
    assert!(error.to_string().contains(said), "{error}");
}

/// The module is often called by the file of the front end's language.
#[test]
fn lines_of_the_module_are_not_those_of_the_source() {
    let context = Context::create();
    let kit = Kit::new(&context);
    kit.end();
    let large = context.i8_type().array_type(5000);
    new_kernel(&kit.module, &kit.builder, "large", &[large.into()]).unwrap();
    kit.end();
    let bits = context.custom_width_int_type(17.try_into().unwrap()).unwrap();
    new_kernel(&kit.module, &kit.builder, "narrow", &[bits.into()]).unwrap();
    kit.end();
    let text = kit.module.print_to_string().to_string();
    let line = 1 + text.lines().position(|line| line.contains("@narrow(")).unwrap();
    let own = Own::of(kit.module).unwrap();
    let error = own.check(CudaArch::DEFAULT).unwrap_err().to_string();
    assert!(error.starts_with(&format!("p.toy: p.ll:{line}: kernel `narrow`: ")), "{error}");
}
