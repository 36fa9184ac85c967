//! LLVM's target for the machine that the compiler runs on.

use inkwell::OptimizationLevel;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target, TargetMachine};

use super::{CpuOptions, refused};
use crate::error::Result;

/// The host's target machine, for position-independent code.
pub(super) fn host(options: &CpuOptions) -> Result<TargetMachine> {
    let no_target = |log: String| refused("finding the host's target", log);
    Target::initialize_native(&InitializationConfig::default()).map_err(no_target)?;
    let triple = TargetMachine::get_default_triple();
    let target = Target::from_triple(&triple).map_err(|message| no_target(message.to_string()))?;
    let (name, features) = if options.native {
        let name = TargetMachine::get_host_cpu_name().to_string();
        (name, TargetMachine::get_host_cpu_features().to_string())
    } else {
        (BASELINE.to_owned(), String::new())
    };
    let level = match (options.optimize, options.quick) {
        (true, false) => OptimizationLevel::Aggressive,
        (true, true) => OptimizationLevel::Less,
        (false, _) => OptimizationLevel::None,
    };
    target
        .create_target_machine(&triple, &name, &features, level, RelocMode::PIC, CodeModel::Default)
        .ok_or_else(|| no_target(format!("LLVM has no {triple}")))
}

/// LLVM's name for the features that every processor of the architecture has.
const BASELINE: &str = if cfg!(target_arch = "x86_64") { "x86-64" } else { "generic" };
