//! Hand-written NVVM IR through libNVVM and nvJitLink, for every architecture: the loaders, the records in
//! the cubin, and the errors.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gridlet::Error;
use gridlet::arch::{CudaArch, Dialect};
use gridlet::compile::{BuildOptions, Session, check};
use gridlet::doctor::{self, Status};
use gridlet::launch::{LaunchChoice, LaunchStrategy};
use gridlet::layout::{ParamLayout, ParamSlot};
use gridlet::link::cubin::{KernelRecords, ParameterRecord, kernel_resources, parameter_records};
use gridlet::link::{Cubin, LinkOptions, NvJitLink, check_parameters, device_link};
use gridlet::nvvm::NvvmModule;
use gridlet::ptx::libnvvm::{LibNvvm, compile};
use gridlet::ptx::{Ptx, PtxOptions};
use gridlet::source::SourceMap;
use gridlet::toolchain::{Component, Search, Toolchain, Version};
use gridlet::types::Type;
use nvvm_tests::{FOR_LINKING, Tools, toolchain_or_skip};

const LEGACY: &str = include_str!("ir/launch_legacy.ll");
const MODERN: &str = include_str!("ir/launch_modern.ll");

fn module(dialect: Dialect, text: &str) -> NvvmModule {
    NvvmModule::new("launch.ll", dialect, text)
}

/// The module that launches, as `arch` takes it. Below 9.0 the second version of the device runtime has
/// other names.
fn launch_module(arch: CudaArch) -> NvvmModule {
    let text = match arch.dialect() {
        Dialect::Legacy => LEGACY,
        Dialect::Modern => MODERN,
    };
    if arch.public_names_are_cdp2() {
        return module(arch.dialect(), text);
    }
    let text = text
        .replace("@cudaGetParameterBufferV2", "@__cudaCDP2GetParameterBufferV2")
        .replace("@cudaLaunchDeviceV2", "@__cudaCDP2LaunchDeviceV2");
    module(arch.dialect(), &text)
}

fn arch(name: &str) -> CudaArch {
    name.parse().unwrap()
}

fn cubin(tools: &Tools, arch: CudaArch) -> Cubin {
    let ptx = tools.ptx(&launch_module(arch), arch).unwrap().ptx;
    tools.link(&ptx, arch).unwrap().cubin
}

/// Checks a tool's error: it keeps the tool's log, which contains `says`. The whole text is a snapshot for CUDA 13.0,
/// because other versions word it differently.
fn judge(tools: &Tools, name: &str, error: &Error, says: &str) {
    let Error::Tool { log, .. } = error else { panic!("{name}: {error}") };
    assert!(log.contains(says), "{name}: {error}");
    if tools.nvjitlink.version() == Version::new(13, 0) {
        insta::assert_snapshot!(name, error);
    }
}

/// The displayed error, without text that depends on the machine.
fn shown(error: &Error, hidden: &[(&Path, &str)]) -> String {
    let mut text = error.to_string();
    for (path, name) in hidden {
        text = text.replace(&path.display().to_string(), name);
    }
    text
}

#[test]
fn a_module_that_launches_becomes_a_cubin_for_every_architecture() {
    let Some(tools) = Tools::or_skip("libnvvm") else { return };
    for arch in CudaArch::SUPPORTED {
        let output = tools.ptx(&launch_module(arch), arch).unwrap();
        assert_eq!(output.log, "", "{arch}");
        assert!(output.ptx.0.contains(&format!(".target {}", arch.sm())), "{}", output.ptx.0);
        let linked = tools.link(&output.ptx, arch).unwrap();
        assert_eq!(linked.log, "", "{arch}");

        let record = |ordinal, offset, size| ParameterRecord { ordinal, offset, size };
        let kernel = |name: &str, parameters: &[ParameterRecord], parameter_bytes| KernelRecords {
            kernel: name.into(),
            parameters: parameters.into(),
            parameter_bytes,
        };
        let mut records = parameter_records(&linked.cubin).unwrap();
        assert!(records.is_sorted_by_key(|records| records.kernel.clone()));
        // The device runtime brings kernels of its own.
        records.retain(|records| !records.kernel.starts_with("__nv_static"));
        let expected = [
            kernel(
                "child",
                &[record(0, 0, 8), record(1, 8, 1), record(2, 16, 16), record(3, 32, 8)],
                40,
            ),
            kernel("nothing", &[], 0),
            kernel("parent", &[record(0, 0, 8), record(1, 8, 1)], 9),
        ];
        assert_eq!(records, expected, "{arch}");
    }
}

