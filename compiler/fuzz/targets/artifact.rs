//! See `gridlet_fuzz::artifact`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gridlet_fuzz::artifact(data));
