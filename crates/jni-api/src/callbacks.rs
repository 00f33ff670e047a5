//! Calls from the engine into Java: objects that outlive the call that gave them, on whichever thread.
//!
//! A thread of the engine is attached to the JVM as a daemon at its first call and detached as it ends. An exception that a
//! callback throws is described on standard error and cleared, as in RocksJava: there is no caller to give it to.

use crate::env::{Env, jni};
use crate::glue::Answer;
use jni_sys::{JNIInvokeInterface_, JavaVM, jint, jmethodID, jobject, jvalue};
use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

/// An object of Java's that outlives the call that gave it.
pub(crate) struct Global {
    vm: *mut JavaVM,
    object: jobject,
}

// SAFETY: the JVM lets any attached thread use a global reference.
unsafe impl Send for Global {}
// SAFETY: as above.
unsafe impl Sync for Global {}

/// References that a callback needs at most.
const FRAME: jint = 64;

impl Global {
    pub(crate) fn new(env: Env, object: jobject) -> Answer<Global> {
        let mut vm = null_mut();
        jni!(env, GetJavaVM, &mut vm);
        Ok(Global { vm, object: env.given(jni!(env, NewGlobalRef, object))? })
    }

    /// The reference, for calls on a thread that Java made.
    pub(crate) fn object(&self) -> jobject {
        self.object
    }

    /// Calls with the JVM as this thread sees it.
    pub(crate) fn with<T>(&self, call: impl FnOnce(Env, jobject) -> T) -> T {
        let mut env: *mut c_void = null_mut();
        // SAFETY: the JVM outlives its native libraries.
        unsafe {
            let table: &JNIInvokeInterface_ = &**self.vm;
            if (table.v1_4.GetEnv)(self.vm, &mut env, jni_sys::JNI_VERSION_1_6) != jni_sys::JNI_OK {
                (table.v1_4.AttachCurrentThreadAsDaemon)(self.vm, &mut env, null_mut());
                // A thread that is ending has no place left: the JVM detaches it.
                let _ = ATTACHED.try_with(|attached| *attached.borrow_mut() = Some(Attached(self.vm)));
            }
        }
        call(Env(env.cast()), self.object)
    }

    /// The same, with a frame for the references that `call` makes. `None` after an exception.
    pub(crate) fn run<T>(&self, call: impl FnOnce(Env, jobject) -> Answer<T>) -> Option<T> {
        self.with(|env, object| {
            jni!(env, PushLocalFrame, FRAME);
            let done = call(env, object).and_then(|given| env.check().map(|()| given));
            if done.is_err() {
                jni!(env, ExceptionDescribe);
                jni!(env, ExceptionClear);
            }
            jni!(env, PopLocalFrame, null_mut());
            done.ok()
        })
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        self.with(|env, object| jni!(env, DeleteGlobalRef, object));
    }
}

/// Detaches the thread as it ends.
struct Attached(*mut JavaVM);

thread_local! {
    static ATTACHED: RefCell<Option<Attached>> = const { RefCell::new(None) };
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: the JVM outlives its native libraries.
        unsafe { ((**self.0).v1_4.DetachCurrentThread)(self.0) };
    }
}

/// A method of an object that a callback calls, looked for once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Method(jmethodID);

// SAFETY: the JVM lets any thread use the number of a method, for as long as its class is loaded; a `Global` keeps it.
unsafe impl Send for Method {}
// SAFETY: as above.
unsafe impl Sync for Method {}

impl Method {
    /// The method of the class of `object`.
    pub(crate) fn of(env: Env, object: jobject, name: &CStr, signature: &CStr) -> Answer<Method> {
        Method::of_class(env, jni!(env, GetObjectClass, object), name, signature)
    }

    pub(crate) fn of_class(env: Env, class: jobject, name: &CStr, signature: &CStr) -> Answer<Method> {
        let id = jni!(env, GetMethodID, class, name.as_ptr(), signature.as_ptr());
        if id.is_null() { Err(crate::glue::Thrown::Pending) } else { Ok(Method(id)) }
    }

    pub(crate) fn call(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<()> {
        jni!(env, CallVoidMethodA, object, self.0, arguments.as_ptr());
        env.check()
    }

    pub(crate) fn call_bool(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<bool> {
        let given = jni!(env, CallBooleanMethodA, object, self.0, arguments.as_ptr());
        env.check().map(|()| given)
    }

    pub(crate) fn call_int(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<jint> {
        let given = jni!(env, CallIntMethodA, object, self.0, arguments.as_ptr());
        env.check().map(|()| given)
    }

    pub(crate) fn call_long(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<i64> {
        let given = jni!(env, CallLongMethodA, object, self.0, arguments.as_ptr());
        env.check().map(|()| given)
    }
}
