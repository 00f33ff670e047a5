//! Feeds the target `version_edit` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("version_edit").run(input));
