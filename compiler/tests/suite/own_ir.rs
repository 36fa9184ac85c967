//! The example for front ends that build IR: its program runs, and what goes wrong is on the lines of the toy.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::time::Duration;

use gridlet::artifact::build_cpu;
use gridlet::builder::{Body, ProgramBuilder};
use gridlet::compile::{BuildOptions, CpuOptions, LinkInput, Session};
use gridlet::ir::print::print;
use gridlet::ir::{BinaryOp, InstKind, KernelId, Operand};
use gridlet::source::{FileId, Span};
use gridlet::target::Target;
use gridlet::types::Type;
use gridlet_runtime::{Arg, Buffer, CpuConfig, Device, Error, LaunchConfig, Program};

#[path = "../../examples/own_ir.rs"]
#[allow(dead_code, reason = "a program of its own, too")]
mod example;

/// Runs `main` of a toy program on `numbers` numbers.
fn run(source: &str, numbers: usize, check: bool, pending: Option<u64>) -> Result<Vec<u32>, Error> {
    let options = CpuOptions::default().with_check(check);
    let bundle = example::bundle(source, &[Target::Cpu], &options).unwrap();
    // One worker where launches shall be lost: the first child must not run before the others are launched.
    let threads = pending.map(|_| 1);
    let device = Device::open_cpu(CpuConfig { check, threads, ..CpuConfig::default() }).unwrap();
    if let Some(pending) = pending {
        device.set_pending_launch_limit(pending).unwrap();
    }
    let program = Program::load(&device, &bundle).unwrap();
    let mut numbers = Buffer::<u32>::alloc_zeroed(&device, numbers).unwrap();
    let stream = device.stream().unwrap();
    let main = program.kernel("main").unwrap();
    stream.launch(&main, &LaunchConfig::new(1, 1), &[Arg::from(&mut numbers)]).unwrap();
    stream.synchronize(Duration::from_secs(60))?;
    numbers.to_vec()
}

#[test]
fn a_toy_program_runs() {
    assert_eq!(run(example::SOURCE, 8, false, None).unwrap(), [3; 8]);
    assert_eq!(run(example::SOURCE, 8, true, None).unwrap(), [3; 8]);
}

#[test]
fn a_toy_program_becomes_machine_code() {
    let session = Session::new();
    if let Err(error) = session.libnvvm() {
        assert!(std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_none(), "{error}");
        eprintln!("SKIPPED: needs libNVVM: {error}");
        return;
    }
    session.cubin(&example::program(example::SOURCE).unwrap(), &BuildOptions::default()).unwrap();
}

#[test]
fn mistakes_of_a_run_are_on_the_toys_lines() {
    let found = run(example::SOURCE, 7, true, None).unwrap_err().to_string();
    assert!(found.contains("main.toy:1"), "{found}");
    let twice = "step: add 3\nmain: run again 9 4\nagain: run step 1 1\n";
    let lost = run(twice, 8, false, Some(1)).unwrap_err().to_string();
    assert!(lost.contains("main.toy:3"), "{lost}");
}

#[test]
fn kernels_can_compute_with_fast_mathematics() {
    let mut program = ProgramBuilder::new("a.toy", "k\n");
    let span = program.line(program.first_file(), 1);
    let [fast, exact] = ["fast", "exact"].map(|name| program.kernel(name, &[], span));
    for kernel in [fast, exact] {
        let mut body = Body::new(span);
        body.end();
        program.define(kernel, body);
    }
    program.fast_math(fast);
    let kernels = program.finish().unwrap().module.kernels;
    let is_fast: Vec<_> =
        kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.fast_math)).collect();
    assert_eq!(is_fast, [("fast", true), ("exact", false)]);
}

