//! Feeds the target `blob_file` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("blob_file").run(input));