#[test]
fn the_cubin_is_checked_against_the_layout() {
    let Some(tools) = Tools::or_skip("check") else { return };
    let cubin = cubin(&tools, CudaArch::DEFAULT);
    let slot = |name: &str, ty, offset, size| ParamSlot {
        name: String::from(name),
        ty,
        offset,
        size,
        alignment: size,
    };
    let slots = vec![
        slot("out", Type::pointer_mut(Type::I32), 0, 8),
        slot("step", Type::Scalar(gridlet::types::Scalar::I8), 8, 1),
    ];
    let layout = ParamLayout { kernel: "parent".into(), slots, size: 9 };
    check_parameters(&cubin, [&layout]).unwrap();

    let mut wrong = layout.clone();
    wrong.slots[1].offset = 4;
    let error = check_parameters(&cubin, [&wrong]).unwrap_err();
    insta::assert_snapshot!("wrong_offset", error);
    let absent = ParamLayout { kernel: "nobody".into(), ..layout };
    let error = check_parameters(&cubin, [&absent]).unwrap_err();
    insta::assert_snapshot!("absent_kernel", error);
}

#[test]
fn resources_are_read_for_every_architecture() {
    let Some(tools) = Tools::or_skip("resources") else { return };
    for arch in CudaArch::SUPPORTED {
        // By hand, so that the sizes are known: 400 bytes of shared memory, 64 of local.
        let text = format!(
            ".version 8.7\n.target {arch}\n.address_size 64\n\
             .visible .entry plain() {{ ret; }}\n\
             .visible .entry busy(.param .u64 out) {{\n\
             .shared .align 4 .b8 tile[400];\n.local .align 16 .b8 frame[64];\n\
             .reg .b64 %rd<8>;\n.reg .b32 %r<8>;\n\
             ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n\
             mov.u64 %rd3, tile;\nadd.u64 %rd3, %rd3, %rd2;\nst.volatile.shared.u32 [%rd3], %r1;\n\
             mov.u64 %rd4, frame;\nadd.u64 %rd4, %rd4, %rd2;\nst.local.u32 [%rd4], %r1;\n\
             ld.volatile.shared.u32 %r2, [%rd3];\nld.local.u32 %r3, [%rd4];\n\
             add.u32 %r2, %r2, %r3;\nst.global.u32 [%rd1], %r2;\nret;\n}}\n"
        );
        let linked =
            device_link(&tools.nvjitlink, &Ptx(text), None, &[], arch, &LinkOptions::default());
        let resources = kernel_resources(&linked.unwrap().cubin).unwrap();
        let [busy, plain] = &resources[..] else { panic!("{resources:?}") };
        assert_eq!((busy.kernel.as_str(), plain.kernel.as_str()), ("busy", "plain"));
        assert_eq!((busy.static_shared_bytes, busy.local_bytes), (400, 64), "{arch}");
        assert_eq!((plain.static_shared_bytes, plain.local_bytes), (0, 0), "{arch}");
        assert!(busy.registers >= 4 && busy.registers <= 64, "{arch}: {busy:?}");
    }
}

