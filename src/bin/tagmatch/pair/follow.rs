//! The half that does what it is told.

use super::contenders;
use super::control::{Control, Socket};
use super::halves::{self, Other};
use super::plan::{Line, Setup};
use super::system;
use super::work::{Open, Role};
use crate::End;
use crate::output::complain;
use std::net::IpAddr;
use std::time::Duration;

/// As the other half of the process that started this one.
pub(crate) fn run() -> End {
    end(halves::inherited().and_then(follow))
}

/// For one half on another host.
pub(super) fn run_at(address: &str) -> End {
    let other = halves::listen(address, |at| {
        complain(format_args!("waiting at {at} for the other half: --connect {at}"));
    });
    end(other.and_then(follow))
}

fn end(result: Result<(), String>) -> End {
    match result {
        Ok(()) => End::AsExpected,
        Err(why) => {
            if !why.is_empty() {
                complain(why);
            }
            End::Unusable
        }
    }
}

/// Until all is done. An empty error: the other half has said it already.
fn follow(other: Other) -> Result<(), String> {
    let Other { mut socket, address, .. } = other;
    let setup = halves::greeting(&mut socket)?;
    let is_near = matches!(socket, Socket::Near(_));
    if let Some(cpu) = setup.cpu {
        system::bind(cpu)?;
    }
    contenders::prepare(&setup)?;
    // It is the leader who counts the time.
    let control = Control::new(socket, None, Duration::MAX).map_err(|error| error.to_string())?;
    let mut half = Half { control, address, open: setup.contenders.iter().map(|_| None).collect(), setup };
    let result = half.all();
    // Endpoints are closed whatever happened.
    half.open.clear();
    match result {
        Ok(()) => {
            half.control.over();
            Ok(())
        }
        Err(why) => {
            let why = half.control.why_soon(&why);
            let is_told = half.control.say(&Line::Failed { why: why.clone() }).is_ok();
            half.control.over();
            Err(if is_told && is_near { String::new() } else { why })
        }
    }
}

struct Half {
    control: Control,
    address: IpAddr,
    open: Vec<Option<Box<dyn Open>>>,
    setup: Setup,
}

impl Half {
    fn all(&mut self) -> Result<(), String> {
        loop {
            let answer = match self.control.hear()? {
                Line::Open { contender } => self.open(contender)?,
                Line::Meet { contender, name } => {
                    self.of(contender)?.meet(&name)?;
                    Line::Done
                }
                Line::Work { contender, work } => {
                    self.setup.check_work(&work)?;
                    self.of(contender)?.work(&work, Role::Follow)?;
                    Line::Done
                }
                Line::End => return Ok(()),
                other @ (Line::Greeting { .. } | Line::Opened { .. } | Line::Done | Line::Failed { .. }) => {
                    return Err(format!("{other:?} was not expected"));
                }
            };
            self.control.say(&answer)?;
        }
    }

    fn open(&mut self, number: usize) -> Result<Line, String> {
        let contender = self.setup.contenders.get(number).ok_or_else(|| unknown(number))?;
        let opened = contenders::open(contender, self.address, &self.setup)
            .map_err(|why| format!("{}: {why}", contender.name()))?;
        let answer = Line::Opened { name: opened.name(), what: opened.what() };
        self.open[number] = Some(opened);
        Ok(answer)
    }

    fn of(&mut self, number: usize) -> Result<&mut Box<dyn Open>, String> {
        self.open.get_mut(number).and_then(Option::as_mut).ok_or_else(|| unknown(number))
    }
}

fn unknown(number: usize) -> String {
    format!("contender {number} is not open")
}
