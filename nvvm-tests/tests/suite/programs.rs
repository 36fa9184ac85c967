//! Every example program, by every route to machine code.
//!
//! The snapshots need no toolkit; the checks of the same text by NVIDIA's tools do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridlet::Error;
use gridlet::arch::{CudaArch, Dialect};
use gridlet::compile::{self, Backend, BuildOptions, Built, Checked, DialectChoice, Session};
use gridlet::host::Build;
use gridlet::launch::{LaunchChoice, LaunchStrategy};
use gridlet::ptx::Ptx;
use gridlet::toolchain::{Component, Search, Toolchain};
use gridlet_runtime::Artifact;
use gridlet_runtime::manifest::ImageKind;
use nvvm_tests::{FOR_CUBINS, FOR_LINKING, FOR_PTX, toolchain_or_skip};

/// The example programs, in the order of their names.
fn programs() -> Vec<(String, Checked)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/programs");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 4, "{} programs", paths.len());
    paths.iter().map(|path| checked(path)).collect()
}

/// A program that uses every built-in.
fn built_ins() -> (String, Checked) {
    checked(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/in/built_ins.grid"))
}

fn checked(path: &Path) -> (String, Checked) {
    let checked = compile::load(path).and_then(compile::check);
    let checked = checked.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (checked.name(), checked)
}

fn text(program: &Checked, arch: CudaArch, dialect: Dialect) -> String {
    let options = BuildOptions::for_arch(arch).with_dialect(DialectChoice::Fixed(dialect));
    let module = compile::nvvm(program, &options).unwrap();
    assert_eq!(module.dialect, dialect);
    String::from_utf8(module.bytes).unwrap()
}

#[test]
fn nvvm_ir_of_every_program_in_both_dialects() {
    for (name, program) in programs() {
        let (hopper, blackwell) = ("sm_90".parse().unwrap(), "sm_100".parse().unwrap());
        insta::assert_snapshot!(format!("{name}.legacy"), text(&program, hopper, Dialect::Legacy));
        insta::assert_snapshot!(
            format!("{name}.modern"),
            text(&program, blackwell, Dialect::Modern)
        );
    }
}

#[test]
fn device_runtime_names_are_those_of_the_architecture() {
    for (name, program) in programs() {
        for arch in CudaArch::SUPPORTED {
            let text = text(&program, arch, arch.dialect());
            let private = text.contains("@__cudaCDP2LaunchDeviceV2(");
            let public = text.contains("@cudaLaunchDeviceV2(");
            assert_eq!(
                (private, public),
                (!arch.public_names_are_cdp2(), arch.public_names_are_cdp2()),
                "{name} for {arch}"
            );
        }
    }
}

#[test]
fn build_scripts_get_machine_code_for_each_architecture() {
    let test = "build_scripts_get_machine_code_for_each_architecture";
    if toolchain_or_skip(test, &FOR_LINKING).is_none() {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/programs/quicksort.grid");
    // In a process of its own: after other compilations, as other tests do them at the same time, libNVVM 13.0 gives other code
    // for the same module.
    const ALONE: &str = "GRIDLET_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", &format!("programs::{test}"), "--nocapture"]).env(ALONE, "1");
        let output = alone.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}\n{log}");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let archs: [CudaArch; 2] = ["sm_120".parse().unwrap(), "sm_80".parse().unwrap()];
    let build = archs.into_iter().fold(Build::new(&file), Build::arch);
    build.out_dir(out.path()).compile().unwrap();

    let artifact = Artifact::open(out.path().join("quicksort.gridlet")).unwrap();
    assert_eq!(artifact.images().count(), 2);
    let (session, program) = (Session::new(), checked(&file).1);
    for ((image, bytes), arch) in artifact.images().zip(archs) {
        assert_eq!((image.kind, &image.arch), (ImageKind::Cubin, &arch.sm()));
        let options = BuildOptions::for_arch(arch).with_launch(LaunchChoice::Auto);
        let cubin = session.cubin(&program, &options).unwrap().cubin;
        assert!(bytes == cubin.0, "not the machine code for {arch}");
    }
    assert!(fs::read_to_string(out.path().join("quicksort.rs")).unwrap().contains("BUNDLE"));
}

