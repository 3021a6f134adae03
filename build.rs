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

/// A structure of libfabric as it is mirrored: its size in API 1.17 and in API 2.6.
struct FabricLayout {
    name: &'static str,
    old: usize,
    size: usize,
    fields: &'static [(&'static str, usize)],
}

/// See the file that it is for.
macro_rules! fabric_layouts {
    ($($name:ident: $old:expr, $size:expr => { $($field:ident: $offset:expr),* $(,)? })*) => {
        pub(crate) const LAYOUTS: &[super::FabricLayout] = &[$(super::FabricLayout {
            name: stringify!($name),
            old: $old,
            size: $size,
            fields: &[$((stringify!($field), $offset)),*],
        }),*];
    };
}

/// See the file that it is for.
macro_rules! fabric_constants {
    ($($name:ident = $value:expr;)*) => {
        pub(crate) const CONSTANTS: &[(&str, u64)] = &[$((stringify!($name), $value)),*];
    };
}

/// See the file that it is for.
macro_rules! later_constants {
    ($($name:ident = $value:expr;)*) => {
        pub(crate) const LATER: &[(&str, u64)] = &[$((stringify!($name), $value)),*];
    };
}

#[path = "src/provider/abi/table.rs"]
mod fabric_table;

/// Bytes of `pthread_mutex_t`. Headers are looked at only where this program runs on the machine that it is for.
const MUTEX: usize = if cfg!(target_arch = "aarch64") { 48 } else { 40 };

