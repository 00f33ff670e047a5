//! Properties of tables and blob files: sums of what they say of themselves.
//!
//! The texts are RocksDB's. Tables that are not open are opened, without a lock; the rest is known without them.
//! Source: RocksDB `db/internal_stats.cc`, `db/version_set.cc`, `table/table_properties.cc`.

use crate::column_family::ColumnFamily;
use crate::core::Core;
use crate::state::{CfState, DbState};
use outcrop_base::Result;
use outcrop_manifest::Version;
use outcrop_table::{TableProperties, blob};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// A property that tables have to be asked for; `None` if `name` (without prefix) is none, or names no level.
pub fn table_property(core: &Core, cf: &ColumnFamily, name: &str) -> Option<String> {
    let version = || cf.superversion.load().version.clone();
    if name == "aggregated-table-properties" {
        return table_sum(core, cf, &version(), None).ok().map(|sum| sum.text());
    }
    if let Some(level) = name.strip_prefix("aggregated-table-properties-at-level") {
        let (version, level) = (version(), level_of(level)?);
        version.levels.get(level)?;
        return table_sum(core, cf, &version, Some(level)).ok().map(|sum| sum.text());
    }
    let level = level_of(name.strip_prefix("compression-ratio-at-level")?)?;
    let version = version();
    version.levels.get(level)?;
    let sum = table_sum(core, cf, &version, Some(level)).ok()?;
    let raw = sum.total.raw_key_size + sum.total.raw_value_size;
    let ratio = if sum.file_bytes == 0 { -1.0 } else { raw as f64 / sum.file_bytes as f64 };
    Some(format!("{ratio:.6}"))
}

/// The same as a map from names to numbers, where RocksDB has one.
pub fn table_property_map(core: &Core, cf: &ColumnFamily, name: &str) -> Option<BTreeMap<String, String>> {
    let level = name.strip_prefix("aggregated-table-properties")?;
    let version = cf.superversion.load().version.clone();
    let level = match level {
        "" => None,
        level => Some(level_of(level.strip_prefix("-at-level")?)?),
    };
    if let Some(level) = level {
        version.levels.get(level)?;
    }
    table_sum(core, cf, &version, level).ok().map(|sum| sum.map())
}

fn table_sum(core: &Core, cf: &ColumnFamily, version: &Version, level: Option<usize>) -> Result<TableSum> {
    let mut sum = TableSum::default();
    for (_, file) in version.files().filter(|(of, _)| level.is_none_or(|level| level == *of)) {
        sum.add(core.ctx.tables.open(cf, file)?.properties(), file.size);
    }
    Ok(sum)
}