/// Assembles PTX with ptxas, warnings being errors.
fn ptxas(tool: &Path, ptx: &str, arch: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.ptx"), folder.path().join("a.cubin"));
    fs::write(&input, ptx).unwrap();
    // Relocatable, because the device runtime's functions are only declared.
    let arch = format!("-arch={arch}");
    let result =
        Command::new(tool).args(["-c", &arch, "-o"]).arg(&output).arg(&input).output().unwrap();
    let log = String::from_utf8_lossy(&result.stderr).into_owned();
    if result.status.success() && output.metadata().is_ok_and(|file| file.len() > 0) {
        Ok(())
    } else {
        Err(log)
    }
}

#[test]
fn nvidia_takes_every_program_by_libnvvm_for_every_architecture() {
    nvidia_takes_every_program(
        "nvidia_takes_every_program_by_libnvvm_for_every_architecture",
        Backend::LibNvvm,
    );
}

#[test]
fn nvidia_takes_every_program_by_nvptx_for_every_architecture() {
    nvidia_takes_every_program(
        "nvidia_takes_every_program_by_nvptx_for_every_architecture",
        Backend::Nvptx,
    );
}

/// Architectures that ptxas knows and that run the code of one of ours.
const RELATED: [(&str, &str); 5] = [
    ("sm_86", "sm_87"),
    ("sm_100", "sm_103"),
    ("sm_100", "sm_110"),
    ("sm_90", "sm_100"),
    ("sm_120", "sm_121"),
];

/// One test for each back end, so that they run at the same time.
fn nvidia_takes_every_program(test: &str, backend: Backend) {
    let Some(toolchain) = toolchain_or_skip(test, &FOR_CUBINS) else { return };
    let assembler = toolchain.path(Component::Ptxas).unwrap().to_path_buf();
    let session = Session::with_toolchain(toolchain);
    for (name, program) in programs().into_iter().chain([built_ins()]) {
        for arch in CudaArch::SUPPORTED {
            let (cdp, resident) = (LaunchStrategy::Cdp, LaunchStrategy::Resident);
            let mut ways = vec![(true, false, cdp), (false, false, cdp), (true, true, cdp)];
            // The scheduler is the same in every program, and takes long to compile.
            if name == "quicksort" {
                ways.push((true, true, resident));
            }
            for (optimize, statistics, launch) in ways {
                let what = format!(
                    "{name} for {arch}, {launch}, optimize: {optimize}, statistics: {statistics}"
                );
                let launch = launch.into();
                let for_arch = BuildOptions::for_arch(arch);
                let options = for_arch
                    .with_backend(backend)
                    .with_optimize(optimize)
                    .with_statistics(statistics)
                    .with_launch(launch);
                // This compares the cubin's parameter records with the layout pass.
                let built = session.cubin(&program, &options);
                let built = built.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(built.log, "", "{what}");
                assert!(built.ptx.0.contains(&format!(".target {arch}")), "{what}");
                let mut assemblies = vec![arch.sm()];
                if optimize && !statistics {
                    let related = RELATED.iter().filter(|(own, _)| *own == arch.sm());
                    assemblies.extend(related.map(|(_, other)| (*other).to_owned()));
                }
                for to in assemblies {
                    let made = ptxas(&assembler, &built.ptx.0, &to);
                    made.unwrap_or_else(|log| panic!("{what} to {to}: {log}"));
                }
            }
        }
    }
}

