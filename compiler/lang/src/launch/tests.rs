use super::*;
use crate::check::tree::{BinaryOp, Expr, Function, StreamExpr};
use crate::ir::print::print;
use crate::ir::symbol::is_reserved;
use crate::ir::testing::*;
use crate::ir::{KernelId, graph};
use crate::layout::compute_layouts;
use crate::program::{Checked, check};
use crate::source::SourceMap;
use crate::types::{Scalar, Structs, Type};

fn for_arch(arch: CudaArch) -> LaunchOptions {
    LaunchOptions::for_arch(LaunchStrategy::Cdp, arch)
}

fn lower_for(module: &Module, arch: &str) -> Module {
    let layouts = compute_layouts(module).unwrap();
    lower(module, &layouts, &for_arch(arch.parse().unwrap())).unwrap()
}

/// A kernel with these launches, each given by its stream and whether it asks for the status.
fn launching(launches: &[(StreamExpr, bool)]) -> Module {
    let child = kernel("child");
    let calls = launches
        .iter()
        .enumerate()
        .map(|(at, (stream, is_try))| do_(launch(10 + at, 0, stream.clone(), vec![], *is_try)));
    let parent = kernel("parent").with(&[("s", Type::Stream)]).body(calls.collect());
    build(Structs::new(), vec![child, parent])
}

fn handle() -> StreamExpr {
    StreamExpr::Value(Box::new(local(0, Type::Stream)))
}

#[test]
fn launches_into_every_stream() {
    let launches = [
        (StreamExpr::Default, false),
        (StreamExpr::FireAndForget, false),
        (StreamExpr::Tail, true),
        (handle(), true),
    ];
    insta::assert_snapshot!(print(&lower_for(&launching(&launches), "sm_90")));
}

/// A launch in a loop, with arguments at the offsets that nvcc computes, and its status used in an
/// expression.
fn with_arguments() -> Module {
    let mut structs = Structs::new();
    let triple = add_struct(&mut structs, "Triple", vec![Type::I32, Type::I32, Type::I32]);
    let types = [
        ("flag", Type::BOOL),
        ("triple", Type::Struct(triple)),
        ("short", Type::Scalar(Scalar::I16)),
        ("quad", Type::Vector(Scalar::F32, 4)),
        ("last", Type::BOOL),
    ];
    let arguments = || -> Vec<Expr> {
        let types = types.iter().enumerate();
        types.map(|(at, (_, ty))| local(at as u32, ty.clone())).collect()
    };
    let status = || local(6, Type::I32);
    let tried = launch(20, 0, StreamExpr::Default, arguments(), true);
    let body: Function =
        kernel("again").with(&types).locals(&[("i", Type::U32), ("sum", Type::I32)]).body(vec![
            let_(6, i32_(0)),
            for_(
                5,
                u32_(0),
                u32_(3),
                None,
                vec![
                    assign(status(), Some(BinaryOp::Add), tried),
                    do_(if_(
                        binary(BinaryOp::Ne, status(), i32_(0)),
                        block(vec![do_(launch(21, 0, StreamExpr::Tail, arguments(), false))]),
                        None,
                        Type::Unit,
                    )),
                ],
            ),
        ]);
    build(structs, vec![body])
}

#[test]
fn arguments_are_stored_where_the_layout_has_them() {
    insta::assert_snapshot!(print(&lower_for(&with_arguments(), "sm_90")));
}

#[test]
fn launches_are_counted_on_demand() {
    let module = launching(&[(StreamExpr::Tail, true)]);
    let layouts = compute_layouts(&module).unwrap();
    let options = LaunchOptions { count_launches: true, ..for_arch(CudaArch::DEFAULT) };
    insta::assert_snapshot!(print(&lower(&module, &layouts, &options).unwrap()));
}

