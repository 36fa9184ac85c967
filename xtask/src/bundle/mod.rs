//! `cargo xtask bundle`: a folder with which a GPU machine without Rust or LLVM tests and measures Gridlet.
//!
//! Each program that links LLVM is about 57 MB even when stripped, so all of them travel in one archive, compressed
//! with a dictionary that is wider than a program: the second copy of LLVM then takes 1.4 MB where the first takes
//! 13 MB. The scripts unpack it on first use.

mod fuzz;
mod programs;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::{cli, process, report, setup};
use programs::Program;

/// The largest size of a bundle.
const LIMIT: u64 = 60_000_000;
/// The archs that the artifacts have images for.
const ARCHS: &str = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120";
const COMMON: (&str, &str) = ("common.bash", include_str!("common.bash"));
const SCRIPTS: [(&str, &str); 4] = [
    COMMON,
    ("run-tests", include_str!("run-tests")),
    ("run-trees", include_str!("run-trees")),
    ("run-bench", include_str!("run-bench")),
];
/// Their description for `ABOUT.txt`.
const USE: &str = "\
./run-tests               runs the tests that need an NVIDIA GPU, and the demo
./run-tests --memcheck    runs each of those tests under compute-sanitizer instead
./run-trees --count N     runs N random launch trees with both launch strategies; without arguments 100
./run-bench               measures

They unpack programs.tar.xz on first use and write to ./out, or to the folder in OUT.
";
/// Marks a folder as a bundle, which may be replaced.
const ABOUT: &str = "ABOUT.txt";

/// Makes the bundle.
pub(crate) fn run(options: &cli::Bundle) -> Result<()> {
    let environment = setup::ready()?;
    let out = std::path::absolute(&options.out)?;
    clear(&out)?;
    for tool in ["strip", "tar", "xz", "ldd", "cc"] {
        if process::find_program(tool).is_none() {
            bail!(
                "`{tool}` is not on PATH; on Debian and Ubuntu: apt-get install binutils gcc tar xz-utils libc-bin"
            );
        }
    }

    let next = if options.fuzz {
        fuzz::make(&environment, &out)?;
        "Copy the folder to a machine with many processors and run ./run-fuzz there."
    } else {
        make(&environment, &out)?;
        "Copy the folder to a machine with an NVIDIA GPU and run ./run-tests or ./run-bench there."
    };

    let bytes = list(&out, &out)?;
    ensure!(
        bytes <= LIMIT,
        "{} is {}, more than the {} that a bundle may weigh: leave a program of `bundle/programs.rs` out",
        out.display(),
        report::bytes(bytes),
        report::bytes(LIMIT)
    );
    report::done("bundle", &format!("{} ({})", out.display(), report::bytes(bytes)));
    report::note(next);
    Ok(())
}

fn make(environment: &setup::Environment, out: &Path) -> Result<()> {
    let programs = programs::build(environment)?;
    let unpacked = tempfile::tempdir()?;
    copy_programs(&programs, unpacked.path())?;
    copy_libraries(&programs, &unpacked.path().join("lib"))?;
    copy_sources("examples/programs", &out.join("programs"))?;
    copy_sources("compiler/tests/in/ok", &unpacked.path().join("in"))?;
    // As the programs name them: `../used/…`.
    copy_sources("compiler/tests/in/used", &unpacked.path().join("used"))?;
    build_artifacts(environment, &programs, out)?;
    build_c_host(environment, &programs, &unpacked.path().join("c"))?;
    pack(unpacked.path(), &out.join("programs.tar.xz"))?;
    write_commit(&out.join("commit"))?;
    write_scripts(&SCRIPTS, USE, out)
}

/// Writes the commit that the bundle is made from, which the figures of its benchmark name. Sources without git have none.
fn write_commit(file: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--exclude=*"]).current_dir(process::workspace());
    let commit = process::output(&mut git).unwrap_or_default();
    Ok(std::fs::write(file, commit.trim())?)
}

/// Makes `out` an empty folder, but never removes one that is not a bundle.
fn clear(out: &Path) -> Result<()> {
    let is_empty = !out.exists() || std::fs::read_dir(out)?.next().is_none();
    if !is_empty {
        ensure!(
            out.join(ABOUT).is_file(),
            "{} has files in it and is no bundle: name another folder with --out, or empty it",
            out.display()
        );
        std::fs::remove_dir_all(out)?;
    }
    // Write the mark first, so that a run that fails half way can be repeated.
    std::fs::create_dir_all(out)?;
    Ok(std::fs::write(out.join(ABOUT), "Not complete.\n")?)
}

/// `usage` is what the scripts do.
fn about(usage: &str) -> String {
    let libc = process::output(Command::new("getconf").arg("GNU_LIBC_VERSION")).map_or_else(
        |_| "the glibc of the machine that built it".into(),
        |text| text.trim().to_string(),
    );
    format!(
        "Gridlet {version} for {machine} Linux with {libc} or newer.\n\n{usage}",
        version = env!("CARGO_PKG_VERSION"),
        machine = std::env::consts::ARCH,
    )
}

