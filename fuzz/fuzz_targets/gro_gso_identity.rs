#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| netcore_fuzz::gro_gso_identity(data));
