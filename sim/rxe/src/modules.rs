//! The modules of a kernel package that are needed, with those that they need, in the order in which they can be loaded.
//!
//! Dependencies are read from the modules themselves (`depends=` in their section .modinfo), since a kernel package that
//! was unpacked and not installed has no modules.dep. Modules packed with xz are unpacked.

use crate::failure::Failure;
use crate::tools;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module: its name with underscores, and the file's content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// The modules named, those that they need before them. What is built into the kernel is left out.
pub(crate) fn in_order(tree: &Path, wanted: &[&str]) -> Result<Vec<Module>, Failure> {
    let mut files = HashMap::new();
    find(tree, &mut files).map_err(|error| Failure::file(tree, error))?;
    let built_in = fs::read_to_string(tree.join("modules.builtin")).unwrap_or_default();
    let mut search = Search { files, built_in: built_in.lines().map(name_of).collect(), ..Search::default() };
    for name in wanted {
        search.add(name)?;
    }
    Ok(search.found)
}

#[derive(Default, Debug)]
struct Search {
    files: HashMap<String, PathBuf>,
    built_in: HashSet<String>,
    seen: HashSet<String>,
    found: Vec<Module>,
}

impl Search {
    fn add(&mut self, name: &str) -> Result<(), Failure> {
        let name = name.replace('-', "_");
        if self.built_in.contains(&name) || !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(file) = self.files.get(&name) else {
            return Err(Failure::Kernel(format!("it has no module {name}")));
        };
        let content = read(file)?;
        for needed in depends(&content) {
            self.add(&needed)?;
        }
        self.found.push(Module { name, content });
        Ok(())
    }
}

/// All module files below a directory, by name.
fn find(folder: &Path, files: &mut HashMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            find(&path, files)?;
        } else if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && (name.ends_with(".ko") || name.ends_with(".ko.xz"))
        {
            files.insert(name_of(name), path.clone());
        }
    }
    Ok(())
}

/// "kernel/fs/9p/9p-x.ko.xz" is the module 9p_x.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    if file.extension().is_some_and(|extension| extension == "xz") {
        return tools::output("xz", "xz-utils", ["-dc".as_ref(), file.as_os_str()]);
    }
    fs::read(file).map_err(|error| Failure::file(file, error))
}

/// What a module says that it needs.
fn depends(content: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(place) = content.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let value: Vec<u8> = content[place + key.len()..].iter().copied().take_while(|&byte| byte != 0).collect();
    let value = String::from_utf8_lossy(&value);
    value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::RunDirectory;

    fn tree(files: &[(&str, &str)]) -> RunDirectory {
        let folder = RunDirectory::new().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn names(tree: &RunDirectory, wanted: &[&str]) -> Vec<String> {
        let modules = in_order(tree.path(), wanted).unwrap();
        modules.into_iter().map(|module| module.name).collect()
    }

    #[test]
    fn what_a_module_needs_comes_before_it_and_once() {
        let tree = tree(&[
            ("kernel/a/one.ko", "x\0depends=two-b,three\0y"),
            ("kernel/b/two-b.ko", "x\0depends=three,inside\0y"),
            ("kernel/b/three.ko", "x\0depends=\0y"),
            ("modules.builtin", "kernel/c/inside.ko\n"),
        ]);
        assert_eq!(names(&tree, &["one", "three", "inside"]), ["three", "two_b", "one"]);
    }

    #[test]
    fn a_module_that_is_nowhere_is_named() {
        let tree = tree(&[("kernel/one.ko", "x\0depends=gone\0")]);
        let failure = in_order(tree.path(), &["one"]).unwrap_err();
        assert!(failure.to_string().contains("gone"), "{failure}");
    }

    #[test]
    fn a_packed_module_is_unpacked() {
        let tree = tree(&[("kernel/one.ko", "x\0depends=two\0"), ("kernel/two.ko", "packed")]);
        let file = tree.path().join("kernel/two.ko");
        let packed = std::process::Command::new("xz").arg(&file).status().unwrap();
        assert!(packed.success() && !file.exists());
        let modules = in_order(tree.path(), &["one"]).unwrap();
        assert_eq!(modules[0], Module { name: "two".into(), content: b"packed".into() });
    }
}
