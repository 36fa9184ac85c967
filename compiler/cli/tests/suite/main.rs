//! The `gridlet` program as users run it, on machines without a GPU.

#[macro_use]
#[path = "../../../tests/support/launches.rs"]
mod launches;

mod build_cpu;
mod c_structs;
mod cache;
mod calls;
mod fake_driver;
mod fmt;
mod items_cpu;
mod messages;
mod nvvm_ir;
mod nvvm_ir_cpu;
mod nvvm_ir_refused;
mod nvvm_ir_unread;
mod run_cpu;
mod statistics_cpu;
#[path = "../support/mod.rs"]
mod support;