#[test]
fn mistakes_of_the_caller_are_the_callers() {
    type Build<'a> = &'a dyn Fn(&mut Body, KernelId);
    let nowhere = Span::new(FileId(7), 0..1);
    let finish = |name: &str, build: Build<'_>| {
        let mut program = ProgramBuilder::new("a.toy", "k\n");
        let span = program.line(program.first_file(), 1);
        let kernel = program.kernel(name, &[("p", Type::pointer_mut(Type::U32))], span);
        let mut body = Body::new(span);
        build(&mut body, kernel);
        program.define(kernel, body);
        program.finish().unwrap_err().to_string()
    };
    let wrong_type = |body: &mut Body, _: KernelId| {
        let one = body.number(1);
        body.binary(BinaryOp::Add, Body::parameter(0), one, Type::U32);
        body.end();
    };
    let no_parameter = |body: &mut Body, _: KernelId| {
        body.load(Body::parameter(9), Type::U32);
        body.end();
    };
    let no_slot = |body: &mut Body, _: KernelId| {
        body.emit(InstKind::Load(Operand::Slot(gridlet::ir::SlotId(4))), Type::U32);
        body.end();
    };
    let foreign_block = |body: &mut Body, _: KernelId| body.jump(gridlet::ir::BlockId(40));
    let twice = |body: &mut Body, _: KernelId| {
        let block = body.block();
        body.jump(block);
        body.place(block);
        body.end();
        body.place(block);
    };
    let no_position = |body: &mut Body, _: KernelId| {
        body.at(nowhere).load(Body::parameter(0), Type::U32);
        body.end();
    };
    let no_blocks = |body: &mut Body, kernel| {
        let (blocks, threads) = (body.number(0), body.number(1));
        body.launch(kernel, &[blocks], &[threads], &[Body::parameter(0)]);
        body.end();
    };
    let many_threads = |body: &mut Body, kernel| {
        let (blocks, threads) = (body.number(1), body.number(33));
        body.launch(kernel, &[blocks], &[threads.clone(), threads], &[Body::parameter(0)]);
        body.end();
    };
    let large = Type::Array(Box::new(Type::U32), 1 << 40);
    let too_large = |body: &mut Body, _: KernelId| {
        body.local("a", large.clone());
        body.end();
    };
    let cases: [(&str, Build<'_>); 11] = [
        ("k", &no_blocks),
        ("k", &many_threads),
        ("k", &too_large),
        ("k", &wrong_type),
        ("k", &no_parameter),
        ("k", &no_slot),
        ("k", &foreign_block),
        ("k", &twice),
        ("k", &no_position),
        ("k", &|_, _| ()),
        ("__k", &|body, _| body.end()),
    ];
    let mut seen = String::new();
    for (name, build) in cases {
        let error = finish(name, build);
        assert!(error.starts_with("your module: "), "{error}");
        seen.push_str(&format!("{error}\n"));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn failed_assertions_are_found_at_their_line() {
    let mut program = ProgramBuilder::new("a.toy", "k\nassert\n");
    let line = program.at(1);
    let kernel = program.kernel("k", &[("out", Type::pointer_mut(Type::U32))], line);
    let mut body = Body::new(line);
    let number = body.load(Body::parameter(0), Type::U32);
    body.at(program.at(2));
    for (is_one, message) in [(false, "out is 0"), (true, "out is 1")] {
        let wanted = body.number(is_one.into());
        let equal = body.binary(BinaryOp::Eq, number.clone(), wanted, Type::BOOL);
        program.assert(&mut body, equal, message, "k");
    }
    body.end();
    program.define(kernel, body);
    let failed = checked(program, |out| vec![out]).unwrap_err();
    assert!(failed.contains("error[trap]") && failed.contains("a.toy:2"), "{failed}");
}

#[test]
fn findings_are_in_the_right_one_of_many_files() {
    let mut program = ProgramBuilder::new("a.toy", "k\n");
    let files: Vec<FileId> =
        (1..=300).map(|at| program.source(&format!("{at}.toy"), "one\ntwo\n")).collect();
    let span = program.line(files[299], 2);
    let kernel = program.kernel("k", &[("out", Type::pointer_mut(Type::U32))], span);
    let mut body = Body::new(span);
    let (one, at) = (body.number(1), body.number(4));
    let address = body.element(Body::parameter(0), at, Type::pointer_mut(Type::U32));
    body.store(address, one);
    body.end();
    program.define(kernel, body);
    let found = checked(program, |out| vec![out]).unwrap_err();
    assert!(found.contains("300.toy:2"), "{found}");
}

/// Runs `k` of a program with one thread under `--check`; the arguments start with a buffer of four numbers.
fn checked(
    program: ProgramBuilder,
    arguments: impl for<'a> FnOnce(Arg<'a>) -> Vec<Arg<'a>>,
) -> Result<(), String> {
    let options = CpuOptions::default().with_check(true);
    let bundle = build_cpu(&Session::new(), &program.finish().unwrap(), &options).unwrap();
    let device = Device::open_cpu(CpuConfig { check: true, ..CpuConfig::default() }).unwrap();
    let program = Program::load(&device, &bundle).unwrap();
    let mut out = Buffer::<u32>::alloc_zeroed(&device, 4).unwrap();
    let stream = device.stream().unwrap();
    let kernel = program.kernel("k").unwrap();
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &arguments(Arg::from(&mut out))).unwrap();
    stream.synchronize(Duration::from_secs(60)).map_err(|error| error.to_string())
}

