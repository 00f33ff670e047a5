//! `WriteBatch.Handler`: a batch told to Java, record by record; and what kinds of records a batch has.

use crate::callbacks::Method;
use crate::env::Env;
use crate::glue::{Answer, Thrown, handle, object};
use crate::objects::{Callback, callback};
use crate::status::Status;
use jni_sys::{jlong, jobject, jvalue};
use outcrop::{Op, Record};
use outcrop_capi::{Entry, rocksdb_writebatch_t, walk};

/// The methods of a handler with the number of a column family, 0 for the default one. Those without a number are never called, as in
/// RocksJava. Source: RocksDB `java/rocksjni/writebatchhandlerjnicallback.cc`, which overrides `PutCF` and the like.
struct Methods {
    object: crate::callbacks::Global,
    put: Method,
    merge: Method,
    delete: Method,
    single_delete: Method,
    delete_range: Method,
    log_data: Method,
    should_continue: Method,
}

pub(crate) fn create(env: Env, this: jobject) -> Answer<jlong> {
    let pair = |name| Method::of(env, this, name, c"(I[B[B)V");
    let single = |name| Method::of(env, this, name, c"(I[B)V");
    let methods = Methods {
        object: crate::callbacks::Global::new(env, this)?,
        put: pair(c"put")?,
        merge: pair(c"merge")?,
        delete: single(c"delete")?,
        single_delete: single(c"singleDelete")?,
        delete_range: pair(c"deleteRange")?,
        log_data: Method::of(env, this, c"logData", c"([B)V")?,
        should_continue: Method::of(env, this, c"shouldContinue", c"()Z")?,
    };
    Ok(handle::<Callback>(Box::new(methods)))
}

/// Ends with the handler's exception, as soon as it throws one. A batch of bytes that do not decode tells nothing but why.
pub(crate) fn iterate(env: Env, batch: jlong, handler: jlong) -> Answer<()> {
    let methods = callback::<Methods>(handler)?;
    let own = object::<rocksdb_writebatch_t>(batch);
    own.whole()?;
    let mut outcome = Ok(());
    walk(&own.batch, &mut |entry| {
        let told = methods.should_continue.call_bool(env, methods.object.object(), &[]).and_then(|go_on| {
            if go_on {
                methods.tell(env, &entry)?;
            }
            Ok(go_on)
        });
        match told {
            Ok(go_on) => go_on,
            Err(thrown) => {
                outcome = Err(thrown);
                false
            }
        }
    });
    outcome
}

impl Methods {
    fn tell(&self, env: Env, entry: &Entry<'_>) -> Answer<()> {
        let (cf, of, key, value) = match *entry {
            Entry::LogData(blob) => {
                let blob = env.new_bytes(blob)?;
                let told = self.log_data.call(env, self.object.object(), &[jvalue { l: blob }]);
                crate::env::jni!(env, DeleteLocalRef, blob);
                return told;
            }
            Entry::Write(Record { cf, op }) => match op {
                Op::Put { .. } => (cf, self.put, op.key(), op.value()),
                Op::Merge { .. } => (cf, self.merge, op.key(), op.value()),
                Op::Delete { .. } => (cf, self.delete, op.key(), None),
                Op::SingleDelete { .. } => (cf, self.single_delete, op.key(), None),
                Op::DeleteRange { .. } => (cf, self.delete_range, op.key(), op.value()),
                // As RocksDB's handlers without a method for it.
                Op::PutEntity { .. } => {
                    return Err(Thrown::Status(Status::parse(
                        "Invalid argument: unknown handler for PutEntity",
                    )));
                }
            },
        };
        let key = env.new_bytes(key)?;
        let value = value.map_or(Ok(std::ptr::null_mut()), |value| env.new_bytes(value))?;
        let arguments = [jvalue { i: cf.0 as i32 }, jvalue { l: key }, jvalue { l: value }];
        let count = if value.is_null() { 2 } else { 3 };
        let told = of.call(env, self.object.object(), &arguments[..count]);
        crate::env::jni!(env, DeleteLocalRef, key);
        crate::env::jni!(env, DeleteLocalRef, value);
        told
    }
}

/// Whether a batch has a record that `is` is true of. In bytes that do not decode there is none: these methods of the jar throw nothing.
pub(crate) fn has(batch: jlong, is: impl Fn(&Op<'_>) -> bool) -> Answer<bool> {
    Ok(object::<rocksdb_writebatch_t>(batch).batch.iter().flatten().any(|record| is(&record.op)))
}

pub(crate) fn set_max_bytes(batch: jlong, max_bytes: jlong) -> Answer<()> {
    object::<rocksdb_writebatch_t>(batch).max_bytes = usize::try_from(max_bytes).unwrap_or(0);
    Ok(())
}
