//! Stamps the version, commit and compiler into the build, so that results can name what made them; and compares the
//! layouts that `device::verbs::sys` mirrors with the verbs headers of this machine, where it has any.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A structure of `verbs.h` as it is mirrored.
struct Layout {
    kind: &'static str,
    name: &'static str,
    size: usize,
    fields: &'static [(&'static str, usize)],
}

/// See the file that it is for.
macro_rules! layouts {
    ($($kind:ident $name:ident: $size:expr => { $($($field:ident).+: $offset:expr),* $(,)? })*) => {
        pub(crate) const LAYOUTS: &[super::Layout] = &[$(super::Layout {
            kind: stringify!($kind),
            name: stringify!($name),
            size: $size,
            fields: &[$((stringify!($($field).+), $offset)),*],
        }),*];
    };
}

/// See the file that it is for.
macro_rules! constants {
    ($($name:ident = $value:expr;)*) => {
        pub(crate) const CONSTANTS: &[(&str, u32)] = &[$((stringify!($name), $value)),*];
    };
}

#[path = "src/device/verbs/sys/table.rs"]
mod table;

/// Bytes of `pthread_mutex_t`. Headers are looked at only where this program runs on the machine that it is for.
const MUTEX: usize = if cfg!(target_arch = "aarch64") { 48 } else { 40 };

fn main() {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let compiler = output(&rustc, &["--version"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=TAGMATCH_COMMIT={commit}");
    println!("cargo:rustc-env=TAGMATCH_RUSTC={compiler}");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=.git/HEAD");
    println!("cargo:rerun-if-changed=.git/logs/HEAD");
    println!("cargo:rerun-if-changed=src/device/verbs/sys/table.rs");
    println!("cargo:rerun-if-env-changed=CC");
    let headers = Path::new("/usr/include/infiniband/verbs.h");
    if headers.exists() {
        println!("cargo:rerun-if-changed={}", headers.display());
    }
    let layouts = match compare_layouts() {
        Ok(words) => words,
        Err(difference) => {
            eprintln!("{difference}");
            std::process::exit(1);
        }
    };
    println!("cargo:rustc-env=TAGMATCH_VERBS_LAYOUTS={layouts}");
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// What was compared, in one line; or what differs.
fn compare_layouts() -> Result<String, String> {
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "linux" || variable("CARGO_CFG_TARGET_POINTER_WIDTH") != "64" {
        return Ok("not used on this system".into());
    }
    if variable("HOST") != variable("TARGET") {
        return Ok("not compared with headers: built on another machine".into());
    }
    let folder = PathBuf::from(variable("OUT_DIR"));
    if compile(&folder, "headers", "#include <infiniband/verbs.h>\nint main(void) { return 0; }\n").is_err() {
        return Ok(
            "not compared with headers: no infiniband/verbs.h or no C compiler where this was built".into()
        );
    }
    let program = compile(&folder, "layouts", &program()).map_err(|error| {
        format!("infiniband/verbs.h lacks something that src/device/verbs/sys/table.rs mirrors:\n{error}")
    })?;
    let printed = output(&program.to_string_lossy(), &[]).ok_or("the program that prints layouts failed")?;
    let (expected, compared) = expected();
    let differences: Vec<String> = expected
        .lines()
        .zip(printed.lines())
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(ours, theirs)| format!("  table.rs: {ours}; verbs.h: {theirs}"))
        .collect();
    if printed.lines().count() == compared && differences.is_empty() {
        Ok(format!("compared with infiniband/verbs.h: {compared} sizes, offsets and constants agree"))
    } else {
        Err(format!(
            "src/device/verbs/sys/table.rs differs from infiniband/verbs.h:\n{}",
            differences.join("\n")
        ))
    }
}

/// The C program that prints what [`expected`] says.
fn program() -> String {
    let mut text =
        "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n"
            .to_owned();
    for layout in table::LAYOUTS {
        let of = format!("{} {}", layout.kind, layout.name);
        let _ = writeln!(text, "printf(\"{} %zu\\n\", sizeof({of}));", layout.name);
        for (field, _) in layout.fields {
            let field = field_name(field);
            let name = layout.name;
            let _ = writeln!(text, "printf(\"{name}.{field} %zu\\n\", offsetof({of}, {field}));");
        }
    }
    for (name, _) in table::CONSTANTS {
        let _ = writeln!(text, "printf(\"{name} %lld\\n\", (long long){name});");
    }
    text + "return 0;\n}\n"
}

/// The table as the C program prints it, and its lines.
fn expected() -> (String, usize) {
    let mut text = String::new();
    for layout in table::LAYOUTS {
        let _ = writeln!(text, "{} {}", layout.name, layout.size);
        for (field, offset) in layout.fields {
            let _ = writeln!(text, "{}.{} {offset}", layout.name, field_name(field));
        }
    }
    for (name, value) in table::CONSTANTS {
        let _ = writeln!(text, "{name} {value}");
    }
    let lines = text.lines().count();
    (text, lines)
}

/// As C writes it.
fn field_name(field: &str) -> String {
    field.replace("r#", "").replace(' ', "")
}

/// Compile a C program, and say where it is.
fn compile(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let done = Command::new(compiler).arg(&source).arg("-o").arg(&program).output();
    let done = done.map_err(|error| error.to_string())?;
    if done.status.success() { Ok(program) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}
