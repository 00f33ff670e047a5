//! Ends the process when nobody reads its output any more, as in `outcrop ldb scan | head`.

/// From now on that ends this process without a word, as it does other programs, and not with a panic. For verbs that only
/// look at things.
pub fn end_with_the_reader() {
    // SAFETY: sets a signal back to what it does by default: no code of ours runs when it comes.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
