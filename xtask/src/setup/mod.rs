//! `cargo xtask setup`: LLVM and NVIDIA's compiler parts.

mod apt;
mod llvm;
mod pins;
mod pip;
mod toolkit;
mod wheels;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cache, cli, report};
use pins::Pins;
pub(crate) use pip::find_python;
use wheels::Check;

/// The environment variables that building Gridlet needs.
pub(crate) struct Environment {
    variables: Vec<(&'static str, OsString)>,
}

impl Environment {
    /// Gives `command` the variables.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }
}

/// `cargo xtask setup`: prints where each part is.
pub(crate) fn run(options: &cli::Setup) -> Result<()> {
    set_up(options, true)?;
    Ok(())
}

/// Set-up for the other commands: prints nothing if everything is installed.
pub(crate) fn ready() -> Result<Environment> {
    set_up(&cli::Setup::default(), false)
}

fn set_up(options: &cli::Setup, tell: bool) -> Result<Environment> {
    let mut variables = Vec::new();

    let llvm = llvm::ensure()?;
    if tell || llvm.installed {
        report::done(&format!("LLVM {}", llvm.version), &llvm.prefix.display().to_string());
    }
    if !llvm.is_default {
        // Set only where needed: cargo rebuilds llvm-sys whenever the variable changes.
        variables.push((llvm::PREFIX_VARIABLE, llvm.prefix.clone().into_os_string()));
        if tell {
            report::note(&format!(
                "for cargo commands of your own: export {}={}",
                llvm::PREFIX_VARIABLE,
                llvm.prefix.display()
            ));
        }
    }

    let toolkit = ensure_toolkit(options, tell)?;
    variables.push((toolkit::VARIABLE, toolkit.into_os_string()));
    Ok(Environment { variables })
}

/// The folder of a toolkit with every part.
fn ensure_toolkit(options: &cli::Setup, tell: bool) -> Result<PathBuf> {
    if !options.pinned
        && let Some(found) = toolkit::find(tell)?
    {
        if tell {
            report::done(
                &format!("CUDA toolkit {}", found.version),
                &format!("{} ({})", found.root.display(), found.named_by),
            );
        }
        return Ok(found.root);
    }
    let pins = Pins::read(std::env::consts::ARCH)?;
    let cache = cache_folder()?;
    let check = if options.verify { Check::Hashes } else { Check::Sizes };
    let installed = wheels::install(&cache, &pins, check, &mut pip::Pip::default())?;
    let root = installed.folder.join(cache::TOOLKIT_ROOT);
    let missing = toolkit::missing_parts(&root);
    if !missing.is_empty() {
        bail!(
            "the packages of xtask/toolkit.txt lack {}: the pins are wrong, or `wheels::SKIPPED` skips too much",
            missing.join(", ")
        );
    }
    if tell || installed.fetched {
        report::done(
            &format!("NVIDIA's parts {}", pins.version()),
            &format!("{} ({})", root.display(), report::bytes(installed.bytes)),
        );
    }
    Ok(root)
}

fn cache_folder() -> Result<PathBuf> {
    let cache = cache::cache_dir().context(
        "there is no folder for the cache: set GRIDLET_CACHE to one, or HOME, or CUDA_HOME to a CUDA toolkit",
    )?;
    Ok(std::path::absolute(&cache)?)
}

/// The toolkits for `cargo xtask conformance`, the oldest first, fetched where they are missing. Those that only this command
/// uses have a folder of their own in the cache, in which the compiler does not search.
pub(crate) fn conformance_toolkits() -> Result<Vec<PathBuf>> {
    let pinned = ensure_toolkit(&cli::Setup { pinned: true, verify: false }, false)?;
    let cache = cache_folder()?.join("conformance");
    let mut found = Vec::new();
    for pins in Pins::conformance(std::env::consts::ARCH)? {
        let installed = wheels::install(&cache, &pins, Check::Sizes, &mut pip::Pip::default())?;
        found.push(installed.folder.join(cache::TOOLKIT_ROOT));
    }
    found.insert(1, pinned);
    Ok(found)
}
