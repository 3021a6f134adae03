//! `tagmatch man` and `tagmatch completions`: man pages and completions, out of the definitions of the commands, so that
//! they cannot say anything else than `--help`. Packages install what these write.

use crate::output::{self, complain};
use crate::{Arguments, End};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The folder to write the pages into, one file a command; it is made where it is missing.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell that reads them.
    #[arg(value_enum)]
    shell: Shell,
}

/// Write a page for every command that is shown in help, and print where each is.
pub(crate) fn man(arguments: &ManArguments) -> End {
    let folder = &arguments.folder;
    match write_pages(folder) {
        Ok(written) => {
            let lines: Vec<String> = written.iter().map(|page| format!("{}\n", page.display())).collect();
            output::write(&output::harmless(lines.concat()), End::AsExpected)
        }
        Err(error) => {
            complain(format_args!("man pages cannot be written into {}: {error}", folder.display()));
            End::Unusable
        }
    }
}

/// Print what makes a shell complete the commands and their options.
pub(crate) fn completions(arguments: &CompletionsArguments) -> End {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(), "tagmatch", &mut text);
    output::write(&String::from_utf8_lossy(&text), End::AsExpected)
}

/// The commands without those that are hidden, which some shells would be told of.
fn shown() -> Command {
    let all = Arguments::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("tagmatch").version(env!("CARGO_PKG_VERSION")).subcommands(commands)
}

fn write_pages(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let mut top = Arguments::command().disable_help_subcommand(true);
    // Names of commands in commands are put together here.
    top.build();
    let mut written = Vec::new();
    write_page(&top, folder, &mut written)?;
    Ok(written)
}

/// This command's page and those of the commands in it.
fn write_page(command: &Command, folder: &Path, written: &mut Vec<PathBuf>) -> io::Result<()> {
    let page = Man::new(command.clone()).source(SOURCE).manual("tagmatch");
    written.push(page.generate_to(folder)?);
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_page(inner, folder, written)?;
    }
    Ok(())
}

/// At the foot of each page.
const SOURCE: &str = concat!("tagmatch ", env!("CARGO_PKG_VERSION"));