fn main() {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let compiler = output(&rustc, &["--version"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=TAGMATCH_COMMIT={commit}");
    println!("cargo:rustc-env=TAGMATCH_RUSTC={compiler}");
    println!("cargo:rerun-if-changed=build.rs");
    // A file that is not there would count as changed each time. (In a work tree of git's, .git is a file itself.)
    for name in ["HEAD", "logs/HEAD"] {
        let place =
            output("git", &["rev-parse", "--git-path", name]).filter(|place| Path::new(place).exists());
        if let Some(place) = place {
            println!("cargo:rerun-if-changed={place}");
        }
    }
    println!("cargo:rerun-if-changed=src/device/verbs/sys/table.rs");
    println!("cargo:rerun-if-changed=src/provider/abi/table.rs");
    println!("cargo:rerun-if-env-changed=CC");
    for headers in ["/usr/include/infiniband/verbs.h", "/usr/include/rdma/fabric.h"] {
        if Path::new(headers).exists() {
            println!("cargo:rerun-if-changed={headers}");
        }
    }
    println!("cargo:rustc-env=TAGMATCH_VERBS_LAYOUTS={}", agreed(compare_layouts(&verbs())));
    println!("cargo:rustc-env=TAGMATCH_FABRIC_LAYOUTS={}", agreed(compare_layouts(&fabric())));
}

/// What was compared; a difference ends the build.
fn agreed(compared: Result<String, String>) -> String {
    compared.unwrap_or_else(|difference| {
        eprintln!("{difference}");
        std::process::exit(1);
    })
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// A table of layouts beside the headers that it mirrors.
struct Mirror {
    /// For the names of files.
    name: &'static str,
    table: &'static str,
    header: &'static str,
    /// Lines before `main`.
    includes: String,
    /// What the compiler must take for the headers to be there.
    probe: &'static str,
    /// Statements that print one line each, and the lines that are expected.
    statements: Vec<(String, String)>,
}

/// What was compared, in one line; or what differs.
fn compare_layouts(mirror: &Mirror) -> Result<String, String> {
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "linux" || variable("CARGO_CFG_TARGET_POINTER_WIDTH") != "64" {
        return Ok("not used on this system".into());
    }
    if variable("HOST") != variable("TARGET") {
        return Ok("not compared with headers: built on another machine".into());
    }
    let folder = PathBuf::from(variable("OUT_DIR"));
    let Mirror { name, table, header, .. } = mirror;
    let main = |body: &str| format!("{}int main(void) {{\n{body}return 0;\n}}\n", mirror.includes);
    if compile(&folder, &format!("{name}-headers"), &main(mirror.probe)).is_err() {
        return Ok(format!("not compared with headers: no {header} or no C compiler where this was built"));
    }
    let body: String = mirror.statements.iter().map(|(statement, _)| statement.as_str()).collect();
    let program = compile(&folder, &format!("{name}-layouts"), &main(&body))
        .map_err(|error| format!("{header} lacks something that {table} mirrors:\n{error}"))?;
    let printed = output(&program.to_string_lossy(), &[]).ok_or("the program that prints layouts failed")?;
    let lines: Vec<&str> = printed.lines().collect();
    let differences: Vec<String> = mirror
        .statements
        .iter()
        .zip(&lines)
        .filter(|((_, ours), theirs)| ours != **theirs && **theirs != "-")
        .map(|((_, ours), theirs)| format!("  table.rs: {ours}; {header}: {theirs}"))
        .collect();
    let compared = lines.iter().filter(|line| **line != "-").count();
    if lines.len() == mirror.statements.len() && differences.is_empty() {
        Ok(format!("compared with {header}: {compared} sizes, offsets and constants agree"))
    } else {
        Err(format!("{table} differs from {header}:\n{}", differences.join("\n")))
    }
}

/// Verbs.
fn verbs() -> Mirror {
    let mut statements = Vec::new();
    for layout in table::LAYOUTS {
        let (name, of) = (layout.name, format!("{} {}", layout.kind, layout.name));
        statements.push(line(name, "%zu", &format!("sizeof({of})"), layout.size as u64));
        for (field, offset) in layout.fields {
            let field = field_name(field);
            let value = format!("offsetof({of}, {field})");
            statements.push(line(&format!("{name}.{field}"), "%zu", &value, *offset as u64));
        }
    }
    for (name, value) in table::CONSTANTS {
        statements.push(line(name, "%llu", &format!("(unsigned long long){name}"), u64::from(*value)));
    }
    Mirror {
        name: "verbs",
        table: "src/device/verbs/sys/table.rs",
        header: "infiniband/verbs.h",
        includes: "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\n".into(),
        probe: "",
        statements,
    }
}

/// libfabric, of API 1.17 or later. What the installed headers do not have yet prints a dash.
fn fabric() -> Mirror {
    let mut statements = Vec::new();
    for FabricLayout { name, old, size, fields } in fabric_table::LAYOUTS {
        let exact = format!("sizeof(struct {name}) < {old} || sizeof(struct {name}) > {size}");
        let bounds = format!("{name} between {old} and {size}");
        let statement = format!(
            "if ({exact}) printf(\"{name} %zu\\n\", sizeof(struct {name})); else printf(\"{bounds}\\n\");\n"
        );
        statements.push((statement, bounds));
        for (field, offset) in *fields {
            let field = field_name(field);
            let value = format!("offsetof(struct {name}, {field})");
            let (statement, expected) = line(&format!("{name}.{field}"), "%zu", &value, *offset as u64);
            let statement = if offset < old { statement } else { only_later(&statement) };
            statements.push((statement, expected));
        }
    }
    let value = |name: &str| format!("(unsigned long long)({name})");
    statements.extend(fabric_table::CONSTANTS.iter().map(|(name, v)| line(name, "%llu", &value(name), *v)));
    for (name, v) in fabric_table::LATER {
        let (statement, expected) = line(name, "%llu", &value(name), *v);
        statements.push((only_later(&statement), expected));
    }
    let headers = "fabric.h fi_domain.h fi_endpoint.h fi_eq.h fi_cm.h fi_tagged.h fi_rma.h fi_atomic.h \
                   fi_collective.h fi_errno.h providers/fi_prov.h";
    let mut includes = "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n".to_owned();
    for header in headers.split_whitespace() {
        let _ = writeln!(includes, "#include <rdma/{header}>");
    }
    Mirror {
        name: "fabric",
        table: "src/provider/abi/table.rs",
        header: "rdma/fabric.h",
        includes,
        probe: "_Static_assert(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION(1, 17), \"too old\");\n",
        statements,
    }
}

/// A statement that prints a name and a value, and the line that it should print.
fn line(name: &str, format: &str, value: &str, expected: u64) -> (String, String) {
    (format!("printf(\"{name} {format}\\n\", {value});\n"), format!("{name} {expected}"))
}

/// A statement for headers of API 2.6 and later alone.
fn only_later(statement: &str) -> String {
    format!(
        "#if FI_MAJOR_VERSION > 2 || (FI_MAJOR_VERSION == 2 && FI_MINOR_VERSION >= 6)\n{statement}#else\n\
         printf(\"-\\n\");\n#endif\n"
    )
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
