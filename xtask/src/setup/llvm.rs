//! LLVM 22 with its static libraries, and the system libraries that linking them needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::apt::Apt;
use crate::{process, report};

/// Where llvm-sys 221 looks first.
pub(crate) const PREFIX_VARIABLE: &str = "LLVM_SYS_221_PREFIX";
const MAJOR: u32 = 22;
/// The names under which llvm-sys 221 tries to start llvm-config, in its order.
const CONFIG_NAMES: [&str; 6] = [
    "llvm-config-22",
    "llvm-config22",
    "llvm22-config",
    "llvm-config-22.1",
    "llvm-config221",
    "llvm-config",
];
/// Folders where distributions install LLVM 22: Debian and Ubuntu, Fedora, Gentoo, Homebrew.
const USUAL_PREFIXES: [&str; 4] =
    ["/usr/lib/llvm-22", "/usr/lib64/llvm22", "/usr/lib/llvm/22", "/opt/homebrew/opt/llvm@22"];
/// libpolly-22-dev: Debian's LLVM is built with Polly, and llvm-config names its static libraries with the rest.
const PACKAGES: [&str; 2] = ["llvm-22-dev", "libpolly-22-dev"];
/// Libraries that LLVM's link line may name, by Debian's packages. Its own package depends on some only.
const LIBRARY_PACKAGES: [(&str, &str); 8] = [
    ("stdc++", "g++"),
    ("z", "zlib1g-dev"),
    ("zstd", "libzstd-dev"),
    ("xml2", "libxml2-dev"),
    ("z3", "libz3-dev"),
    ("ffi", "libffi-dev"),
    ("tinfo", "libncurses-dev"),
    ("edit", "libedit-dev"),
];

/// An LLVM that Gridlet can be linked with.
pub(crate) struct Llvm {
    /// `22.1.8`
    pub(crate) version: String,
    /// The folder above `bin/llvm-config`.
    pub(crate) prefix: PathBuf,
    /// Whether llvm-sys finds it without [`PREFIX_VARIABLE`], or with the variable's current value.
    pub(crate) is_default: bool,
    /// Whether set-up installed packages for it.
    pub(crate) installed: bool,
}

/// Finds LLVM and installs missing packages if this user may. Otherwise the error names them.
pub(crate) fn ensure() -> Result<Llvm> {
    let problem = match find()? {
        Found::Complete(llvm) => return Ok(llvm),
        Found::Lacking(problem) => problem,
    };
    let Some(apt) = Apt::find() else { bail!("{}", advice(&problem, None)) };
    report::step(&problem.what);
    if let Err(error) = apt.install(&problem.packages) {
        bail!("{}", advice(&problem, Some(&error)));
    }
    match find()? {
        Found::Complete(llvm) => Ok(Llvm { installed: true, ..llvm }),
        Found::Lacking(problem) => bail!("{}", advice(&problem, None)),
    }
}

enum Found {
    Complete(Llvm),
    Lacking(Problem),
}

/// A missing part, and the Debian packages that contain it.
struct Problem {
    what: String,
    packages: Vec<&'static str>,
}

fn find() -> Result<Found> {
    let Some((config, version, is_default)) = find_config()? else {
        let mut packages = PACKAGES.to_vec();
        packages.extend(["g++", "zlib1g-dev", "libzstd-dev"]);
        return Ok(Found::Lacking(Problem { what: "LLVM 22 is not installed".into(), packages }));
    };
    let prefix = PathBuf::from(ask(&config, &["--prefix"])?.trim());
    let folder = PathBuf::from(ask(&config, &["--libdir"])?.trim());
    // llvm-config fails if it knows that a library is missing, but it may also list files that do not exist.
    let listed = ask(&config, &["--link-static", "--libnames"]);
    let absent = listed.as_ref().map(|names| {
        names.split_whitespace().find(|name| !folder.join(name).is_file()).map(str::to_string)
    });
    if !matches!(absent, Ok(None)) {
        let which = absent.ok().flatten().map(|name| format!(" ({name})")).unwrap_or_default();
        return Ok(Found::Lacking(Problem {
            what: format!("LLVM {version} in {} lacks static libraries{which}", prefix.display()),
            packages: PACKAGES.to_vec(),
        }));
    }
    if process::find_program("cc").is_none() {
        return Ok(Found::Lacking(Problem {
            what: "there is no C compiler, `cc`, which links programs".into(),
            packages: vec!["g++"],
        }));
    }
    let wanted = ask(&config, &["--link-static", "--system-libs"])?;
    let missing = missing_libraries(&wanted, links)?;
    if !missing.is_empty() {
        let packages = missing
            .iter()
            .filter_map(|name| LIBRARY_PACKAGES.iter().find(|(library, _)| library == name))
            .map(|(_, package)| *package)
            .collect();
        return Ok(Found::Lacking(Problem {
            what: format!("the linker finds no {}, which LLVM needs", missing.join(", no ")),
            packages,
        }));
    }
    Ok(Found::Complete(Llvm { version, prefix, is_default, installed: false }))
}

