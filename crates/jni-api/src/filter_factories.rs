//! Compaction filter factories in Java. The filters that they make are native ones: RocksJava knows no others.

use crate::env::Env;
use crate::flink::call_long;
use crate::glue::{Answer, dispose, handle, object};
use crate::objects::{Filter, Global};
use jni_sys::{jlong, jobject, jvalue};
use outcrop::{CompactionFilter, CompactionFilterFactory, FilterContext};
use outcrop_capi::rocksdb_options_t;
use std::sync::Arc;

struct JavaFactory {
    object: Global,
    name: String,
}

impl CompactionFilterFactory for JavaFactory {
    fn name(&self) -> &str {
        &self.name
    }

    /// A compaction whose factory throws goes unfiltered, as with RocksJava.
    fn create(&self, context: FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let arguments =
            [jvalue { z: context.is_full_compaction }, jvalue { z: context.is_manual_compaction }];
        let filter = call_long(&self.object, "createCompactionFilter", "(ZZ)J", |_| Ok(arguments.to_vec()))?;
        if filter == 0 {
            return None;
        }
        // The Java object has given its handle away.
        let made = object::<Filter>(filter).clone();
        let _ = dispose::<Filter>(filter);
        Some(made)
    }
}

type Factory = Arc<JavaFactory>;

pub(crate) fn create(env: Env, this: jobject) -> Answer<jlong> {
    let name = env.call(this, "name", "()Ljava/lang/String;", &[])?;
    Ok(handle::<Factory>(Arc::new(JavaFactory { object: Global::new(env, this)?, name: env.text(name)? })))
}

pub(crate) fn dispose_factory(factory: jlong) -> Answer<()> {
    dispose::<Factory>(factory)
}

pub(crate) fn set(options: jlong, factory: jlong) -> Answer<()> {
    object::<rocksdb_options_t>(options).parts.compaction_filter_factory =
        Some(object::<Factory>(factory).clone());
    Ok(())
}
