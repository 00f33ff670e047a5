//! Which jars this library is for: looked at as the JVM loads it.
//!
//! RocksJava has no number of its version that a library could ask for before the first call. But a jar of an unknown version
//! declares natives that are not here, and the first call of one would end in an `UnsatisfiedLinkError` in the middle of a
//! program. So the natives of the classes that change most are compared with the lists, and the load fails instead.

use crate::callbacks::{Frame, Global, Method};
use crate::env::{Env, LOADER, jni};
use crate::glue::{Answer, Thrown};
use crate::natives::{NATIVES, VERSIONS};
use jni_sys::{JNI_OK, JNI_VERSION_1_6, JNIInvokeInterface_, JavaVM, jint, jobject};
use std::ffi::c_void;
use std::ptr::null_mut;

/// RocksDB's version as `RocksDB.version` wants it: major, minor and patch, a byte each.
pub(crate) const NUMBER: jint = 11 << 16 | 8 << 8 | 1;

/// Classes whose natives differ from version to version. Looking at them does not initialise them.
const CLASSES: [&str; 4] = [
    "org.rocksdb.BlockBasedTableConfig",
    "org.rocksdb.WriteBatch",
    "org.rocksdb.RocksIterator",
    "org.rocksdb.RocksDB",
];

const NATIVE: jint = 0x0100;

/// Called by the JVM as it loads the library.
#[unsafe(no_mangle)]
unsafe extern "system" fn JNI_OnLoad(vm: *mut JavaVM, _: *mut c_void) -> jint {
    let mut env: *mut c_void = null_mut();
    // SAFETY: the JVM passes itself.
    let got = unsafe {
        let table: &JNIInvokeInterface_ = &**vm;
        (table.v1_4.GetEnv)(vm, &mut env, JNI_VERSION_1_6)
    };
    if got == JNI_OK {
        let env = Env(env.cast());
        if let Err(thrown) = check(env) {
            // An UnsatisfiedLinkError would let RocksJava go on with the jar's own library, and nobody would know.
            env.throw(thrown);
        }
    }
    JNI_VERSION_1_6
}

fn check(env: Env) -> Answer<()> {
    // The class that loads the library is RocksJava's, and FindClass looks where that one came from.
    let loader = env.class("org/rocksdb/NativeLibraryLoader");
    let Ok(anchor) = loader else {
        // Loaded by something else: there is nothing to compare with.
        jni!(env, ExceptionClear);
        return Ok(());
    };
    let loader = env.call(anchor, "getClassLoader", "()Ljava/lang/ClassLoader;", &[])?;
    if !loader.is_null() {
        // Of the first jar, if several loaders have one.
        let _ = LOADER.set(Global::new(env, loader)?);
    }
    for name in CLASSES {
        let argument = jni_sys::jvalue { l: env.new_text(name)? };
        let class = env.call(loader, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;", &[argument])?;
        let methods = env.call(class, "getDeclaredMethods", "()[Ljava/lang/reflect/Method;", &[])?;
        let unknown = env.each(methods, |_, method| unknown(env, name, method))?;
        if let Some(method) = unknown.into_iter().flatten().next() {
            let message = format!(
                "this librocksdbjni is for the jars {VERSIONS} of RocksJava, and not for this one, which declares {method}"
            );
            return Err(Thrown::Java("java/lang/IllegalStateException", message));
        }
    }
    Ok(())
}

/// The method, if it is a native that no list has.
fn unknown(env: Env, class: &str, method: jobject) -> Answer<Option<String>> {
    // There are more methods than references that the JVM has room for at once.
    let _frame = Frame::push(env)?;
    if Method::of(env, method, c"getModifiers", c"()I")?.call_int(env, method, &[])? & NATIVE == 0 {
        return Ok(None);
    }
    let name = env.text(env.call(method, "getName", "()Ljava/lang/String;", &[])?)?;
    let parameters = env.call(method, "getParameterTypes", "()[Ljava/lang/Class;", &[])?;
    let types = env.each(parameters, |_, class| {
        env.text(env.call(class, "getName", "()Ljava/lang/String;", &[])?).map(|name| descriptor(&name))
    })?;
    let start = format!("{} {name} ({})", class.replace('.', "/"), types.concat());
    let known = NATIVES.iter().any(|native| native.starts_with(&start));
    Ok((!known).then_some(start))
}

/// The descriptor of a class, from the name that Java gives it.
fn descriptor(name: &str) -> String {
    match name {
        "long" => "J".into(),
        "int" => "I".into(),
        "boolean" => "Z".into(),
        "byte" => "B".into(),
        "char" => "C".into(),
        "double" => "D".into(),
        array if array.starts_with('[') => array.replace('.', "/"),
        class => format!("L{};", class.replace('.', "/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_classes_become_descriptors() {
        assert_eq!(descriptor("long"), "J");
        assert_eq!(descriptor("[[B"), "[[B");
        assert_eq!(descriptor("[Ljava.lang.String;"), "[Ljava/lang/String;");
        assert_eq!(descriptor("java.nio.ByteBuffer"), "Ljava/nio/ByteBuffer;");
    }

    #[test]
    fn the_lists_are_those_of_the_versions_named() {
        assert_eq!(VERSIONS, "10.1.3, 10.4.2, 11.8.1, frocksdb-8.10.0");
        assert!(NATIVES.is_sorted() && NATIVES.contains(&"org/rocksdb/RocksDB version ()I"));
        let (all, answered) = crate::natives::COUNTS;
        assert_eq!(all, NATIVES.len());
        // Counts only grow: docs/java.md has them.
        assert!(answered >= 1679, "{answered} of {all}");
    }
}