#[test]
fn a_parameter_too_large_for_the_old_record_is_read() {
    let Some(tools) = Tools::or_skip("large parameters") else { return };
    for arch in CudaArch::SUPPORTED {
        let text = format!(
            ".version 8.7\n.target {arch}\n.address_size 64\n.visible .entry k(\n\
             .param .u8 a, .param .align 1 .b8 b[20000], .param .u64 .ptr .global .align 16 c) {{ ret; }}\n"
        );
        let linked =
            device_link(&tools.nvjitlink, &Ptx(text), None, &[], arch, &LinkOptions::default())
                .unwrap();
        let records = parameter_records(&linked.cubin).unwrap();
        let record = |ordinal, offset, size| ParameterRecord { ordinal, offset, size };
        assert_eq!(
            records[0].parameters,
            [record(0, 0, 1), record(1, 1, 20000), record(2, 20008, 8)],
            "{arch}"
        );
        assert_eq!(records[0].parameter_bytes, 20016, "{arch}");
    }
}

#[test]
fn options_reach_the_tools() {
    let Some(tools) = Tools::or_skip("options") else { return };
    let arch = CudaArch::DEFAULT;
    let plain = module(Dialect::Legacy, LEGACY);
    let at = |options: &PtxOptions| {
        compile(&tools.libnvvm, &plain, Some(tools.toolchain.libdevice().unwrap()), arch, options)
            .unwrap()
            .ptx
    };
    let fast = at(&PtxOptions::default());
    let slow = at(&PtxOptions::default().with_opt_level(0));
    assert!(slow.0.len() > fast.0.len(), "level 0 is as short as level 3:\n{}", slow.0);
    at(&PtxOptions::default().with_line_info(true));
    let debug = at(&PtxOptions::default().with_opt_level(0).with_debug(true));

    let cudadevrt = Some(tools.toolchain.cudadevrt().unwrap());
    let options = LinkOptions::default().with_opt_level(0).with_line_info(true).with_debug(true);
    let linked = device_link(&tools.nvjitlink, &debug, cudadevrt, &[], arch, &options).unwrap();
    assert!(
        parameter_records(&linked.cubin).unwrap().iter().any(|records| records.kernel == "parent")
    );
}

#[test]
fn libdevice_is_linked_when_it_is_given() {
    let Some(tools) = Tools::or_skip("libdevice") else { return };
    let text = "declare float @__nv_sinf(float)\n\
        define void @k(float* %p) {\n  %x = load float, float* %p\n  %y = call float @__nv_sinf(float %x)\n\
        store float %y, float* %p\n  ret void\n}\n\
        !nvvm.annotations = !{!0}\n!0 = !{void (float*)* @k, !\"kernel\", i32 1}\n\
        !nvvmir.version = !{!1}\n!1 = !{i32 2, i32 0}\n";
    let text =
        format!("{}{text}", LEGACY.split_inclusive('\n').skip(1).take(2).collect::<String>());
    let module = module(Dialect::Legacy, &text);
    let options = PtxOptions::default();
    let arch = CudaArch::DEFAULT;
    let with =
        compile(&tools.libnvvm, &module, tools.toolchain.libdevice().ok(), arch, &options).unwrap();
    assert!(!with.ptx.0.contains("__nv_sinf"), "{}", with.ptx.0);
    let without = tools.ptx(&module, arch).unwrap();
    assert!(without.ptx.0.contains(".extern .func  (.param .b32 func_retval0) __nv_sinf"));
    let error = tools.link(&without.ptx, arch).unwrap_err();
    judge(&tools, "unresolved_libdevice", &error, "Undefined reference to '__nv_sinf'");
}

#[test]
fn libnvvm_s_refusals_keep_its_log() {
    let Some(tools) = Tools::or_skip("broken IR") else { return };
    let (hopper, blackwell) = (CudaArch::DEFAULT, arch("sm_100"));
    let cases = [
        ("empty", hopper, String::new(), "incompatible"),
        ("not_ir", hopper, "This is no IR.\n".into(), "(1, 0): parse expected"),
        ("modern_text_for_hopper", hopper, MODERN.into(), "parse expected type"),
        (
            "wrong_type",
            hopper,
            LEGACY.replace("store i32 %wide, i32* %out", "store i8 %sum, i32* %out"),
            "do not match",
        ),
        (
            "unknown_value",
            blackwell,
            MODERN.replace("%failed, label", "%fialed, label"),
            "undefined value '%fialed'",
        ),
        ("no_version", hopper, LEGACY.replace("!nvvmir.version", "!other.version"), "incompatible"),
        (
            "no_triple",
            hopper,
            LEGACY.replace("nvptx64-nvidia-cuda", "x86_64-linux-gnu"),
            "Invalid target triple",
        ),
        (
            "indirect_branch",
            hopper,
            LEGACY.replace(
                "@nothing() {\nentry:\n  ret void",
                "@nothing() {\nentry:\n  indirectbr i8* null, [label %end]\nend:\n  ret void",
            ),
            "Illegal instruction: indirectbr",
        ),
    ];
    for (name, arch, text, says) in cases {
        let error = tools.ptx(&module(arch.dialect(), &text), arch).unwrap_err();
        judge(&tools, name, &error, says);
    }
}

