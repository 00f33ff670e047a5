//! `ConfigOptions`, options from texts, and `OptionsUtil`: the OPTIONS files of databases.

use crate::env::{Env, jni};
use crate::glue::{Answer, handle, object};
use crate::metadata::new_descriptor;
use jni_sys::{jlong, jobject, jvalue};
use outcrop::options::LoadedOptions;
use outcrop::{Db, Env as Files, Error, ErrorKind};
use outcrop_capi::{loaded, rocksdb_env_t, rocksdb_options_t};
use std::path::Path;

/// `ConfigOptions`. Escapes and the strictness of comparisons are only kept: the engine's parser knows one form, and compares nothing.
pub(crate) struct Config {
    files: Files,
    pub(crate) delimiter: String,
    pub(crate) ignores_unknown: bool,
}

pub(crate) fn new_config() -> Answer<jlong> {
    Ok(handle(Config { files: Files::posix(), delimiter: ";".into(), ignores_unknown: false }))
}

pub(crate) fn set_env(config: jlong, env: jlong) -> Answer<()> {
    object::<Config>(config).files = object::<rocksdb_env_t>(env).0.clone();
    Ok(())
}

/// Options of properties as text; 0 if one has a value that does not parse, or a name that nobody knows and that is not to be passed over.
pub(crate) fn parse(env: Env, config: jlong, text: jobject) -> Answer<jlong> {
    let (config, text) = (object::<Config>(config), env.text(text)?);
    let text = if config.delimiter == ";" { text } else { text.replace(&config.delimiter, ";") };
    let mut options = rocksdb_options_t::default();
    let whole = outcrop_options::file::set_from_string(&mut options.db, &mut options.cf, &text);
    if whole.is_ok() {
        return Ok(handle(options));
    }
    if !config.ignores_unknown {
        return Ok(0);
    }
    // One by one, so that those with unknown names are left out: no value of theirs is wrong then.
    let mut options = rocksdb_options_t::default();
    for pair in text.split(';').filter(|pair| !pair.trim().is_empty()) {
        let set = outcrop_options::file::set_from_string(&mut options.db, &mut options.cf, pair);
        if set.is_err_and(|error| !error.to_string().contains("unknown option")) {
            return Ok(0);
        }
    }
    Ok(handle(options))
}

/// Puts the options of an OPTIONS file into an object for the database, and descriptors of its column families into a list.
fn take(env: Env, config: &Config, file: &LoadedOptions, options: jlong, descriptors: jobject) -> Answer<()> {
    if let Some((section, name)) = file.unknown().filter(|_| !config.ignores_unknown) {
        return Err(Error::invalid_argument(format!("unknown option {name} in [{section}]")).into());
    }
    let add = env.class("java/util/List")?;
    let add = jni!(env, GetMethodID, add, c"add".as_ptr(), c"(Ljava/lang/Object;)Z".as_ptr());
    for (place, (name, _)) in file.families.iter().enumerate() {
        let descriptor = new_descriptor(env, name.as_bytes(), loaded(file, place, None))?;
        jni!(env, CallBooleanMethodA, descriptors, add, [jvalue { l: descriptor }].as_ptr());
        env.check()?;
        jni!(env, DeleteLocalRef, descriptor);
    }
    let own = object::<rocksdb_options_t>(options);
    let read = loaded(file, 0, None);
    own.db = read.db;
    own.texts = read.texts;
    Ok(())
}

pub(crate) fn load_latest(
    env: Env,
    config: jlong,
    path: jobject,
    options: jlong,
    descriptors: jobject,
) -> Answer<()> {
    let config = object::<Config>(config);
    let file = Db::load_latest_options_in(env.text(path)?, &config.files)?;
    take(env, config, &file, options, descriptors)
}

pub(crate) fn load_file(
    env: Env,
    config: jlong,
    path: jobject,
    options: jlong,
    descriptors: jobject,
) -> Answer<()> {
    let (config, path) = (object::<Config>(config), env.text(path)?);
    let bytes = config.files.fs.read_all(Path::new(&path))?;
    let file = outcrop_options::file::parse(&String::from_utf8_lossy(&bytes))?;
    take(env, config, &file, options, descriptors)
}

/// The name of the newest OPTIONS file of a database.
pub(crate) fn latest_name(env: Env, path: jobject, files: jlong) -> Answer<String> {
    let path = env.text(path)?;
    let files = if files == 0 { Files::posix() } else { object::<rocksdb_env_t>(files).0.clone() };
    let dir = Path::new(&path);
    let names = if files.fs.exists(dir)? { files.fs.list(dir)? } else { Vec::new() };
    let number = |name: &String| name.strip_prefix("OPTIONS-").and_then(|digits| digits.parse::<u64>().ok());
    let newest = names.into_iter().filter(|name| number(name).is_some()).max_by_key(number);
    newest.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{path}: no OPTIONS file")).into())
}