fn copy_programs(programs: &[Program], folder: &Path) -> Result<()> {
    for program in programs {
        let target = folder.join(&program.place);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent)?;
        }
        process::run(Command::new("strip").arg("-o").arg(&target).arg(&program.file))?;
    }
    Ok(())
}

/// Copies the shared libraries that the programs need and a machine may lack; the scripts use them only if it does.
fn copy_libraries(programs: &[Program], folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for program in programs {
        let listed = process::output(Command::new("ldd").arg(&program.file))?;
        for (name, path) in libraries(&listed) {
            std::fs::copy(&path, folder.join(name))
                .with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Names and paths out of `ldd`'s list, without glibc and the C++ runtime: those must be the machine's own.
fn libraries(listed: &str) -> Vec<(String, PathBuf)> {
    const OWN: [&str; 9] = [
        "libc.so",
        "libm.so",
        "libdl.so",
        "librt.so",
        "libpthread.so",
        "libgcc_s.so",
        "libstdc++.so",
        "ld-",
        "linux-vdso",
    ];
    listed
        .lines()
        .filter_map(|line| line.trim().split_once(" => "))
        .filter(|(name, _)| !OWN.iter().any(|own| name.starts_with(own)))
        .filter_map(|(name, rest)| Some((name.to_string(), rest.split_once(" (")?.0.into())))
        .collect()
}

/// Copies the `.grid` files of a folder of the workspace.
fn copy_sources(from: &str, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for file in sources(from)? {
        if let Some(name) = file.file_name() {
            std::fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

/// The `.grid` files of a folder of the workspace, sorted.
fn sources(folder: &str) -> Result<Vec<PathBuf>> {
    let folder = process::workspace().join(folder);
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "grid") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Compiles the examples, so that the other machine can run them without a toolkit too.
fn build_artifacts(
    environment: &setup::Environment,
    programs: &[Program],
    out: &Path,
) -> Result<()> {
    let folder = out.join("artifacts");
    std::fs::create_dir_all(&folder)?;
    for file in sources("examples/programs")? {
        build_artifact(environment, programs, &file, &folder)?;
    }
    Ok(())
}

/// Compiles a program into a bundle of its name, in that folder.
fn build_artifact(
    environment: &setup::Environment,
    programs: &[Program],
    file: &Path,
    folder: &Path,
) -> Result<()> {
    let gridlet = programs
        .iter()
        .find(|program| program.place == Path::new("bin/gridlet"))
        .context("the build made no `gridlet`")?;
    let name = Path::new(file.file_name().unwrap_or_default()).with_extension("gridlet");
    let mut command = Command::new(&gridlet.file);
    command.arg("build").arg(file).args(["--arch", ARCHS, "--emit", "bundle", "-o"]);
    environment.apply(&mut command);
    process::run(command.arg(folder.join(name)))
}

/// Compiles the host in C of `runtime/c/tests`, and its bundle, into the folder that has the library.
fn build_c_host(
    environment: &setup::Environment,
    programs: &[Program],
    folder: &Path,
) -> Result<()> {
    let runtime = process::workspace().join("runtime");
    compile_c_host(&runtime, folder)?;
    build_artifact(environment, programs, &runtime.join("c/tests/saxpy.grid"), folder)
}

fn compile_c_host(runtime: &Path, folder: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-O2", "-s", "-o"]).arg(folder.join("program"));
    cc.arg(runtime.join("c/tests/program.c")).arg("-I").arg(runtime.join("include"));
    cc.arg("-L").arg(folder).args(["-lgridlet_c", "-Wl,-rpath,$ORIGIN"]);
    process::run(&mut cc)
}

/// Packs `folder` into `archive`, with each file's place and mode only, and the archive's hash beside it.
fn pack(folder: &Path, archive: &Path) -> Result<()> {
    let spinner = report::spinner("compressing the programs");
    let tar = tempfile::NamedTempFile::new()?;
    let mut command = Command::new("tar");
    command.args([
        "--create",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
    ]);
    command.arg("--file").arg(tar.path()).arg("--directory").arg(folder).arg(".");
    process::output(&mut command)?;
    let mut command = Command::new("xz");
    // One thread: several would each compress a part of their own, and not see the LLVM of the part before. A higher
    // preset halves the size and takes eight times as long.
    command.args(["--stdout", "--threads=1", "--lzma2=preset=1,dict=128MiB"]).arg(tar.path());
    command.stdout(std::fs::File::create(archive)?);
    process::run(&mut command)?;
    spinner.finish_and_clear();
    let hash = Sha256::digest(std::fs::read(archive)?);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(archive.with_extension("xz.sha256"), format!("{hash}  programs.tar.xz\n"))?;
    Ok(())
}

/// Writes the scripts and the text that describes them.
fn write_scripts(scripts: &[(&str, &str)], usage: &str, out: &Path) -> Result<()> {
    for (name, text) in scripts {
        write_script(&out.join(name), text)?;
    }
    Ok(std::fs::write(out.join(ABOUT), about(usage))?)
}

fn write_script(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Prints the files below `folder`, a folder of the bundle `out`, with their sizes, and returns the total.
fn list(folder: &Path, out: &Path) -> Result<u64> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut total = 0;
    for path in paths {
        if path.is_dir() {
            total += list(&path, out)?;
        } else {
            let bytes = path.metadata()?.len();
            total += bytes;
            let name = path.strip_prefix(out).unwrap_or(&path);
            report::note(&format!("{:>10}  {}", report::bytes(bytes), name.display()));
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_that_a_machine_may_lack_travel() {
        let listed = "\tlinux-vdso.so.1 (0x00007f29ae9d0000)
\tlibffi.so.8 => /lib/x86_64-linux-gnu/libffi.so.8 (0x00007f29ae9b3000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f29ab120000)
\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f29aae00000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f29ae9d2000)\n";
        let path = PathBuf::from("/lib/x86_64-linux-gnu/libffi.so.8");
        assert_eq!(libraries(listed), [("libffi.so.8".to_string(), path)]);
    }

    /// A bundle of scripts alone: tests that pass, are skipped, have an error that memcheck finds, and hang; and a
    /// compute-sanitizer that tells what it was asked.
    fn bundle_of_scripts() -> tempfile::TempDir {
        const TESTS: &str = "#!/usr/bin/env bash
            if [ \"$1\" = --list ]; then printf '%s: test\\n' right mod::skipped wild hangs slow_cpu; exit; fi
            case $2 in
            hangs) sleep 30 ;;
            mod::skipped) [ -n \"${GRIDLET_MEMCHECK:-}\" ] && echo 'SKIPPED: skipped under memcheck: it waits' ;;
            esac
            echo \"test $2 ... ok\"
            echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out'";
        const SANITIZER: &str = "#!/usr/bin/env bash
            options=()
            until [ -x \"$1\" ]; do options+=(\"$1\"); shift; done
            echo \"========= COMPUTE-SANITIZER ${options[*]}\"
            \"$@\" || exit
            [ \"$3\" != wild ] || { echo '========= Invalid __global__ write'; exit 9; }";
        let folder = tempfile::tempdir().unwrap();
        for folder in [folder.path().join("programs/tests"), folder.path().join("toolkit/bin")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for (name, text) in [
            SCRIPTS[0],
            SCRIPTS[1],
            ("programs/tests/gridlet-cli-gpu", TESTS),
            ("programs/tests/gridlet-runtime-gpu", TESTS),
            ("programs/complete", ""),
            ("toolkit/bin/compute-sanitizer", SANITIZER),
            ("programs.tar.xz.sha256", "00  programs.tar.xz\n"),
        ] {
            write_script(&folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn run_tests(bundle: &Path, arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(bundle.join("run-tests"))
            .args(arguments)
            .env("OUT", bundle.join("out"))
            .env("GRIDLET_UNPACKED", bundle.join("programs"))
            .env("GRIDLET_TOOLKIT", bundle.join("toolkit"))
            .env("MEMCHECK_SECONDS", "1")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    #[test]
    fn each_test_runs_by_itself_under_memcheck() {
        let bundle = bundle_of_scripts();
        let (status, said) =
            run_tests(bundle.path(), &["--memcheck", "gridlet-runtime-gpu", "gridlet-cli-gpu"]);
        assert_eq!(status, Some(1), "{said}");
        for line in [
            "!! memcheck-gridlet-runtime-gpu-hangs did not end within 1 s",
            "!! memcheck-gridlet-cli-gpu-wild ended with status 9",
            "memcheck-gridlet-cli-gpu-wild.log:========= Invalid __global__ write",
            "skipped under memcheck: it waits",
            "2 passed, 4 failed, 2 skipped",
        ] {
            assert!(said.lines().any(|found| found == line), "no line {line:?} in:\n{said}");
        }
        assert!(!said.contains("slow_cpu") && !said.contains("memcheck-c"), "{said}");
        // `gridlet run` launches its kernels from a process of its own.
        for (log, processes) in [("runtime-gpu", "application-only"), ("cli-gpu", "all")] {
            let log = bundle.path().join(format!("out/memcheck-gridlet-{log}-right.log"));
            let text = std::fs::read_to_string(log).unwrap();
            let options = text.lines().next().unwrap();
            assert!(options.ends_with(&format!("--target-processes {processes}")), "{options}");
        }
        for (arguments, said) in [
            (&["--memcheck", "none"][..], "none is no program of tests"),
            (&["--memchek"], "not --memchek"),
        ] {
            let (status, text) = run_tests(bundle.path(), arguments);
            assert!(status == Some(1) && text.contains(said), "{text}");
        }
    }

    #[test]
    fn a_folder_that_is_no_bundle_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("bundle");
        clear(&out).unwrap();
        std::fs::write(out.join("old"), "").unwrap();
        clear(&out).unwrap();
        assert!(!out.join("old").exists());
        std::fs::write(folder.path().join("thesis.tex"), "").unwrap();
        let error = clear(folder.path()).unwrap_err().to_string();
        assert!(error.contains("--out"), "{error}");
        assert!(folder.path().join("thesis.tex").exists());
    }
}