#[test]
fn instrumented_programs_have_wrappers_that_note_blocks() {
    let module = with_arguments();
    let instrumented = instrument(&module).unwrap();
    let layouts = compute_layouts(&instrumented).unwrap();
    // The depth follows the last `bool`, at 48.
    let depth = layouts.kernels[1].slots.last().unwrap();
    assert_eq!((depth.name.as_str(), depth.offset), ("launch.depth", 52));
    insta::assert_snapshot!(print(&instrumented));
    assert!(lower(&instrumented, &layouts, &for_arch(CudaArch::DEFAULT)).is_ok());
}

#[test]
fn a_kernel_without_launches_has_no_nested_wrapper() {
    let instrumented = instrument(&build(Structs::new(), vec![kernel("alone")])).unwrap();
    assert_eq!(instrumented.kernels.len(), 1);
    assert!(instrumented.globals.iter().any(|global| global.name == STATISTICS));
    let layouts = compute_layouts(&instrumented).unwrap();
    let options = for_arch(CudaArch::DEFAULT);
    let lowered = lower(&instrumented, &layouts, &options).unwrap();
    assert!(instrument(&lowered).unwrap_err().to_string().contains("lowered already"));
}

#[test]
fn the_depth_needs_four_bytes_of_the_buffer() {
    for (words, has_depth) in [(1023, true), (1024, false)] {
        let words = Type::Array(Box::new(Type::U32), words);
        let child = kernel("child").with(&[("words", words.clone())]);
        let pass = do_(launch(10, 0, StreamExpr::Default, vec![local(0, words.clone())], false));
        let parent = kernel("parent").with(&[("words", words)]).body(vec![pass]);
        let instrumented = instrument(&build(Structs::new(), vec![child, parent])).unwrap();
        let nested = &instrumented.kernels[2];
        assert_eq!(nested.name, "gridlet.nested.child");
        assert_eq!(nested.parameters.len(), if has_depth { 2 } else { 1 });
        let layouts = compute_layouts(&instrumented).unwrap();
        assert_eq!(layouts.kernels[2].size, 4096);
    }
}

#[test]
fn the_symbols_follow_the_architecture() {
    let module = launching(&[(StreamExpr::Default, false)]);
    for (arch, expected) in [
        ("sm_75", ["__cudaCDP2GetParameterBufferV2", "__cudaCDP2LaunchDeviceV2"]),
        ("sm_89", ["__cudaCDP2GetParameterBufferV2", "__cudaCDP2LaunchDeviceV2"]),
        ("sm_90", ["cudaGetParameterBufferV2", "cudaLaunchDeviceV2"]),
        ("sm_100", ["cudaGetParameterBufferV2", "cudaLaunchDeviceV2"]),
    ] {
        let lowered = lower_for(&module, arch);
        let names: Vec<_> = lowered.externs.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, expected, "{arch}");
    }
}

#[test]
fn a_module_without_launches_gets_nothing() {
    let module = build(Structs::new(), vec![kernel("alone")]);
    assert!(!launches(&module));
    let lowered = lower_for(&module, "sm_90");
    assert!(lowered.lowered && lowered.externs.is_empty() && lowered.globals.is_empty());
    assert_eq!(lowered.functions.len(), module.functions.len());
}

#[test]
fn the_function_that_records_is_there_only_for_plain_launches() {
    let tried = lower_for(&launching(&[(StreamExpr::Tail, true)]), "sm_90");
    assert!(tried.globals.iter().any(|global| global.name == LOST_LAUNCH_RECORD));
    assert!(tried.functions.iter().all(|function| function.name != RECORD_LOST_LAUNCH));
}

#[test]
fn who_launches_whom_is_the_same_before_and_after() {
    let module = launching(&[(StreamExpr::Tail, true), (StreamExpr::Default, false)]);
    let lowered = lower_for(&module, "sm_90");
    for module in [&module, &lowered] {
        assert_eq!(graph::launched(module), [vec![], vec![KernelId(0)]]);
    }
}

