//! Setters and getters, all of them: what a new object gives, what it gives after it was set, and that what the engine
//! cannot do is refused at open.

use crate::api_list::{Api, Function, read_list};
use crate::library::{outcrop_library, reference};
use libloading::Library;
use outcrop_capi::settings::Fate;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};

type Object = *mut c_void;

/// A number of an options object.
struct Setting {
    getter: String,
    /// The C type the getter gives.
    kind: String,
    /// The setter with the C type it takes, if there is one.
    setter: Option<(String, String)>,
    /// Makes the object.
    maker: String,
}

/// The numbers of objects that are made without arguments.
fn settings(api: &Api) -> Vec<Setting> {
    let functions: Vec<&Function> = api.areas.iter().flat_map(|area| &area.functions).collect();
    let by_name: HashMap<&str, &str> =
        functions.iter().map(|function| (function.name.as_str(), function.declaration.as_str())).collect();
    let mut makers = HashMap::new();
    for function in functions.iter().filter(|function| function.declaration.ends_with("_create(void)")) {
        let object = function.declaration.split('*').next().unwrap();
        makers.insert(object.to_string(), function.name.clone());
    }
    let setting = |function: &&Function| {
        let (before, argument) = function.declaration.strip_suffix(')')?.split_once('(')?;
        let kind = before.strip_suffix(&function.name)?.trim().to_string();
        let object = argument.strip_prefix("const ").unwrap_or(argument).split('*').next()?;
        let plain = !kind.contains('*') && !argument.contains(',') && kind != "void";
        let maker = makers.get(object).filter(|_| plain && function.name.contains("_get_"))?.clone();
        let setter = function.name.replace("_get_", "_set_");
        let setter = by_name.get(setter.as_str()).and_then(|declaration| {
            let (_, arguments) = declaration.strip_suffix(')')?.split_once('(')?;
            let (_, value) = arguments.split_once(", ").filter(|(_, value)| !value.contains([',', '*']))?;
            Some((setter.clone(), c_type(value)))
        });
        Some(Setting { getter: function.name.clone(), kind, setter, maker })
    };
    functions.iter().filter_map(setting).collect()
}

/// The type of an argument that may have a name.
fn c_type(argument: &str) -> String {
    let types = [
        "unsigned char",
        "unsigned int",
        "uint64_t",
        "uint32_t",
        "uint8_t",
        "int64_t",
        "size_t",
        "double",
        "int",
        "char",
    ];
    let found = types.iter().find(|known| argument == **known || argument.starts_with(&format!("{known} ")));
    found.unwrap_or_else(|| panic!("{argument:?} is no number")).to_string()
}

unsafe fn make(library: &Library, maker: &str) -> Object {
    // SAFETY: the caller passes the name of a function that makes an object from nothing.
    unsafe { library.get::<unsafe extern "C" fn() -> Object>(maker.as_bytes()).unwrap()() }
}

unsafe fn get(library: &Library, object: Object, setting: &Setting) -> String {
    type Getter<T> = unsafe extern "C" fn(Object) -> T;
    let name = setting.getter.as_bytes();
    // SAFETY: the signature is that of the committed list; the caller passes a live object of the getter's type.
    unsafe {
        match setting.kind.as_str() {
            "double" => library.get::<Getter<f64>>(name).unwrap()(object).to_string(),
            "unsigned char" | "uint8_t" | "bool" => {
                library.get::<Getter<u8>>(name).unwrap()(object).to_string()
            }
            "int" | "int32_t" => library.get::<Getter<i32>>(name).unwrap()(object).to_string(),
            "uint32_t" | "unsigned int" => library.get::<Getter<u32>>(name).unwrap()(object).to_string(),
            "int64_t" => library.get::<Getter<i64>>(name).unwrap()(object).to_string(),
            _ => library.get::<Getter<u64>>(name).unwrap()(object).to_string(),
        }
    }
}

unsafe fn set(library: &Library, object: Object, (setter, kind): &(String, String), value: u8) {
    type Setter<T> = unsafe extern "C" fn(Object, T);
    let name = setter.as_bytes();
    // SAFETY: the signature is that of the committed list; the caller passes a live object of the setter's type.
    unsafe {
        match kind.as_str() {
            "double" => library.get::<Setter<f64>>(name).unwrap()(object, value.into()),
            "unsigned char" | "uint8_t" | "char" => library.get::<Setter<u8>>(name).unwrap()(object, value),
            "int" => library.get::<Setter<i32>>(name).unwrap()(object, value.into()),
            "uint32_t" | "unsigned int" => library.get::<Setter<u32>>(name).unwrap()(object, value.into()),
            "int64_t" => library.get::<Setter<i64>>(name).unwrap()(object, value.into()),
            _ => library.get::<Setter<u64>>(name).unwrap()(object, value.into()),
        }
    }
}