/// Digits and nothing else.
fn level_of(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The properties of several tables, added up.
#[derive(Default)]
struct TableSum {
    total: TableProperties,
    /// Tables whose index has user keys, and delta-encoded handles.
    user_keys: u64,
    deltas: u64,
    /// Bytes of all files.
    file_bytes: u64,
    /// Numbers that tables carry and this engine does not use, by name.
    others: BTreeMap<&'static str, u64>,
}

/// Summed as well: the printed name, and the name in a table.
const OTHERS: [(&str, &str); 6] = [
    ("# data blocks compression rejected", "rocksdb.num.data.blocks.compression.rejected"),
    ("# data blocks compression bypassed", "rocksdb.num.data.blocks.compression.bypassed"),
    ("# uniform blocks", "rocksdb.num.uniform.blocks"),
    ("data uncompressed size", "rocksdb.uncompressed.data.size"),
    ("slow compression estimated data size", "rocksdb.sample_for_compression.slow.data.size"),
    ("fast compression estimated data size", "rocksdb.sample_for_compression.fast.data.size"),
];

impl TableSum {
    fn add(&mut self, table: &TableProperties, file_bytes: u64) {
        let total = &mut self.total;
        total.num_entries += table.num_entries;
        total.num_deletions += table.num_deletions;
        total.merge_operands += table.merge_operands;
        total.num_range_deletions += table.num_range_deletions;
        total.raw_key_size += table.raw_key_size;
        total.raw_value_size += table.raw_value_size;
        total.num_data_blocks += table.num_data_blocks;
        total.data_size += table.data_size;
        total.index_size += table.index_size;
        total.index_partitions += table.index_partitions;
        total.top_level_index_size += table.top_level_index_size;
        total.filter_size += table.filter_size;
        total.num_filter_entries += table.num_filter_entries;
        self.user_keys += u64::from(table.index_key_is_user_key);
        self.deltas += u64::from(table.index_value_is_delta_encoded);
        self.file_bytes += file_bytes;
        for (shown, name) in OTHERS {
            let stored = table.others.get(name).and_then(|bytes| outcrop_base::coding::get_varint64(bytes));
            *self.others.entry(shown).or_default() += stored.map_or(0, |(number, _)| number);
        }
    }

    /// As RocksDB's `TableProperties::GetAggregatablePropertiesAsMap`.
    fn map(&self) -> BTreeMap<String, String> {
        let total = &self.total;
        let other = |name: &str| self.others.get(name).copied().unwrap_or(0);
        let numbers = [
            ("data_size", total.data_size),
            ("uncompressed_data_size", other("data uncompressed size")),
            ("index_size", total.index_size),
            ("index_partitions", total.index_partitions),
            ("top_level_index_size", total.top_level_index_size),
            ("filter_size", total.filter_size),
            ("raw_key_size", total.raw_key_size),
            ("raw_value_size", total.raw_value_size),
            ("num_data_blocks", total.num_data_blocks),
            ("num_data_blocks_compression_rejected", other("# data blocks compression rejected")),
            ("num_data_blocks_compression_bypassed", other("# data blocks compression bypassed")),
            ("num_uniform_blocks", other("# uniform blocks")),
            ("num_entries", total.num_entries),
            ("num_filter_entries", total.num_filter_entries),
            ("num_deletions", total.num_deletions),
            ("num_merge_operands", total.merge_operands),
            ("num_range_deletions", total.num_range_deletions),
            ("slow_compression_estimated_data_size", other("slow compression estimated data size")),
            ("fast_compression_estimated_data_size", other("fast compression estimated data size")),
        ];
        numbers.into_iter().map(|(name, number)| (name.to_string(), number.to_string())).collect()
    }

    /// As RocksDB's `TableProperties::ToString`, of an object that only ever was added to.
    fn text(&self) -> String {
        let total = &self.total;
        let average = |bytes: u64| {
            let average = if total.num_entries == 0 { 0.0 } else { bytes as f64 / total.num_entries as f64 };
            format!("{average:.6}")
        };
        let other = |name: &str| self.others.get(name).copied().unwrap_or(0).to_string();
        let index = format!("index block size (user-key? {}, delta-value? {})", self.user_keys, self.deltas);
        let number = |number: u64| number.to_string();
        let none = || "N/A".to_string();
        let mut rows = vec![("# data blocks", number(total.num_data_blocks))];
        rows.extend(OTHERS[..3].iter().map(|(name, _)| (*name, other(name))));
        rows.extend([
            ("# entries", number(total.num_entries)),
            ("# deletions", number(total.num_deletions)),
            ("# merge operands", number(total.merge_operands)),
            ("# range deletions", number(total.num_range_deletions)),
            ("raw key size", number(total.raw_key_size)),
            ("raw average key size", average(total.raw_key_size)),
            ("raw value size", number(total.raw_value_size)),
            ("raw average value size", average(total.raw_value_size)),
            ("data block size", number(total.data_size)),
            ("data uncompressed size", other("data uncompressed size")),
            (&index, number(total.index_size)),
        ]);
        if total.index_partitions != 0 {
            rows.push(("# index partitions", number(total.index_partitions)));
            rows.push(("top-level index size", number(total.top_level_index_size)));
        }
        rows.extend([
            ("filter block size", number(total.filter_size)),
            ("# entries for filter", number(total.num_filter_entries)),
            ("(estimated) table size", number(total.data_size + total.index_size + total.filter_size)),
            ("filter policy name", none()),
            ("prefix extractor name", none()),
            ("column family ID", none()),
            ("column family name", none()),
            ("comparator name", none()),
            ("user defined timestamps persisted", "true".to_string()),
            ("largest sequence number in file", number(u64::MAX)),
            ("smallest sequence number in file", number(u64::MAX)),
            ("merge operator name", none()),
            ("property collectors names", none()),
            ("SST file compression algo", none()),
            ("SST file compression options", none()),
            ("creation time", number(0)),
            ("time stamp of earliest key", number(0)),
            ("time stamp of newest key", number(0)),
            ("file creation time", number(0)),
        ]);
        rows.extend(OTHERS[4..].iter().map(|(name, _)| (*name, other(name))));
        rows.extend([
            ("DB identity", String::new()),
            ("DB session identity", String::new()),
            ("DB host id", String::new()),
            ("original file number", number(0)),
            ("unique ID", none()),
            ("Sequence number to time mapping", String::new()),
        ]);
        rows.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, "{name}={value}; ");
            text
        })
    }
}

