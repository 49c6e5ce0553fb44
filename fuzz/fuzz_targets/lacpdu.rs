#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| netcore_fuzz::lacpdu(data));