/// Where our default is another on purpose.
const OTHER_DEFAULTS: [&str; 1] = ["rocksdb_block_based_options_get_format_version"];

/// Settings that read back otherwise than set: a threshold that is refused stays at its default, an interval
/// of 0 counts as 1 at once, and the level of statistics is kept where RocksDB drops it without statistics.
const OTHERWISE_WHEN_SET: [&str; 4] = [
    "rocksdb_readoptions_get_merge_operand_count_threshold",
    "rocksdb_block_based_options_get_block_restart_interval",
    "rocksdb_block_based_options_get_index_block_restart_interval",
    "rocksdb_options_get_statistics_level",
];

#[test]
fn every_number_is_kept_and_defaults_are_those_of_rocksdb() {
    let settings = settings(&read_list());
    assert!(settings.len() > 300, "only {} settings", settings.len());
    // SAFETY: the libraries run no code of note when loaded.
    let ours = unsafe { Library::new(outcrop_library()).unwrap() };
    // SAFETY: as above.
    let theirs = reference().map(|path| unsafe { Library::new(path).unwrap() });
    let mut wrong = Vec::new();
    for setting in &settings {
        let libraries = std::iter::once(&ours).chain(&theirs);
        // SAFETY: the signatures are those of the committed list; objects live until the process ends.
        let found: Vec<[String; 3]> = libraries
            .map(|library| unsafe {
                let object = make(library, &setting.maker);
                let mut values = [get(library, object, setting), String::new(), String::new()];
                for value in [1u8, 0] {
                    if let Some(setter) = &setting.setter {
                        set(library, object, setter, value);
                        values[2 - usize::from(value)] = get(library, object, setting);
                    }
                }
                values
            })
            .collect();
        let getter = setting.getter.as_str();
        let from = usize::from(OTHER_DEFAULTS.contains(&getter));
        let to = if OTHERWISE_WHEN_SET.contains(&getter) { 1 } else { 3 };
        let differs = match &found[..] {
            [ours, theirs] => ours[from..to] != theirs[from..to],
            [ours, ..] => to == 3 && setting.setter.is_some() && ours[1..] != ["1", "0"],
            [] => unreachable!("there is always our library"),
        };
        if differs {
            wrong.push(format!("{getter}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "default, after 1 was set, after 0 was set; ours, then theirs: {wrong:#?}");
}

/// Opens a database under `options`; the error.
unsafe fn open_error(library: &Library, options: Object) -> Option<String> {
    type Open = unsafe extern "C" fn(Object, *const c_char, *mut *mut c_char) -> Object;
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().join("db").to_str().unwrap()).unwrap();
    let mut error = std::ptr::null_mut();
    // SAFETY: the contract of the C API; the caller passes live options.
    unsafe {
        let db = library.get::<Open>(b"rocksdb_open").unwrap()(options, path.as_ptr(), &mut error);
        if !db.is_null() {
            library.get::<unsafe extern "C" fn(Object)>(b"rocksdb_close").unwrap()(db);
            return None;
        }
        Some(CStr::from_ptr(error).to_string_lossy().into_owned())
    }
}

#[test]
fn what_the_engine_cannot_do_is_refused_at_open() {
    let checked: Vec<&str> = outcrop_capi::notes()
        .filter(|note| note.fate == Fate::Checked && note.function.starts_with("rocksdb_options_get_"))
        .map(|note| note.function)
        .collect();
    assert!(!checked.is_empty());
    // SAFETY: the signatures are those of the committed list; objects live until the process ends.
    unsafe {
        let library = Library::new(outcrop_library()).unwrap();
        for setting in settings(&read_list()) {
            if !checked.contains(&setting.getter.as_str()) {
                continue;
            }
            let options = make(&library, "rocksdb_options_create");
            let flag = ("rocksdb_options_set_create_if_missing".to_string(), "unsigned char".to_string());
            set(&library, options, &flag, 1);
            let other = u8::from(get(&library, options, &setting) == "0");
            let setter = setting.setter.as_ref().expect("what is checked can be set");
            set(&library, options, setter, other);
            let name = setting.getter.trim_start_matches("rocksdb_options_get_");
            let error = open_error(&library, options).unwrap_or_else(|| panic!("{name} is not refused"));
            assert!(error.starts_with("Not implemented: ") && error.contains(name), "{error}");
            set(&library, options, setter, 1 - other);
            assert_eq!(open_error(&library, options), None, "{name} back at its default");
        }
    }
}
