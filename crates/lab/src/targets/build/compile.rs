//! Objects and the library: many compilers at once, objects kept by file, the last lines of one that refuses.
//!
//! Invariant: an object is in place only when it is whole, so a build that was stopped goes on where it was.

use super::compiler::Compiler;
use super::sources::Sources;
use super::{Recipe, last_lines};
use crate::report::status_line::StatusLine;
use crate::report::text::{WIDTH, cut, duration};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Lines of a compiler's complaint that are shown.
const LINES: usize = 12;

/// Compiles and links; gives the library's path.
pub(super) fn library(
    compiler: &Compiler,
    sources: &Sources,
    recipe: &Recipe,
    dir: &Path,
    jobs: Option<usize>,
) -> Result<PathBuf, String> {
    let objects_dir = dir.join("objects");
    std::fs::create_dir_all(&objects_dir).map_err(|error| format!("{}: {error}", objects_dir.display()))?;
    let mut files = sources.files.clone();
    if let Some(text) = &sources.generated {
        let file = dir.join("build_version.cc");
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        files.push(file);
    }
    let pairs: Vec<(PathBuf, PathBuf)> =
        files.into_iter().map(|file| (file.clone(), objects_dir.join(object_name(&file)))).collect();
    compile_all(compiler, sources, recipe, &pairs, jobs)?;
    link(compiler, recipe, &pairs, dir)
}

/// `db/c.cc` as `db.c.cc.o`.
fn object_name(file: &Path) -> String {
    let name = file.to_string_lossy().trim_start_matches('/').replace('/', ".");
    format!("{name}.o")
}

struct Queue {
    /// Files that nobody has begun, the next one last.
    waiting: Vec<(PathBuf, PathBuf)>,
    progress: Progress,
    failed: Option<String>,
}

fn compile_all(
    compiler: &Compiler,
    sources: &Sources,
    recipe: &Recipe,
    pairs: &[(PathBuf, PathBuf)],
    jobs: Option<usize>,
) -> Result<(), String> {
    let mut waiting: Vec<_> = pairs.iter().filter(|(_, object)| !object.exists()).cloned().collect();
    // Long files first: the last ones to end are short.
    waiting.sort_by_key(|(file, _)| std::fs::metadata(sources.root.join(file)).map_or(0, |data| data.len()));
    let workers = jobs.unwrap_or_else(super::cores).clamp(1, waiting.len().max(1));
    let progress = Progress::new(pairs.len(), pairs.len() - waiting.len());
    let queue = Mutex::new(Queue { waiting, progress, failed: None });
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(compiler, sources, recipe, &queue));
        }
    });
    let queue = queue.into_inner().map_err(|_| "a thread that compiled has panicked".to_string())?;
    queue.progress.clear();
    queue.failed.map_or(Ok(()), Err)
}

fn work(compiler: &Compiler, sources: &Sources, recipe: &Recipe, queue: &Mutex<Queue>) {
    loop {
        let (file, object) = {
            let mut queue = queue.lock().expect("nobody panics while holding it");
            if queue.failed.is_some() {
                return;
            }
            let Some((file, object)) = queue.waiting.pop() else { return };
            queue.progress.show(&file);
            (file, object)
        };
        let compiled = compile(compiler, sources, recipe, &file, &object);
        let mut queue = queue.lock().expect("nobody panics while holding it");
        queue.progress.done += 1;
        if let Err(why) = compiled {
            queue.failed.get_or_insert(why);
        }
    }
}

fn compile(
    compiler: &Compiler,
    sources: &Sources,
    recipe: &Recipe,
    file: &Path,
    object: &Path,
) -> Result<(), String> {
    let partial = object.with_extension(format!("part{}", std::process::id()));
    let mut command = Command::new(&compiler.program);
    command.current_dir(&sources.root).args(&recipe.flags).arg("-c").arg(file).arg("-o").arg(&partial);
    finish(&mut command, compiler, &file.display().to_string(), &partial, object)
}

fn link(
    compiler: &Compiler,
    recipe: &Recipe,
    pairs: &[(PathBuf, PathBuf)],
    dir: &Path,
) -> Result<PathBuf, String> {
    let library = dir.join(format!("lib{}.so", recipe.engine));
    let partial = dir.join(format!("lib{}.part{}", recipe.engine, std::process::id()));
    let mut command = Command::new(&compiler.program);
    command.args(pairs.iter().map(|(_, object)| object)).args(&recipe.link).arg("-o").arg(&partial);
    finish(&mut command, compiler, "the objects, as a linker", &partial, &library)?;
    Ok(library)
}

/// Runs `command`; the file that it writes to `partial` gets its name if it succeeded.
fn finish(
    command: &mut Command,
    compiler: &Compiler,
    what: &str,
    partial: &Path,
    place: &Path,
) -> Result<(), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", compiler.program))?;
    if !output.status.success() {
        let _ = std::fs::remove_file(partial);
        let said = last_lines(&String::from_utf8_lossy(&output.stderr), LINES);
        return Err(format!("{} refused {what} ({}):\n  {said}", compiler.program, output.status));
    }
    std::fs::rename(partial, place).map_err(|error| format!("{}: {error}", place.display()))
}

/// A line on standard error: how many files are compiled.
struct Progress {
    total: usize,
    done: usize,
    /// Files that need not be compiled.
    before: usize,
    began: Instant,
    line: StatusLine,
}

impl Progress {
    fn new(total: usize, before: usize) -> Progress {
        Progress { total, done: before, before, began: Instant::now(), line: StatusLine::new() }
    }

    fn show(&mut self, file: &Path) {
        let fresh = (self.done - self.before) as f64;
        let left = if fresh > 0.0 {
            let each = self.began.elapsed().as_secs_f64() / fresh;
            format!("{} left", duration(each * (self.total - self.done) as f64))
        } else {
            "...".to_string()
        };
        let head = format!("{:>4}/{} files  ", self.done, self.total);
        let room = (WIDTH - 3).saturating_sub(head.len() + left.len());
        self.line.show(&format!("{head}{}  {left}", cut(&file.display().to_string(), room)));
    }

    fn clear(&self) {
        self.line.clear();
    }
}
