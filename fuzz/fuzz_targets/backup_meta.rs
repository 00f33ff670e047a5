//! Feeds the target `backup_meta` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("backup_meta").run(input));
