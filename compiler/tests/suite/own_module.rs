//! The example for authors of other compilers: its output, that it links, and that it runs.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::time::Duration;

use gridlet::arch::{CudaArch, Dialect};
use gridlet::artifact;
use gridlet::compile::{BuildOptions, CpuOptions, Session, nvvm_text};
use gridlet::modules::{Launch, Launches, Own, SourceLines, mark_kernel, new_kernel};
use gridlet::target::Target;
use gridlet_runtime::{Arg, Artifact, Buffer, CpuConfig, Device, Error, LaunchConfig, Program};
use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValueEnum, FunctionValue};

#[path = "../../examples/own_module.rs"]
#[allow(dead_code, reason = "a program of its own, too")]
mod example;

const TIME_OUT: Duration = Duration::from_secs(60);

#[test]
fn the_text_is_of_both_dialects() {
    for (name, arch) in [("legacy", "sm_90"), ("modern", "sm_100")] {
        let arch: CudaArch = arch.parse().unwrap();
        let context = Context::create();
        let module = example::module(&context, arch).unwrap();
        let text = nvvm_text(&module, arch.dialect()).unwrap().bytes;
        insta::assert_snapshot!(format!("own_module_{name}"), String::from_utf8(text).unwrap());
    }
}

#[test]
fn it_links_for_every_interface_of_the_device_runtime() {
    let session = Session::new();
    if let Err(error) = session.libnvvm() {
        let text = format!("SKIPPED: needs libNVVM: {error}");
        assert!(std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_none(), "{text}");
        eprintln!("{text}");
        return;
    }
    for arch in [CudaArch::DEFAULT, CudaArch::SUPPORTED[0], "sm_120".parse().unwrap()] {
        let bundle = example::bundle(&session, arch, &[arch.into()]).unwrap();
        let kernels = &bundle.manifest().kernels;
        assert_eq!(kernels[1].launches, ["child", "parent"]);
        assert_eq!(bundle.manifest().sources, ["own.ll", "own.toy"]);
    }
}

#[test]
fn it_runs_on_the_cpu_device_and_loses_no_launch_in_silence() {
    let bundle = example::bundle(&Session::new(), CudaArch::DEFAULT, &[Target::Cpu]).unwrap();
    let run = |depth: i32, pending: Option<u64>| {
        // One worker: the first child must not run before the others are launched.
        let config = CpuConfig { threads: pending.map(|_| 1), ..CpuConfig::default() };
        let device = Device::open_cpu(config).unwrap();
        if let Some(pending) = pending {
            device.set_pending_launch_limit(pending).unwrap();
        }
        let program = Program::load(&device, &bundle).unwrap();
        let parent = program.kernel("parent").unwrap();
        let mut numbers = Buffer::<i32>::alloc_zeroed(&device, 8).unwrap();
        let stream = device.stream().unwrap();
        let config = LaunchConfig::new(1, 1);
        stream.launch(&parent, &config, &[Arg::from(&mut numbers), Arg::from(depth)]).unwrap();
        stream.synchronize(TIME_OUT).map(|()| numbers.to_vec().unwrap())
    };
    assert_eq!(run(2, None).unwrap(), [9; 8]);
    match run(2, Some(1)) {
        Err(Error::LostLaunches(lost)) => {
            let lost = lost.to_string();
            assert!(lost.contains("own.toy:9"), "{lost}");
        }
        other => panic!("{other:?}"),
    }
}

/// A module with a kernel `child(ptr, i32)` and an open block in a kernel `parent()`.
fn open<'ctx>(
    context: &'ctx Context,
) -> (Module<'ctx>, FunctionValue<'ctx>, inkwell::builder::Builder<'ctx>) {
    let module = context.create_module("own");
    let pointer = context.ptr_type(AddressSpace::default());
    let builder = context.create_builder();
    let nothing = context.void_type();
    let parameters = [pointer.into(), context.i32_type().into()];
    let child = module.add_function("child", nothing.fn_type(&parameters, false), None);
    mark_kernel(child);
    builder.position_at_end(context.append_basic_block(child, "entry"));
    builder.build_return(None).unwrap();
    let parent = module.add_function("parent", nothing.fn_type(&[], false), None);
    mark_kernel(parent);
    builder.position_at_end(context.append_basic_block(parent, "entry"));
    (module, child, builder)
}