/// libNVVM looks for such arguments after inlining, and without positions the warning ends its process.
#[test]
fn a_local_pointer_that_reaches_a_launch_through_a_function_is_a_warning() {
    if toolchain_or_skip(
        "a_local_pointer_that_reaches_a_launch_through_a_function_is_a_warning",
        &[Component::LibNvvm],
    )
    .is_none()
    {
        return;
    }
    let grid = "kernel child(p: *mut u32) { p[0] = 1; }\n\
                fn pass(p: *mut u32) { launch child<<<1, 1, stream = fire_and_forget>>>(p); }\n\
                kernel start() { let mut a: u32 = 3; pass(&a); }\n";
    let program = check(SourceMap::single("pass.grid", grid)).unwrap();
    for (name, debug_lines) in
        [("sm_90", false), ("sm_90", true), ("sm_100", false), ("sm_100", true)]
    {
        let session = Session::new();
        let options = BuildOptions::for_arch(arch(name))
            .with_launch(LaunchChoice::Fixed(LaunchStrategy::Cdp))
            .with_debug_lines(debug_lines);
        let (ptx, _) = session.ptx(&program, &options).unwrap();
        assert_eq!(ptx.0.contains("pass.grid"), debug_lines, "{name}");
        let warnings = session.take_tool_warnings();
        let shown: Vec<&str> = warnings.iter().map(|warning| warning.message.as_str()).collect();
        let wanted = if debug_lines {
            "pass.grid(2) : Warning: A pointer to local"
        } else {
            "function `pass`: A pointer to local"
        };
        assert!(shown.len() == 1 && shown[0].contains(wanted), "{name}: {shown:?}");
    }
}

#[test]
fn a_module_in_the_other_dialect_is_refused_before_the_library_sees_it() {
    let Some(tools) = Tools::or_skip("dialects") else { return };
    let error = tools.ptx(&module(Dialect::Modern, ""), CudaArch::DEFAULT).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)));
    insta::assert_snapshot!("modern_module_for_hopper", error);
    let error = tools.ptx(&module(Dialect::Legacy, ""), arch("sm_120")).unwrap_err();
    insta::assert_snapshot!("legacy_module_for_blackwell", error);
}

#[test]
fn the_linker_s_refusals_keep_its_log() {
    let Some(tools) = Tools::or_skip("link errors") else { return };
    let hopper = CudaArch::DEFAULT;
    let ptx = tools.ptx(&launch_module(hopper), hopper).unwrap().ptx;
    let link = |ptx: &Ptx, arch| {
        device_link(&tools.nvjitlink, ptx, None, &[], arch, &LinkOptions::default()).unwrap_err()
    };
    let name = "cudaGetParameterBufferV2";
    judge(&tools, "unresolved_device_runtime", &link(&ptx, hopper), name);
    let broken = Ptx(ptx.0.replace("ret;", "retrun;"));
    judge(&tools, "broken_ptx", &link(&broken, hopper), "'retrun'");
    judge(&tools, "ptx_for_a_newer_gpu", &link(&ptx, arch("sm_80")), "SM version");
    judge(&tools, "empty_ptx", &link(&Ptx(String::new()), hopper), "bad input");
}

