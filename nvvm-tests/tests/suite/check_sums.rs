//! Check sums: loops over bits become loops over bytes with tables, in libNVVM's PTX as in that of LLVM's back end.

use std::collections::BTreeSet;
use std::path::Path;

use gridlet::arch::CudaArch;
use gridlet::compile::{self, BuildOptions, Checked, Session};
use gridlet::source::SourceMap;
use nvvm_tests::{FOR_PTX, toolchain_or_skip};

const TABLES: [&str; 5] = [
    "16_1021_9188",
    "16_c0c1_a001",
    "32_77073096_edb88320",
    "64_b32e4cbe03a75f6f_c96c5795d7870f42",
    "8_7_89",
];

/// The check sums whose tables a text names.
fn tables(ptx: &str) -> BTreeSet<&str> {
    let named = ptx.split("gridlet_$_check_sums_").skip(1);
    named
        .filter_map(|rest| rest.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next())
        .collect()
}

fn ptx(session: &Session, program: &Checked, options: &BuildOptions) -> String {
    let (ptx, log) = session.ptx(program, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(log, "");
    ptx.0
}

#[test]
fn check_sums_look_up_tables() {
    let Some(toolchain) = toolchain_or_skip("check_sums_look_up_tables", &FOR_PTX) else { return };
    let session = Session::with_toolchain(toolchain);
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/in/ok/check_sums.grid");
    let program = compile::check(compile::load(&path).unwrap()).unwrap();
    for arch in ["sm_75", "sm_90", "sm_100", "sm_120"] {
        let options = BuildOptions::for_arch(arch.parse::<CudaArch>().unwrap());
        assert_eq!(tables(&ptx(&session, &program, &options)), TABLES.into(), "{arch}");
        let as_written = ptx(&session, &program, &options.with_optimize(false));
        assert_eq!(tables(&as_written), BTreeSet::new(), "{arch}, not optimised");
    }
}

/// Two compilations make such a program, and each has tables of its own.
#[test]
fn kernels_with_fast_mathematics_and_without_have_their_own_tables() {
    let name = "kernels_with_fast_mathematics_and_without_have_their_own_tables";
    let Some(toolchain) = toolchain_or_skip(name, &FOR_PTX) else { return };
    let session = Session::with_toolchain(toolchain);
    let mut sources = SourceMap::default();
    sources.add(
        "both.grid",
        "
        #[fast_math]
        kernel fast(p: *mut u32, f: *mut f32) {
            let mut crc = p[0];
            for _ in 0u32..8 { if crc & 1 != 0 { crc = crc >> 1 ^ 0xedb8_8320; } else { crc >>= 1; } }
            p[0] = crc;
            *f = 1.0 / *f;
        }
        kernel exact(p: *mut u16, f: *mut f32) {
            let mut crc = p[0];
            for _ in 0u32..8 { if crc & 1 != 0 { crc = crc >> 1 ^ 0xa001; } else { crc >>= 1; } }
            p[0] = crc;
            *f = 1.0 / *f;
        }
        ",
    );
    let program = compile::check(sources).unwrap();
    let text = ptx(&session, &program, &BuildOptions::for_arch(CudaArch::DEFAULT));
    let body = |kernel: &str| {
        let start = text.find(&format!(".entry {kernel}(")).unwrap();
        let length = text[start..].find("\n}").unwrap();
        tables(&text[start..start + length])
    };
    assert_eq!(body("fast"), ["32_77073096_edb88320"].into());
    assert_eq!(body("exact"), ["16_c0c1_a001"].into());
}
