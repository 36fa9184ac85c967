//! The example for authors of other compilers: its output, and that it links.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use gridlet::arch::CudaArch;
use gridlet::compile::Session;
use gridlet::link::cubin::parameter_records;

#[path = "../../examples/own_module.rs"]
#[allow(dead_code, reason = "a program of its own, too")]
mod example;

#[test]
fn the_text_is_of_both_dialects() {
    for (name, arch) in [("legacy", "sm_90"), ("modern", "sm_100")] {
        let arch: CudaArch = arch.parse().unwrap();
        insta::assert_snapshot!(format!("own_module_{name}"), example::text(arch).unwrap());
    }
}

#[test]
fn it_links_and_its_parameters_lie_where_the_child_reads_them() {
    let session = Session::new();
    if let Err(error) = session.libnvvm() {
        let text = format!("SKIPPED: it_links_and_its_parameters needs libNVVM: {error}");
        assert!(std::env::var_os("GRIDLET_REQUIRE_TOOLKIT").is_none(), "{text}");
        eprintln!("{text}");
        return;
    }
    for arch in [CudaArch::DEFAULT, CudaArch::SUPPORTED[0]] {
        let cubin = example::cubin(&session, arch).unwrap();
        let records = parameter_records(&cubin).unwrap();
        let child = records.iter().find(|records| records.kernel == "child").unwrap();
        let offsets: Vec<u32> = child.parameters.iter().map(|record| record.offset).collect();
        assert_eq!(offsets, [0, 8, 12]);
    }
}