#[test]
fn libdevice_is_linked_only_when_used() {
    let Some(toolchain) = toolchain_or_skip("libdevice_is_linked_only_when_used", &FOR_PTX) else {
        return;
    };
    let session = Session::with_toolchain(toolchain);
    let ptx = |source: &str, backend| {
        let program = compile::check(gridlet::source::SourceMap::single("a.grid", source)).unwrap();
        let options = BuildOptions::default().with_backend(backend).with_optimize(false);
        session.ptx(&program, &options).unwrap().0.0
    };
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        let without = ptx("kernel k(p: *mut f32) { *p = *p * 2.0; }", backend);
        let with = ptx("kernel k(p: *mut f32) { *p = sin(*p); }", backend);
        // Payne-Hanek reduction needs a table of digits of 2/pi, which only libdevice has.
        assert!(with.contains("__cudart_i2opi_f"), "{backend:?}: {with}");
        assert!(
            !without.contains("__nv_") && !without.contains("__cudart"),
            "{backend:?}: {without}"
        );
        assert!(
            !with.contains(".extern .func"),
            "{backend:?}: all of libdevice's functions are there: {with}"
        );
    }
}

#[test]
fn programs_that_need_no_linking_are_assembled_whole() {
    let test = "programs_that_need_no_linking_are_assembled_whole";
    let Some((assembler, linker, _root)) = with_and_without_ptxas(test) else { return };

    let build = |session: &Session, source: &str, launch: LaunchStrategy| {
        let program = compile::check(gridlet::source::SourceMap::single("a.grid", source)).unwrap();
        let options = BuildOptions::default().with_launch(launch.into());
        let built = session.cubin(&program, &options).unwrap();
        assert_eq!(built.log, "");
        built
    };
    let plain = "kernel k(p: *mut u32) { printf(\"%u\", *p); *p = 1; }";
    let nested =
        "kernel c(p: *mut u32) { *p = 1; } kernel k(p: *mut u32) { launch c<<<1, 1>>>(p); }";
    let (cdp, resident) = (LaunchStrategy::Cdp, LaunchStrategy::Resident);
    for (source, launch) in [(plain, cdp), (nested, resident)] {
        let [whole, linked] = [&assembler, &linker].map(|session| build(session, source, launch));
        assert_ne!(whole.cubin, linked.cubin);
        let again = build(&assembler, source, launch);
        assert_eq!(whole.cubin, again.cubin, "the same program gives the same bytes");
        assert_eq!(kernel_names(&whole), kernel_names(&linked));
    }
    // The resident kernel has no more registers than its kernels need, or 64 where blocks have one warp.
    let registers_of = |built: &Built| {
        let all = gridlet::link::cubin::kernel_resources(&built.cubin).unwrap();
        all.iter().find(|kernel| kernel.kernel == "__gridlet_resident").unwrap().registers
    };
    let registers =
        |session: &Session, source: &str| registers_of(&build(session, source, resident));
    let limited = build(&assembler, nested, resident);
    assert!(limited.ptx.0.contains("\n.maxnreg 64\n"), "{}", limited.ptx.0);
    assert!((60..=64).contains(&registers_of(&limited)));
    assert!(registers(&linker, nested) > 64);
    // Kernels with loops may have fewer, unless they are launched and launch.
    let loops = |levels: &str| {
        format!(
            "#[launch_bounds(256)] kernel c(p: *mut u32) {{ for i in 0..*p {{ p[i] += 1; }} {levels} }}
            #[launch_bounds(256)] kernel k(p: *mut u32) {{ launch c<<<1, 256, stream = fire_and_forget>>>(p); }}"
        )
    };
    let again = "launch c<<<1, 256, stream = fire_and_forget>>>(p);";
    for (levels, limit) in [("", 32), (again, 64)] {
        let limited = build(&assembler, &loops(levels), resident);
        assert!(limited.ptx.0.contains(&format!("\n.maxnreg {limit}\n")), "{}", limited.ptx.0);
    }
    // A kernel that needs many of them, in blocks of which as many threads as there can be.
    let wide = "kernel c(p: *mut f32) {
            let mut values: [f32; 80];
            #[unroll]
            for i in 0..80 { values[i] = p[i]; }
            sync_threads();
            #[unroll]
            for i in 0..80 { p[i * 7 % 80] = values[i]; }
        }";
    let launched = format!("{wide} kernel k(p: *mut f32) {{ launch c<<<1, 1024>>>(p); }}");
    let declared = format!(
        "{wide} #[launch_bounds(1024)] kernel k(p: *mut f32) {{ launch c<<<1, 32>>>(p); }}"
    );
    let neither = format!("{wide} kernel k(p: *mut f32) {{ launch c<<<1, 32>>>(p); }}");
    assert_eq!(registers(&assembler, &launched), 64);
    assert_eq!(registers(&assembler, &declared), 64);
    assert!(registers(&assembler, &neither) > 64);
}

