//! Tests of the compiler with LLVM in one program: codegen, dialects, images for the CPU and the
//! device that runs them.

#[macro_use]
#[path = "../support/launches.rs"]
mod launches;

mod check_mode;
mod codegen;
mod cpu_images;
mod doors;
mod foreign;
mod foreign_numbers;
mod host_api_cpu;
mod launch_checks;
mod legacy;
mod legacy_semantics;
mod modern;
mod modules;
mod nesting;
mod own_ir;
mod own_module;
mod own_module_mistakes;
mod reference_tables;
mod scale;
#[path = "../devices/settings.rs"]
mod settings;
#[path = "../../lang/tests/suite/time.rs"]
mod time;
mod wrong_modules;
