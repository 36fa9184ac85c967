//! See `gridlet_fuzz::c_api`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gridlet_fuzz::c_api(data));