#[test]
fn mistakes_are_the_callers() {
    let context = Context::create();
    let (module, child, builder) = open(&context);
    let word = context.i32_type();
    let null: BasicValueEnum<'_> = context.ptr_type(AddressSpace::default()).const_null().into();
    let one: BasicValueEnum<'_> = word.const_int(1, false).into();
    let wide = context.i64_type().const_int(1, false);
    let big = context.i8_type().array_type(5000);
    let large =
        module.add_function("large", context.void_type().fn_type(&[big.into()], false), None);
    let plain = module.add_function("plain", context.void_type().fn_type(&[], false), None);
    mark_kernel(large);
    let [zero, one_word, many, extreme] = [0, 1, 65, 65536].map(|n| word.const_int(n, false));
    let launch = || Launch::new(child, &[null, one]);
    let variable = builder.build_alloca(word, "v").unwrap().into();
    let bounds = context.create_string_attribute("nvvm.maxntid", "64");
    child.add_attribute(inkwell::attributes::AttributeLoc::Function, bounds);
    let cases = [
        (Launch::new(child, &[null]), "`child` has 2 parameter(s), but is launched with 1"),
        (Launch::new(child, &[null, wide.into()]), "is `i32`, but the argument is `i64`"),
        (Launch::new(child, &[null, one]).grid(&[wide]), "are `i32`"),
        (launch().grid(&[zero]), "`child` cannot succeed: a grid cannot have 0 blocks in x"),
        (launch().grid(&[one_word, extreme]), "65536 blocks in y; must be between 1 and 65535"),
        (launch().block(&[extreme]), "a block of 65536 threads; the maximum is 1024"),
        (launch().block(&[one_word, one_word, many]), "a block cannot have 65 threads in z"),
        (launch().block(&[many]), "a block of 65 threads; the launch bounds of `child` allow 64"),
        (launch().shared(word.const_int(227 * 1024 + 1, false)), "232449 bytes of dynamic shared"),
        (
            Launch::new(child, &[variable, one]),
            "argument for `p0` of kernel `child` is the address of a local variable",
        ),
        (Launch::new(plain, &[]), "`plain` is not a kernel; call `mark_kernel` on it"),
        (
            Launch::new(large, &[big.const_zero().into()]),
            "take 5000 bytes; a launch passes at most 4096",
        ),
    ];
    let mut launches = Launches::new(&module, CudaArch::DEFAULT);
    for (launch, wanted) in cases {
        let error = launches.emit(&builder, &launch).unwrap_err().to_string();
        assert!(error.starts_with("your module: ") && error.contains(wanted), "{wanted}: {error}");
        let error = launches.emit(&builder, &launch.at("own.toy", 5)).unwrap_err().to_string();
        assert!(error.starts_with("your module: own.toy:5: "), "{error}");
    }
    launches.emit(&builder, &Launch::new(child, &[null, one])).unwrap();
    builder.build_return(None).unwrap();
    let error = launches.emit(&builder, &Launch::new(child, &[null, one])).unwrap_err();
    assert!(error.to_string().contains("not at the end of an open block"), "{error}");

    // Without `finish`, no tool sees the module.
    let error = Session::new().ptx_of(&module, &BuildOptions::default()).unwrap_err().to_string();
    assert!(error.contains("call `Launches::finish`"), "{error}");
    launches.finish().unwrap();
    // A declaration is enough for a launch, but not for a bundle.
    let large = module.get_function("large").unwrap();
    // SAFETY: nothing uses it.
    unsafe { large.delete() };
    let own = Own::of(module).unwrap();
    own.check(CudaArch::DEFAULT).unwrap();
    let text = own.module().print_to_string().to_string();
    assert!(!text.contains("turn"), "no launch is into the tail stream: {text}");
}