#[test]
fn launches_are_lowered_once() {
    let module = launching(&[(StreamExpr::Default, false)]);
    let layouts = compute_layouts(&module).unwrap();
    let options = for_arch(CudaArch::DEFAULT);
    let lowered = lower(&module, &layouts, &options).unwrap();
    let again = lower(&lowered, &layouts, &options).unwrap_err();
    assert!(again.to_string().contains("lowered already"));
    let other = compute_layouts(&build(Structs::new(), vec![])).unwrap();
    let error = lower(&module, &other, &options).unwrap_err();
    assert!(error.to_string().contains("another module"));
}

#[test]
fn the_names_of_records_are_reserved() {
    assert!(is_reserved(LOST_LAUNCH_RECORD) && is_reserved(LAUNCHES_MADE));
}

fn checked(source: &str) -> Checked {
    check(SourceMap::single("p.grid", source)).unwrap()
}

const FILLS: &str = "kernel fill(p: *mut u8, s: stream) {
    assert(memset_async(p, 7, 100, s) == 0);
    memset_async(p, 8, 100, default);
}";

#[test]
fn fills_are_launches_of_a_kernel_on_gpus() {
    let lowered = checked(FILLS).lower(&for_arch(CudaArch::DEFAULT)).unwrap();
    insta::assert_snapshot!(print(&lowered));
    assert!(is_reserved(fill::FILL_KERNEL));
    for arch in ["sm_75", "sm_90", "sm_120"] {
        let lowered = checked(FILLS).lower(&for_arch(arch.parse().unwrap())).unwrap();
        assert!(lowered.externs.iter().all(|item| !item.name.contains("Memset")), "{arch}");
        let parameters = compute_layouts(&lowered).unwrap();
        let offsets = parameters.kernels[1].slots.iter().map(|slot| slot.offset);
        assert_eq!(offsets.collect::<Vec<_>>(), [0, 8, 16]);
    }
}

#[test]
fn fills_are_no_launches_of_the_program() {
    let fills = checked(FILLS);
    assert!(fills.needs_device_runtime(LaunchStrategy::Cdp) && !fills.launches());
    let statistics = LaunchOptions { count_launches: true, ..for_arch(CudaArch::DEFAULT) };
    let lowered = print(&fills.lower(&statistics).unwrap());
    assert!(lowered.contains(LAUNCHES_MADE) && !lowered.contains("gridlet.nested."));
    let adds = |text: &str| text.lines().filter(|line| line.contains("atomic_add")).count();
    assert_eq!(adds(&lowered), 0, "{lowered}");
    let both = "kernel k(p: *mut u8) { memset_async(p, 7, 9, default); launch k<<<1, 1>>>(p); }";
    let lowered = print(&checked(both).lower(&statistics).unwrap());
    // One for the successful launch, one in the function that records failures.
    assert_eq!(adds(&lowered), 2, "{lowered}");
}

#[test]
fn the_cpu_fills_by_itself() {
    let lowered = checked(FILLS).lower(&LaunchOptions::CPU).unwrap();
    assert!(lowered.externs.iter().any(|item| item.name == "cudaMemsetAsync"));
    assert_eq!(lowered.kernels.len(), 1);
    assert!(lowered.globals.iter().any(|global| global.name == LOST_LAUNCH_RECORD));
}

#[test]
fn lost_launches_of_objects_are_marked() {
    let mut lowered = lower_for(&launching(&[(StreamExpr::Default, false)]), "sm_90");
    let before = print(&lowered);
    mark_linked(&mut lowered);
    let after = print(&lowered);
    let call = |text: &str| {
        let calls =
            text.lines().filter_map(|line| line.split_once("call @gridlet.record_lost_launch("));
        calls
            .map(|(_, arguments)| arguments.split_once(", ").unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    let line = call(&before)[0].trim_start_matches("0u32").to_owned();
    assert_eq!(call(&before), [format!("0u32{line}")]);
    assert_eq!(call(&after), [format!("2147483648u32{line}")]);
}
