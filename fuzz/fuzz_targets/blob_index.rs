//! Feeds the target `blob_index` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("blob_index").run(input));
