//! Modules of other compilers: whatever is wrong with them is an error, not a crash and not silence.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, LinkInput, Session};
use gridlet::error::Error;
use gridlet::modules::{Own, SourceLines};
use gridlet::source::SourceMap;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;

/// A module for GPUs.
fn module<'ctx>(context: &'ctx Context, text: &str) -> Module<'ctx> {
    let text = format!("target triple = \"nvptx64-nvidia-cuda\"\n{text}");
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "own.ll");
    context.create_module_from_ir(buffer).unwrap()
}

/// A session, if libNVVM is installed.
fn session() -> Option<Session> {
    let session = Session::new();
    if let Err(error) = session.libnvvm() {
        assert!(std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_none(), "{error}");
        eprintln!("SKIPPED: needs libNVVM: {error}");
        return None;
    }
    Some(session)
}

/// Both back ends, for an architecture of each dialect.
fn ways() -> Vec<BuildOptions> {
    let archs = ["sm_90", "sm_100"].map(|arch| arch.parse::<CudaArch>().unwrap());
    let backends = [Backend::LibNvvm, Backend::Nvptx];
    let way = |arch, backend| BuildOptions::for_arch(arch).with_backend(backend);
    archs.into_iter().flat_map(|arch| backends.map(|backend| way(arch, backend))).collect()
}

#[test]
fn a_block_without_an_end_is_an_error() {
    let session = Session::new();
    for options in ways() {
        let context = Context::create();
        let module = context.create_module("own");
        let function = module.add_function("f", context.void_type().fn_type(&[], false), None);
        context.append_basic_block(function, "entry");
        let error = session.ptx_of(&module, &options).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        assert!(error.to_string().contains("does not have terminator"), "{options:?}: {error}");
    }
}

#[test]
fn an_intrinsic_of_another_target_is_an_error() {
    let text = "declare i32 @llvm.x86.sse42.crc32.32.32(i32, i32)
        define ptx_kernel void @k(ptr %p) {
          %x = call i32 @llvm.x86.sse42.crc32.32.32(i32 1, i32 2)
          store i32 %x, ptr %p
          ret void
        }";
    let context = Context::create();
    let module = module(&context, text);
    let options = BuildOptions::default().with_backend(Backend::Nvptx);
    // Twice, because LLVM never returns from the first.
    for _ in 0..2 {
        let error = Session::new().ptx_of(&module, &options).unwrap_err().to_string();
        assert!(error.contains("Cannot select: intrinsic %llvm.x86"), "{error}");
        assert!(error.contains("\n`llvm.x86.sse42.crc32.32.32`: LLVM ends over"), "{error}");
    }
}

#[test]
fn an_intrinsic_that_llvm_does_not_know_is_an_error() {
    let text = "declare i32 @llvm.no.such.thing(i32)
        declare i32 @llvm.unused.too(i32)
        define ptx_kernel void @k(ptr %p) {
          %x = call i32 @llvm.no.such.thing(i32 1)
          store i32 %x, ptr %p
          ret void
        }";
    let context = Context::create();
    let module = module(&context, text);
    for options in ways() {
        let error = Session::new().ptx_of(&module, &options).unwrap_err().to_string();
        assert!(error.contains("llvm.no.such.thing"), "{options:?}: {error}");
    }
}

/// A module over which both back ends crash, and libNVVM says nothing.
#[test]
fn a_crash_of_a_compiler_names_the_intrinsic() {
    let Some(session) = session() else { return };
    let text = "@n = private constant [1 x i8] c\"k\"
        declare void @llvm.instrprof.increment(ptr, i64, i32, i32)
        declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
        define ptx_kernel void @k(ptr %p) {
          %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
          store i32 %x, ptr %p
          call void @llvm.instrprof.increment(ptr @n, i64 0, i32 1, i32 0)
          ret void
        }";
    let context = Context::create();
    let module = module(&context, text);
    let arch: CudaArch = "sm_100".parse().unwrap();
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        let options = BuildOptions::for_arch(arch).with_backend(backend);
        let error = session.ptx_of(&module, &options).unwrap_err().to_string();
        assert!(error.contains("\n`llvm.instrprof.increment`: "), "{error}");
        assert_eq!(error.matches("ends over").count(), 1, "{error}");
    }
    // Also in a module that is linked with a program of the language.
    let text = text.replace("ptx_kernel void @k(ptr %p)", "i32 @f(i32 %n)");
    let text = text.replace("store i32 %x, ptr %p", "").replace("ret void", "ret i32 %x");
    let session = Session::new().linking(vec![LinkInput::new("own.ll", text.into()).unwrap()]);
    let program = compile::check(SourceMap::single("a.grid", CALLER)).unwrap();
    let error = session.ptx(&program, &BuildOptions::for_arch(arch)).unwrap_err().to_string();
    assert!(error.contains("\n`llvm.instrprof.increment`: "), "{error}");
}