#[test]
fn long_programs_that_are_linked_are_assembled_by_ptxas() {
    let test = "long_programs_that_are_linked_are_assembled_by_ptxas";
    let Some((assembler, linker, _root)) = with_and_without_ptxas(test) else { return };
    let options = BuildOptions::default().with_launch(LaunchStrategy::Cdp.into());
    let short = compile::check(gridlet::source::SourceMap::single(
        "a.grid",
        "kernel c(p: *mut u32) { *p = 1; } kernel k(p: *mut u32) { launch c<<<1, 1>>>(p); }",
    ));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/programs");
    let (_, long) = checked(&folder.join("quicksort.grid"));
    let tools = |session: &Session| -> Vec<String> {
        session.versions().into_iter().map(|(name, _)| name).collect()
    };
    let all = ["gridlet", "libcudadevrt", "libnvvm", "llvm", "nvjitlink", "ptxas"];
    assembler.cubin(&short.unwrap(), &options).unwrap();
    assert_eq!(tools(&assembler), all[..5]);

    let [assembled, linked, again] = [&assembler, &linker, &assembler].map(|session| {
        let built = session.cubin(&long, &options).unwrap();
        assert!(built.ptx.0.contains("cudaLaunchDeviceV2"));
        assert_eq!(built.log, "");
        built
    });
    assert_eq!(tools(&assembler), all);
    // Without the version of the toolkit, whose files are linked here one by one.
    assert_eq!(tools(&linker), ["gridlet", "libnvvm", "llvm", "nvjitlink"]);
    assert_eq!(assembled.cubin, again.cubin, "the same program gives the same bytes");
    assert_eq!(kernel_names(&assembled), kernel_names(&linked));

    // An error of either quotes what it is about.
    let wrong = Ptx(format!(
        "{}\n.func f()\n{{\n\tmov.b99 %r1, 2;\n}}\n",
        assembler.ptx(&long, &options).unwrap().0.0
    ));
    for (session, name) in [(&assembler, "ptxas"), (&linker, "nvJitLink")] {
        let error = session.device_link(&wrong, true, &options).unwrap_err();
        let Error::Tool { tool, log, .. } = error else { panic!("{error}") };
        assert_eq!(tool, name);
        assert!(log.contains(".b99"), "{log}");
    }
}

/// A session with the toolkit, one with its folders as a toolkit without ptxas, and the folder of that.
fn with_and_without_ptxas(test: &str) -> Option<(Session, Session, tempfile::TempDir)> {
    let toolchain = toolchain_or_skip(test, &FOR_CUBINS)?;
    let root = tempfile::tempdir().unwrap();
    let folder = |path: &str, component| {
        let link = root.path().join(path);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let folder = toolchain.path(component).unwrap().parent().unwrap();
        std::os::unix::fs::symlink(folder, link).unwrap();
    };
    folder("lib", Component::CudaDevRt);
    folder("lib64", Component::NvJitLink);
    folder("nvvm/lib64", Component::LibNvvm);
    let without = Toolchain::search(Search::from_roots([root.path().to_path_buf()]));
    Some((Session::with_toolchain(toolchain), Session::with_toolchain(without), root))
}

fn kernel_names(built: &Built) -> Vec<String> {
    let all = gridlet::link::cubin::kernel_resources(&built.cubin).unwrap();
    all.into_iter().map(|kernel| kernel.kernel).collect()
}