#[test]
fn names_of_kernels_are_checked() {
    let context = Context::create();
    let (module, child, builder) = open(&context);
    let cases = [
        ("", "a kernel has no name"),
        ("a b", "PTX cannot spell the name of the kernel `a b`"),
        ("child", "there are two `child`"),
    ];
    for (name, wanted) in cases {
        let error = new_kernel(&module, &builder, name, &[]).unwrap_err().to_string();
        assert!(error.starts_with("your module: ") && error.contains(wanted), "{name}: {error}");
    }
    // The builder is still where it was.
    builder.build_return(None).unwrap();
    let again = module.add_function("child", child.get_type(), None);
    mark_kernel(again);
    builder.position_at_end(context.append_basic_block(again, "entry"));
    builder.build_return(None).unwrap();
    let error = Own::of(module).unwrap().check(CudaArch::DEFAULT).unwrap_err().to_string();
    assert!(error.contains("LLVM names a second `child` so"), "{error}");
}

/// `SourceLines` gives errors, lost launches and a dropped `emit_try` the caller's lines, in code that both dialects take.
#[test]
fn lines_are_those_of_the_source() {
    let context = Context::create();
    let (module, child, builder) = open(&context);
    let lines = SourceLines::new(&module, "main.toy").unwrap();
    let error = lines.at(&context.create_builder(), 4).unwrap_err().to_string();
    assert!(error.contains("your module: the builder has no position"), "{error}");
    let error = lines.at(&builder, 0).unwrap_err().to_string();
    assert!(error.contains("lines count from 1"), "{error}");
    let mut launches = Launches::new(&module, CudaArch::DEFAULT);
    let null = context.ptr_type(AddressSpace::default()).const_null();
    let one = context.i32_type().const_int(1, false);
    let launch = Launch::new(child, &[null.into(), one.into()]);
    lines.at(&builder, 5).unwrap();
    let error = launches.emit(&builder, &Launch::new(child, &[])).unwrap_err().to_string();
    assert!(error.starts_with("your module: main.toy:5: "), "{error}");
    launches.emit(&builder, &launch).unwrap();
    lines.at(&builder, 6).unwrap();
    launches.emit(&builder, &launch).unwrap();
    // The status is dropped.
    let _ = launches.emit_try(&builder, &launch.at("other.toy", 7)).unwrap();
    builder.build_return(None).unwrap();
    let second = new_kernel(&module, &builder, "second", &[]).unwrap();
    builder.build_return(None).unwrap();
    assert!(second.function.get_subprogram().is_none());
    lines.finish();
    launches.finish().unwrap();
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        let text = nvvm_text(&module, dialect).unwrap().bytes;
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("line: 5") && text.contains("line: 6"), "{text}");
    }
    let own = Own::of(module).unwrap();
    own.check(CudaArch::DEFAULT).unwrap();
    let (cuda, cpu) = (BuildOptions::default(), CpuOptions::default());
    let bundle = artifact::build_own(&Session::new(), &own, &[Target::Cpu], &cuda, &cpu).unwrap();
    // The first child must not run before the others are launched.
    let one_worker = CpuConfig { threads: Some(1), ..CpuConfig::default() };
    for (limit, wanted) in [(1, "main.toy:6"), (2, "other.toy:7")] {
        let device = Device::open_cpu(one_worker).unwrap();
        device.set_pending_launch_limit(limit).unwrap();
        let program = Program::load(&device, &bundle).unwrap();
        let stream = device.stream().unwrap();
        let parent = program.kernel("parent").unwrap();
        stream.launch(&parent, &LaunchConfig::new(1, 1), &[]).unwrap();
        let error = stream.synchronize(TIME_OUT).unwrap_err().to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

/// A launch has the position of the builder's instructions, otherwise that in the text.
#[test]
fn lost_launches_have_the_position_of_the_builder() {
    use inkwell::debug_info::{AsDIScope as _, DWARFEmissionKind, DWARFSourceLanguage};

    let lost = |has_position: bool| {
        let context = Context::create();
        let (module, child, builder) = open(&context);
        if has_position {
            let version = context.i32_type().const_int(3, false);
            let flag = inkwell::module::FlagBehavior::Warning;
            module.add_basic_value_flag("Debug Info Version", flag, version);
            let (kind, language) = (DWARFEmissionKind::LineTablesOnly, DWARFSourceLanguage::C99);
            let (debug, unit) = module.create_debug_info_builder(
                true, language, "main.toy", ".", "toy", false, "", 0, "", kind, 0, false, false,
                "", "",
            );
            let file = unit.get_file();
            let ty = debug.create_subroutine_type(file, None, &[], 0);
            let scope = file.as_debug_info_scope();
            let of =
                debug.create_function(scope, "parent", None, file, 8, ty, true, true, 8, 0, false);
            module.get_function("parent").unwrap().set_subprogram(of);
            let scope = of.as_debug_info_scope();
            let at = debug.create_debug_location(&context, 9, 1, scope, None);
            builder.set_current_debug_location(at);
            debug.finalize();
        }
        let mut launches = Launches::new(&module, CudaArch::DEFAULT);
        let null = context.ptr_type(AddressSpace::default()).const_null();
        let one = context.i32_type().const_int(1, false);
        let launch = Launch::new(child, &[null.into(), one.into()]);
        for _ in 0..2 {
            launches.emit(&builder, &launch).unwrap();
        }
        if has_position {
            let wide = launch.grid(&[context.i64_type().const_zero()]);
            let error = launches.emit(&builder, &wide).unwrap_err().to_string();
            assert!(error.starts_with("your module: main.toy:9: "), "{error}");
        }
        builder.build_return(None).unwrap();
        launches.finish().unwrap();
        let own = Own::of(module).unwrap();
        let (cuda, cpu) = (BuildOptions::default(), CpuOptions::default());
        let targets = [Target::Cpu];
        let bundle = artifact::build_own(&Session::new(), &own, &targets, &cuda, &cpu).unwrap();
        // The first child must not run before the second is launched.
        let one_worker = CpuConfig { threads: Some(1), ..CpuConfig::default() };
        let device = Device::open_cpu(one_worker).unwrap();
        device.set_pending_launch_limit(1).unwrap();
        let program = Program::load(&device, &bundle).unwrap();
        let stream = device.stream().unwrap();
        let parent = program.kernel("parent").unwrap();
        stream.launch(&parent, &LaunchConfig::new(1, 1), &[]).unwrap();
        let error = stream.synchronize(TIME_OUT).unwrap_err().to_string();
        let text = own.program().sources.files()[0].text.clone();
        let call = |line: &str| line.contains("call") && line.contains("record_lost_launch");
        (error, text.lines().enumerate().filter(|(_, line)| call(line)).last().unwrap().0 + 1)
    };
    let (error, _) = lost(true);
    assert!(error.contains("main.toy:9"), "{error}");
    let (error, last) = lost(false);
    assert!(error.contains(&format!("own.ll:{last}")), "{last}: {error}");
}

/// A module for the CPU device with `--check`.
fn checked(own: &Own<'_>) -> Artifact {
    let (cuda, cpu) = (BuildOptions::default(), CpuOptions::default().with_check(true));
    artifact::build_own(&Session::new(), own, &[Target::Cpu], &cuda, &cpu).unwrap()
}

/// Runs `blocks` blocks of one thread of the kernel `k(ptr, i32)` with 8 zeroed numbers and `n`, and gives what `--check` finds.
fn run_checked(bundle: &Artifact, blocks: u32, n: i32) -> Result<(), String> {
    let device = Device::open_cpu(CpuConfig { check: true, ..CpuConfig::default() }).unwrap();
    let program = Program::load(&device, bundle).unwrap();
    let mut numbers = Buffer::<i32>::alloc_zeroed(&device, 8).unwrap();
    let stream = device.stream().unwrap();
    let kernel = program.kernel("k").unwrap();
    let arguments = [Arg::from(&mut numbers), Arg::from(n)];
    stream.launch(&kernel, &LaunchConfig::new(blocks, 1), &arguments).unwrap();
    stream.synchronize(TIME_OUT).map_err(|error| error.to_string())
}

/// Stores out of bounds, at line 7 of `other.toy` if `n` is 0, otherwise without a position.
const OUTSIDE: &str = r#"
define ptx_kernel void @k(ptr %p, i32 %n) {
  %q = getelementptr i32, ptr %p, i64 8
  %known = icmp eq i32 %n, 0
  br i1 %known, label %a, label %b
a:
  store i32 1, ptr %q, !dbg !4
  ret void
b:
  store i32 2, ptr %q
  ret void
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "other.toy", directory: ".")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "k", file: !1, line: 3, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DILocation(line: 7, scope: !3)
"#;

#[test]
fn findings_are_at_lines_of_the_source_or_of_the_text_under_its_own_name() {
    let context = Context::create();
    let text = OUTSIDE.replace("i32 %n) {", "i32 %n) !dbg !3 {");
    let module = gridlet::modules::read(&context, "own.toy", text.as_bytes()).unwrap();
    module.set_name("own.toy");
    let own = Own::of(module).unwrap();
    let bundle = checked(&own);
    assert_eq!(bundle.manifest().sources, ["own.ll", "other.toy"]);
    assert_eq!(bundle.manifest().program, "own");
    let found = run_checked(&bundle, 1, 0).unwrap_err();
    assert!(found.contains("other.toy:7"), "{found}");
    let text = &own.program().sources.files()[0].text;
    let line = 1 + text.lines().position(|line| line == "  store i32 2, ptr %q, align 4").unwrap();
    let found = run_checked(&bundle, 1, 1).unwrap_err();
    assert!(found.contains(&format!("own.ll:{line}")), "{found}");
}

/// A scalar variable that is set on one path only, and arrays, which are not followed: copies may read their padding.
#[test]
fn reads_of_unset_variables_are_found() {
    let text = "
define ptx_kernel void @k(ptr %p, i32 %n) {
  %count = alloca i32
  %numbers = alloca [4 x i32]
  %known = icmp eq i32 %n, 0
  br i1 %known, label %a, label %b
a:
  store i32 1, ptr %count
  br label %b
b:
  %value = load i32, ptr %count
  %other = load i32, ptr %numbers
  store i32 %value, ptr %p
  ret void
}
";
    let context = Context::create();
    let module = gridlet::modules::read(&context, "own.toy", text.as_bytes()).unwrap();
    let own = Own::of(module).unwrap();
    let bundle = checked(&own);
    run_checked(&bundle, 1, 0).unwrap();
    let found = run_checked(&bundle, 1, 1).unwrap_err();
    assert!(found.contains("reads unset bytes of the local variable `count`"), "{found}");
}

/// Each block stores a number, and reads what the others may have stored.
#[test]
fn atomic_accesses_keep_their_scope() {
    let text = "
define ptx_kernel void @k(ptr %p, i32 %n) {
  store atomic i32 %n, ptr %p SCOPE monotonic, align 4
  %q = getelementptr i32, ptr %p, i64 1
  %old = load atomic i32, ptr %p SCOPE monotonic, align 4
  store atomic i32 %old, ptr %q syncscope(\"device\") monotonic, align 4
  ret void
}
";
    for (scope, is_wrong) in
        [("syncscope(\"block\")", true), ("syncscope(\"device\")", false), ("", false)]
    {
        let context = Context::create();
        let text = text.replace("SCOPE", scope);
        let own = Own::read(&context, "own.ll", text.as_bytes()).unwrap();
        let bundle = checked(&own);
        run_checked(&bundle, 1, 3).unwrap();
        let found = run_checked(&bundle, 2, 3);
        assert_eq!(found.is_err(), is_wrong, "{scope}: {found:?}");
        let said = found.err().unwrap_or_default();
        assert!(
            !is_wrong || said.contains("is atomic only for the threads of its block"),
            "{said}"
        );
    }
}