#[test]
fn files_that_are_missing_or_damaged_are_errors() {
    let Some(tools) = Tools::or_skip("damaged libraries") else { return };
    let folder = tempfile::tempdir().unwrap();
    let hidden = [(folder.path(), "FOLDER"), (tools.toolchain.libnvvm().unwrap(), "LIBNVVM")];
    let missing = folder.path().join("libnvvm.so.4");
    insta::assert_snapshot!(
        "library_missing",
        shown(&LibNvvm::load(&missing).unwrap_err(), &hidden)
    );

    let text = folder.path().join("libtext.so");
    std::fs::write(&text, "not a library").unwrap();
    insta::assert_snapshot!(
        "library_is_text",
        shown(&NvJitLink::load(&text).unwrap_err(), &hidden)
    );

    // A cut library must be refused before it is mapped, because mapping it would kill the process.
    let whole = std::fs::read(tools.toolchain.libnvvm().unwrap()).unwrap();
    let cut = folder.path().join("libcut.so");
    for length in [0, 20, 64, 500, 5000, 100_000, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&cut, &whole[..length]).unwrap();
        let error = LibNvvm::load(&cut).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{length}: {error}");
    }
    std::fs::write(&cut, &whole[..1_000_000]).unwrap();
    let text = shown(&LibNvvm::load(&cut).unwrap_err(), &hidden)
        .replace(&whole.len().to_string(), "WHOLE");
    insta::assert_snapshot!("library_cut_off", text);

    // A library without the functions.
    let other = NvJitLink::load(tools.toolchain.libnvvm().unwrap()).unwrap_err();
    insta::assert_snapshot!("library_is_another", shown(&other, &hidden));

    let arch = CudaArch::DEFAULT;
    let nowhere = folder.path().join("libdevice.10.bc");
    let module = launch_module(arch);
    let error =
        compile(&tools.libnvvm, &module, Some(&nowhere), arch, &PtxOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let ptx = tools.ptx(&module, arch).unwrap().ptx;
    let error =
        device_link(&tools.nvjitlink, &ptx, Some(&nowhere), &[], arch, &LinkOptions::default())
            .unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    std::fs::write(&nowhere, "no archive").unwrap();
    let error =
        device_link(&tools.nvjitlink, &ptx, Some(&nowhere), &[], arch, &LinkOptions::default())
            .unwrap_err();
    assert!(matches!(error, Error::Tool { .. }), "{error}");
}

/// No panic, and no endless loop, on cubins cut at every length of the interesting parts and with bytes
/// changed everywhere.
#[test]
fn damaged_cubins_are_read_without_a_panic() {
    let Some(tools) = Tools::or_skip("damaged cubins") else { return };
    let arch = CudaArch::DEFAULT;
    // Without the device runtime's kernels, so that most changed bytes matter.
    let text = ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 a, .param .u64 b) { ret; }\n";
    let linked =
        device_link(&tools.nvjitlink, &Ptx(text.into()), None, &[], arch, &LinkOptions::default())
            .unwrap();
    let whole = linked.cubin;
    let intact = parameter_records(&whole).unwrap();
    assert_eq!(intact[0].parameters.len(), 2);

    let mut refused = 0;
    let mut read = |bytes: Vec<u8>| {
        let cubin = Cubin(bytes);
        let (records, resources) = (parameter_records(&cubin), kernel_resources(&cubin));
        for error in [records.err(), resources.err()].into_iter().flatten() {
            assert!(matches!(error, Error::Invalid(_)), "{error}");
            refused += 1;
        }
    };
    for length in 0..whole.0.len() {
        read(whole.0[..length].to_vec());
    }
    for at in 0..whole.0.len() {
        for value in [0x00, 0x01, 0x04, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.0.clone();
            bytes[at] = value;
            read(bytes);
        }
    }
    assert!(refused > whole.0.len(), "only {refused} refused");
}