/// The data layout of CUDA's documentation, as older compilers write it: without 128-bit integers.
#[test]
fn data_layouts_of_older_compilers_are_taken() {
    let Some(session) = session() else { return };
    let text = "target datalayout = \"e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-f32:32:32-f64:64:64-\
        v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64\"
        target triple = \"nvptx64-nvidia-cuda\"
        define ptx_kernel void @k(ptr %p) {
          store i32 1, ptr %p
          ret void
        }";
    let context = Context::create();
    let module = module(&context, text);
    for options in ways() {
        let (ptx, _) =
            session.ptx_of(&module, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert!(ptx.0.contains(".entry k("), "{options:?}");
    }
}

/// The data layout of LLVM's short pointers, as Triton 3.9 writes it, and a kernel in its style.
#[test]
fn short_pointers_in_registers_are_taken() {
    let Some(session) = session() else { return };
    let text = "target datalayout = \"e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-p101:32:32-i64:64-i128:128-i256:256-\
        v16:16-v32:32-n16:32:64\"
        target triple = \"nvptx64-nvidia-cuda\"
        @global_smem = external addrspace(3) global [0 x i8], align 16
        define ptx_kernel void @k(ptr addrspace(1) %p, i32 %i) {
          %at = getelementptr inbounds nuw i8, ptr addrspace(3) @global_smem, i32 %i
          store i32 1, ptr addrspace(3) %at
          %v = load i32, ptr addrspace(3) %at
          store i32 %v, ptr addrspace(1) %p
          ret void
        }";
    for options in ways() {
        let context = Context::create();
        let own = Own::read(&context, "k.ll", text.as_bytes()).unwrap();
        own.check(options.arch).unwrap();
        session.own_cubin(&own, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    }
}

/// LLVM's reader looks at annotations only where it needs them, and crashes or not.
#[test]
fn wrong_annotations_are_refused_before_a_compiler_sees_them() {
    let text = "@g = addrspace(1) global i32 0
        define ptx_kernel void @k(ptr %p) {
          ret void
        }
        !nvvm.annotations = !{!0}
        !0 = !{ptr addrspace(1) @g, !\"texture\", !\"x\"}";
    let context = Context::create();
    let module = module(&context, text);
    for options in ways() {
        let error = Session::new().ptx_of(&module, &options).unwrap_err().to_string();
        assert!(error.contains("wrong node of `!nvvm.annotations`"), "{options:?}: {error}");
    }
}

/// A module that LLVM writes, and over which its reader ends: the intrinsic, which LLVM 22 no longer has, lacks its arguments.
#[test]
fn a_module_that_llvm_cannot_read_back_is_an_error() {
    let Some(session) = session() else { return };
    let context = Context::create();
    let module = context.create_module("own");
    let builder = context.create_builder();
    let word = context.i32_type();
    let rotate = module.add_function("llvm.nvvm.rotate.b32", word.fn_type(&[], false), None);
    let ty = context.void_type().fn_type(&[], false);
    let kernel = module.add_function("k", ty, None);
    builder.position_at_end(context.append_basic_block(kernel, ""));
    let lines = SourceLines::new(&module, "own.toy").unwrap();
    lines.at(&builder, 1).unwrap();
    builder.build_call(rotate, &[], "").unwrap();
    builder.build_return(None).unwrap();
    lines.finish();
    for options in ways() {
        let error = session.ptx_of(&module, &options.with_debug_lines(true)).unwrap_err();
        assert!(
            matches!(error, Error::Mistakes(_) | Error::Invalid(_) | Error::Tool { .. }),
            "{error}"
        );
    }
}

/// Children start while other threads compile in this process.
#[test]
fn both_kinds_of_compilations_run_at_a_time() {
    let Some(session) = session() else { return };
    let program =
        compile::check(SourceMap::single("a.grid", "kernel k(p: *mut u32) { *p = 1; }\n"));
    let program = program.unwrap();
    std::thread::scope(|scope| {
        for options in ways() {
            let (session, program) = (&session, &program);
            scope.spawn(move || {
                for _ in 0..5 {
                    session.ptx(program, &options).unwrap();
                }
            });
            scope.spawn(move || {
                let context = Context::create();
                let module = module(&context, "define ptx_kernel void @k(ptr %p) { ret void }");
                for _ in 0..10 {
                    session.ptx_of(&module, &options).unwrap();
                }
            });
        }
    });
}

/// A function that launches a kernel; `more` are more arguments of `cudaLaunchDeviceV2`, with their types.
fn launching(more: &str, types: &str) -> String {
    format!(
        "target triple = \"nvptx64-nvidia-cuda\"
        %struct.dim3 = type {{ i32, i32, i32 }}
        declare i32 @cudaLaunchDeviceV2(ptr, ptr{types})
        declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
        define ptx_kernel void @child(i32 %x) {{
          ret void
        }}
        define i32 @f(i32 %x) {{
          %b = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 {{i32 1, i32 1, i32 1}},
            %struct.dim3 {{i32 1, i32 1, i32 1}}, i32 0)
          store i32 1, ptr %b
          %r = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null{more})
          ret i32 %r
        }}"
    )
}

const CALLER: &str = "extern fn f(x: i32) -> i32;\nkernel k(p: *mut i32) { *p = f(1); }\n";

#[test]
fn messages_that_the_linker_prints_are_errors() {
    let Some(session) = session() else { return };
    let context = Context::create();
    let module = module(&context, &launching(", i32 2", ", i32"));
    let ptx = session.ptx_of(&module, &BuildOptions::default()).unwrap().0.0;
    let session = session.linking(vec![LinkInput::new("own.ptx", ptx.into_bytes()).unwrap()]);
    let program = compile::check(SourceMap::single("a.grid", CALLER)).unwrap();
    let error = session.cubin(&program, &BuildOptions::default()).unwrap_err().to_string();
    assert!(error.contains("Prototype doesn't match for 'cudaLaunchDeviceV2'"), "{error}");
    assert!(!error.contains('@'), "{error}");
}

/// The checks need no tool of NVIDIA, so neither does this test.
#[test]
fn modules_that_a_program_links_are_checked() {
    let foreign = "define i32 @f(i32 %x) {
          fence syncscope(\"agent\") acquire
          ret i32 %x
        }";
    let program = compile::check(SourceMap::single("a.grid", CALLER)).unwrap();
    for (text, wanted) in [
        (foreign, "own.ll:2: NVPTX has no synchronisation scope `agent`"),
        (&launching(", i32 2", ", i32"), "own.ll:3: `cudaLaunchDeviceV2` has the wrong signature"),
    ] {
        let input = LinkInput::new("own.ll", text.as_bytes().to_vec()).unwrap();
        let session = Session::new().linking(vec![input]);
        let error = session.ptx(&program, &BuildOptions::default()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_linked_module_that_launches_brings_the_device_runtime() {
    let Some(session) = session() else { return };
    let text = launching("", "");
    let context = Context::create();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "own.ll");
    let module = context.create_module_from_ir(buffer).unwrap();
    let ptx = session.ptx_of(&module, &BuildOptions::default()).unwrap().0.0;
    let program = compile::check(SourceMap::single("a.grid", CALLER)).unwrap();
    for (name, text) in [("own.ll", text), ("own.ptx", ptx)] {
        let input = LinkInput::new(name, text.into_bytes()).unwrap();
        let session = Session::new().linking(vec![input]);
        let built = session.cubin(&program, &BuildOptions::default());
        built.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