/// Kernels of one thread: what they read in lines 1 to 5 was never set, or not on every path.
#[test]
fn reads_of_unset_variables_are_found() {
    type Build<'a> = &'a dyn Fn(&mut Body, Operand) -> Operand;
    let word = |body: &mut Body| body.local("v", Type::U32);
    let numbers = || Type::Array(Box::new(Type::U32), 4);
    let one_of = |body: &mut Body, array, at| {
        let base = body.element(array, at, Type::pointer_mut(Type::U32));
        body.load(base, Type::U32)
    };
    // Sets a variable where the parameter is above 5.
    let sometimes = |body: &mut Body, n: Operand, variable: Operand| {
        let [then, end] = [body.block(), body.block()];
        let five = body.number(5);
        let is_large = body.binary(BinaryOp::Gt, n, five, Type::BOOL);
        body.branch(is_large, then, end);
        body.place(then);
        let one = body.number(1);
        body.store(variable, one);
        body.jump(end);
        body.place(end);
    };
    let never: Build<'_> = &|body, _| {
        let v = word(body);
        body.load(v, Type::U32)
    };
    let temporary: Build<'_> = &|body, _| {
        let v = body.temporary("v", Type::U32);
        body.load(v, Type::U32)
    };
    let on_a_path: Build<'_> = &|body, n| {
        let v = word(body);
        sometimes(body, n, v.clone());
        body.load(v, Type::U32)
    };
    let part: Build<'_> = &|body, _| {
        let v = body.local("v", numbers());
        let (two, three) = (body.number(2), body.number(3));
        let base = body.element(v.clone(), two.clone(), Type::pointer_mut(Type::U32));
        body.store(base, two);
        one_of(body, v, three)
    };
    let set: Build<'_> = &|body, _| {
        let v = word(body);
        let one = body.number(1);
        body.store(v.clone(), one);
        body.load(v, Type::U32)
    };
    let run = |build: Build<'_>, n: u32| {
        let mut program = ProgramBuilder::new("a.toy", "k\n");
        let span = program.line(program.first_file(), 1);
        let parameters = [("out", Type::pointer_mut(Type::U32)), ("n", Type::U32)];
        let kernel = program.kernel("k", &parameters, span);
        let mut body = Body::new(span);
        let value = build(&mut body, Body::parameter(1));
        body.store(Body::parameter(0), value);
        body.end();
        program.define(kernel, body);
        checked(program, |out| vec![out, Arg::from(n)])
    };
    for (case, n) in [(never, 9), (temporary, 9), (on_a_path, 5), (part, 9)] {
        let found = run(case, n).unwrap_err();
        let wanted = "kernel `k` reads unset bytes of the local variable `v`";
        assert!(found.contains(wanted) && found.contains("a.toy:1"), "{found}");
    }
    for (case, n) in [(set, 9), (on_a_path, 6)] {
        run(case, n).unwrap();
    }
}

#[test]
fn functions_of_other_modules_are_declared_and_called() {
    let mut program = ProgramBuilder::new("a.toy", "twice\nk\n");
    let at = program.at(1);
    let twice = program.extern_function("twice", &[Type::U32], Type::U32, at);
    let (at, pointer) = (program.at(2), Type::pointer_mut(Type::U32));
    let k = program.kernel("k", &[("p", pointer)], at);
    let mut body = Body::new(at);
    let number = body.load(Body::parameter(0), Type::U32);
    let doubled = body.call_extern(twice, &[number], Type::U32);
    body.store(Body::parameter(0), doubled);
    body.end();
    program.define(k, body);
    let program = program.finish().unwrap();
    let ir = print(&program.module);
    assert!(ir.contains("extern fn @twice(u32) -> u32"), "{ir}");
    assert_eq!(print(&gridlet::builder::read("a.gir", &ir).unwrap().module), ir);

    let c = b"unsigned twice(unsigned x) { return 2 * x; }\n".to_vec();
    let session = Session::new().linking(vec![LinkInput::new("twice.c", c).unwrap()]);
    let bundle = build_cpu(&session, &program, &CpuOptions::default()).unwrap();
    let device = Device::open_cpu(CpuConfig::default()).unwrap();
    let loaded = Program::load(&device, &bundle).unwrap();
    let mut numbers = Buffer::<u32>::from_slice(&device, &[21]).unwrap();
    let stream = device.stream().unwrap();
    let kernel = loaded.kernel("k").unwrap();
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &[Arg::from(&mut numbers)]).unwrap();
    stream.synchronize(Duration::from_secs(60)).unwrap();
    assert_eq!(numbers.to_vec().unwrap(), [42]);

    let alone = build_cpu(&Session::new(), &program, &CpuOptions::default()).unwrap_err();
    assert!(alone.to_string().contains("no linked module defines `twice`"), "{alone}");
}

#[test]
fn kernels_of_other_modules_are_declared_and_launched() {
    let mut program = ProgramBuilder::new("a.toy", "far\nk\n");
    let line = |program: &ProgramBuilder, line| program.line(program.first_file(), line);
    let pointer = Type::pointer_mut(Type::U32);
    let at = line(&program, 1);
    let far = program.extern_kernel("far", &[("p", pointer.clone())], at);
    let at = line(&program, 2);
    let k = program.kernel("k", &[("p", pointer)], at);
    let mut body = Body::new(at);
    let (grid, block) = (body.number(1), body.number(32));
    body.launch(far, &[grid], &[block], &[Body::parameter(0)]);
    body.end();
    program.define(k, body);
    let program = program.finish().unwrap();
    let ir = print(&program.module);
    assert!(ir.contains("extern kernel @far(p: *mut u32)"), "{ir}");
    assert_eq!(print(&gridlet::builder::read("a.gir", &ir).unwrap().module), ir);

    let mut program = ProgramBuilder::new("a.toy", "far\n");
    let at = line(&program, 1);
    let far = program.extern_kernel("far", &[], at);
    let mut body = Body::new(at);
    body.end();
    program.define(far, body);
    let error = program.finish().err().unwrap().to_string();
    assert_eq!(error, "your module: a.toy:1: `far` has a body, but another module defines it");
}