#[test]
fn the_report_names_versions_and_what_is_unusable() {
    let Some(toolchain) = toolchain_or_skip("report", &FOR_LINKING) else { return };
    let report = doctor::report(&toolchain);
    assert!(report.can_build());
    let find =
        |name: &str| report.components.iter().find(|component| component.name == name).unwrap();
    assert!(find("libNVVM").version.as_deref().unwrap().ends_with("NVVM IR 2.0"));
    assert!(find("nvJitLink").version.as_deref().unwrap() >= "12.8");

    // The same toolkit with one truncated library.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lib64")).unwrap();
    let whole = std::fs::read(toolchain.nvjitlink().unwrap()).unwrap();
    std::fs::write(folder.path().join("lib64/libnvJitLink.so.13"), &whole[..whole.len() / 3])
        .unwrap();
    let report =
        doctor::report(&Toolchain::search(Search::from_roots([folder.path().to_path_buf()])));
    let nvjitlink =
        report.components.iter().find(|component| component.name == "nvJitLink").unwrap();
    assert_eq!(nvjitlink.status, Status::Unusable);
    assert!(nvjitlink.problem.as_deref().unwrap().contains("truncated"));
    assert!(!report.can_build());
}

/// NVIDIA's own reader of cubins agrees with ours on all kernels, including those of the device runtime.
#[test]
fn cuobjdump_reads_the_same() {
    let Some(tools) = Tools::or_skip("cuobjdump") else { return };
    if toolchain_or_skip("cuobjdump", &[Component::Cuobjdump]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let dump = |file: &Path, option: &str| {
        let cuobjdump = tools.toolchain.path(Component::Cuobjdump).unwrap();
        let output = Command::new(cuobjdump).arg(option).arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for arch in CudaArch::SUPPORTED {
        let cubin = cubin(&tools, arch);
        let file = folder.path().join(format!("{arch}.cubin"));
        std::fs::write(&file, &cubin.0).unwrap();

        let mut printed = printed_parameters(&dump(&file, "-elf"));
        for records in parameter_records(&cubin).unwrap() {
            let mut theirs = printed.remove(&records.kernel).unwrap_or_default();
            theirs.sort();
            assert_eq!(records.parameters, theirs, "{arch}: {}", records.kernel);
        }
        printed.retain(|_, parameters| !parameters.is_empty());
        assert!(printed.is_empty(), "{arch}: not read: {printed:?}");

        let usage = dump(&file, "-res-usage");
        for resources in kernel_resources(&cubin).unwrap() {
            let (_, line) = usage.split_once(&format!("Function {}:\n", resources.kernel)).unwrap();
            let number = |name: &str| -> u64 {
                let (_, rest) = line.split_once(name).unwrap();
                rest[..rest.find(' ').unwrap()].parse().unwrap()
            };
            assert_eq!(number("REG:"), u64::from(resources.registers), "{arch}: {resources:?}");
            // cuobjdump includes the memory that the system reserves.
            let reserved = number("SHARED:") - resources.static_shared_bytes;
            assert!(reserved == 0 || reserved == 1024, "{arch}: {resources:?}");
        }
    }
}

/// The parameters in the output of `cuobjdump -elf`, by kernel.
fn printed_parameters(text: &str) -> BTreeMap<String, Vec<ParameterRecord>> {
    let mut all: BTreeMap<String, Vec<ParameterRecord>> = BTreeMap::new();
    let mut kernel = None;
    for line in text.lines() {
        if line.starts_with('.') {
            // The sections `.nv.merc.nv.info.…` of newer architectures repeat the records.
            kernel = line.trim_end().strip_prefix(".nv.info.").map(str::to_owned);
        }
        let field = |name: &str| -> Option<u32> {
            let rest = line.split_once(name)?.1.trim_start_matches([' ', ':']);
            let number = rest.split_whitespace().next()?.strip_prefix("0x")?;
            u32::from_str_radix(number, 16).ok()
        };
        if let (Some(kernel), Some(ordinal), Some(offset), Some(size)) =
            (&kernel, field("Ordinal"), field("Offset"), field("Size"))
        {
            let record = ParameterRecord { ordinal: ordinal as u16, offset, size };
            all.entry(kernel.clone()).or_default().push(record);
        }
    }
    all
}