/// llvm-config, its version, and whether llvm-sys finds it too.
fn find_config() -> Result<Option<(PathBuf, String, bool)>> {
    if let Some(prefix) = std::env::var_os(PREFIX_VARIABLE).filter(|value| !value.is_empty()) {
        let found = configs(&PathBuf::from(&prefix).join("bin"));
        if let Some((config, version)) = found.iter().find(|(_, version)| is_right(version)) {
            return Ok(Some((config.clone(), version.clone(), true)));
        }
        let what = found.first().map_or_else(
            || "which has no bin/llvm-config".into(),
            |(_, version)| format!("which is LLVM {version}"),
        );
        bail!(
            "{PREFIX_VARIABLE} is {}, {what}: set it to the folder of an LLVM {MAJOR}, or unset it",
            prefix.display()
        );
    }
    // llvm-sys takes the first on PATH that is not too old, and one that is newer than 22 as well.
    let on_path = configs(Path::new("")).into_iter().find(|(_, version)| major(version) >= MAJOR);
    if let Some((config, version)) = on_path.filter(|(_, version)| is_right(version)) {
        return Ok(Some((config, version, true)));
    }
    Ok(USUAL_PREFIXES
        .iter()
        .flat_map(|prefix| configs(&Path::new(prefix).join("bin")))
        .find(|(_, version)| is_right(version))
        .map(|(config, version)| (config, version, false)))
}

/// Each llvm-config in `folder`, or on `PATH` if that is empty, with its version, in llvm-sys's order.
fn configs(folder: &Path) -> Vec<(PathBuf, String)> {
    CONFIG_NAMES
        .iter()
        .map(|name| folder.join(name))
        .filter_map(|config| {
            let version = ask(&config, &["--version"]).ok()?.trim().to_string();
            Some((config, version))
        })
        .collect()
}

fn is_right(version: &str) -> bool {
    major(version) == MAJOR
}

/// The first number of a version; 0 if there is none.
fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn ask(config: &Path, arguments: &[&str]) -> Result<String> {
    process::output(Command::new(config).args(arguments))
}

/// The libraries of `wanted`, llvm-config's list, and the C++ library, as far as `links` rejects them. Libraries given
/// by path belong to the package manager.
fn missing_libraries(wanted: &str, links: impl Fn(&[&str]) -> Result<bool>) -> Result<Vec<String>> {
    let mut names: Vec<&str> =
        wanted.split_whitespace().filter_map(|word| word.strip_prefix("-l")).collect();
    names.push("stdc++");
    if links(&names)? {
        return Ok(Vec::new());
    }
    let mut missing = Vec::new();
    for name in names {
        if !links(&[name])? {
            missing.push(name.to_string());
        }
    }
    Ok(missing)
}

/// Whether the C compiler links a program with these libraries.
fn links(libraries: &[&str]) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("main.c");
    std::fs::write(&source, "int main(void) { return 0; }\n")?;
    let mut cc = Command::new("cc");
    cc.arg(&source).arg("-o").arg(folder.path().join("main"));
    cc.args(libraries.iter().map(|name| format!("-l{name}")));
    Ok(process::succeeds(&mut cc))
}

fn advice(problem: &Problem, tried: Option<&anyhow::Error>) -> String {
    let tried = tried.map(|error| format!("\nInstalling it failed: {error:#}")).unwrap_or_default();
    format!(
        "{what}{tried}
Looked at {PREFIX_VARIABLE}, llvm-config-22 on PATH, {usual}.
  Debian, Ubuntu:  sudo apt-get install {packages}
                   (where the distribution has no LLVM 22, add LLVM's own apt repository first)
  elsewhere:       install LLVM 22 with its headers and static libraries, and the development files of zlib, zstd
                   and libxml2; then set {PREFIX_VARIABLE} to the folder that has bin/llvm-config
Then run the command again.",
        what = problem.what,
        usual = USUAL_PREFIXES.join(", "),
        packages = problem.packages.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_that_do_not_link_are_named() {
        let line = "-lrt -lm /usr/lib/x86_64-linux-gnu/libz3.so -lz -lzstd -lxml2\n";
        let lacking = |absent: &'static [&str]| {
            missing_libraries(line, move |names| {
                Ok(!names.iter().any(|name| absent.contains(name)))
            })
        };
        assert_eq!(lacking(&[]).unwrap(), Vec::<String>::new());
        assert_eq!(lacking(&["zstd"]).unwrap(), ["zstd"]);
        assert_eq!(lacking(&["stdc++", "z"]).unwrap(), ["z", "stdc++"]);
    }

    #[test]
    fn versions_are_compared_by_their_first_number() {
        assert!(is_right("22.1.8"));
        assert!(is_right("22.1.8git"));
        assert!(!is_right("2.2"));
        assert!(!is_right("23.0.0"));
        assert_eq!(major("unknown"), 0);
    }

    #[test]
    fn the_linker_is_asked() {
        assert!(links(&["m"]).unwrap());
        assert!(!links(&["no-such-library"]).unwrap());
    }

    #[test]
    fn the_advice_names_packages_and_the_variable() {
        let problem =
            Problem { what: "LLVM 22 is not installed".into(), packages: PACKAGES.to_vec() };
        let text = advice(&problem, Some(&anyhow::anyhow!("no network")));
        for part in ["not installed", "no network", "llvm-22-dev libpolly-22-dev", PREFIX_VARIABLE]
        {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
    }
}