/// Bytes of the blob files of a version, and of what in them is garbage.
pub(crate) fn blob_bytes(version: &Version) -> (u64, u64) {
    let files = version.blob_files.values();
    files.fold((0, 0), |(size, garbage), blob| {
        (size + blob::file_len(blob.file.total_bytes), garbage + blob.garbage.bytes)
    })
}

/// The text of `rocksdb.blob-stats`.
pub(crate) fn blob_stats(version: &Version) -> String {
    let (size, garbage) = blob_bytes(version);
    let amplification = if size > garbage { size as f64 / (size - garbage) as f64 } else { 0.0 };
    format!(
        "Number of blob files: {}\nTotal size of blob files: {size}\nTotal size of garbage in blob files: {garbage}\n\
         Blob file space amplification: {}\n",
        version.blob_files.len(),
        six_digits(amplification)
    )
}

/// As C++ streams print a number: six significant digits, no zeros at the end.
pub(crate) fn six_digits(number: f64) -> String {
    let whole = number.abs().log10().floor();
    let decimals = if number == 0.0 { 0 } else { (5.0 - whole).clamp(0.0, 20.0) as usize };
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// A numeric property of the files a column family has, or readers of older versions hold; `name` is without prefix.
pub(crate) fn file_property_int(state: &DbState, cf: &CfState, name: &str) -> Option<u64> {
    Some(match name {
        "num-blob-files" => cf.version.blob_files.len() as u64,
        "live-blob-file-size" => blob_bytes(&cf.version).0,
        "live-blob-file-garbage-size" => blob_bytes(&cf.version).1,
        "total-blob-file-size" => {
            let old = old_versions(state, cf);
            let versions = old.iter().chain(std::iter::once(&cf.version));
            let files: BTreeMap<_, _> = versions
                .flat_map(|version| version.blob_files.iter())
                .map(|(number, blob)| (*number, blob::file_len(blob.file.total_bytes)))
                .collect();
            files.values().sum()
        }
        "num-live-versions" => 1 + old_versions(state, cf).len() as u64,
        // Files are removed by name, once nothing holds them: no number keeps others from going.
        "min-obsolete-sst-number-to-keep" => u64::MAX,
        "current-super-version-number" => cf.superversion_number,
        _ => return None,
    })
}

/// Versions that were replaced and that somebody still reads.
fn old_versions(state: &DbState, cf: &CfState) -> Vec<Arc<Version>> {
    let of_cf = state.old_versions.iter().filter(|(id, _)| *id == cf.cf.id());
    of_cf.filter_map(|(_, version)| version.upgrade()).collect()
}

#[cfg(test)]
mod tests {
    use super::six_digits;

    #[test]
    fn numbers_are_printed_as_cpp_streams_print_them() {
        let shown = [0.0, 1.0, 1.360_032, 12.5, 0.000_123_456_78, 99_999.95, 7.0 / 3.0].map(six_digits);
        assert_eq!(shown, ["0", "1", "1.36003", "12.5", "0.000123457", "99999.9", "2.33333"]);
    }
}
