//! The half that has the clock, and says what is done.

use super::control::Control;
use super::plan::{Ahead, Contender, Line, Loop, Pattern, Setup, Work};
use super::report::{Point, Ratio, Result as Figures};
use super::work::{Open, Role};
use super::{contenders, halves};
use crate::figures::Spread;
use crate::output::progress;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// What is measured of each contender.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) pattern: Pattern,
    pub(super) cases: Vec<Case>,
    pub(super) rounds: u32,
    /// How many turns a batch has; else how long it is.
    pub(super) count: Option<u32>,
    pub(super) batch: Duration,
}

/// A point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) bytes: usize,
    pub(super) ahead: Option<Ahead>,
}

/// This half.
pub(super) struct Lead {
    control: Control,
    address: IpAddr,
    setup: Setup,
    open: Vec<Box<dyn Open>>,
}

impl Lead {
    /// Say what comes, and open all contenders on both sides.
    pub(super) fn open(other: halves::Other, setup: Setup, patience: Duration) -> Result<Self, String> {
        let halves::Other { socket, child, address } = other;
        let control = Control::new(socket, child, patience)
            .map_err(|error| format!("there can be no line to the other half: {error}"))?;
        let mut lead = Self { control, address, setup, open: Vec::new() };
        match lead.greet() {
            Ok(()) => Ok(lead),
            Err(why) => Err(lead.give_up(&why)),
        }
    }

    fn greet(&mut self) -> Result<(), String> {
        self.control.begin();
        let greeting = Line::Greeting { speaks: super::plan::speaks(), setup: self.setup.clone() };
        self.control.say(&greeting)?;
        for number in 0..self.setup.contenders.len() {
            self.open_one(number).map_err(|why| self.named(number, &why))?;
        }
        self.control.end();
        Ok(())
    }

    fn open_one(&mut self, number: usize) -> Result<(), String> {
        let mut opened = contenders::open(&self.setup.contenders[number], self.address, &self.setup)?;
        self.control.say(&Line::Open { contender: number })?;
        let Line::Opened { name, .. } = self.control.hear()? else { return Err(UNHEARD.into()) };
        opened.meet(&name)?;
        self.control.say(&Line::Meet { contender: number, name: opened.name() })?;
        self.done()?;
        self.open.push(opened);
        // Connections come about, and buffers are touched for the first time.
        let pattern = Pattern::PingPong;
        let hello = Loop { pattern, bytes: 0, count: 1, warm: 2, is_checked: true };
        self.work(number, Work::Loop(hello)).map(|_| ())
    }

    /// What the contenders are, in words.
    pub(super) fn what(&self) -> Vec<(Contender, String)> {
        self.setup.contenders.iter().cloned().zip(self.open.iter().map(|open| open.what())).collect()
    }

    /// Measure all, and end the other half.
    pub(super) fn measure(&mut self, wanted: &Wanted) -> Result<Vec<Point>, String> {
        let result = self.points(wanted);
        // Closed before the other half is told, as it closes then.
        self.open.clear();
        match result {
            Ok(points) => {
                self.control.say(&Line::End)?;
                self.control.wait_for_child();
                Ok(points)
            }
            Err(why) => Err(self.give_up(&why)),
        }
    }

    /// Tell the other half that it is over: why it is.
    fn give_up(&mut self, why: &str) -> String {
        self.open.clear();
        // Nobody may be there to be told.
        let _ = self.control.say(&Line::Failed { why: why.to_owned() });
        self.control.wait_for_child();
        why.to_owned()
    }

    fn points(&mut self, wanted: &Wanted) -> Result<Vec<Point>, String> {
        let bar = progress(wanted.cases.len());
        let mut points = Vec::new();
        for case in &wanted.cases {
            let words = case
                .ahead
                .map_or_else(String::new, |ahead| format!(", {} {} ahead", ahead.depth, ahead.list.words()));
            bar.set_message(format!("{} bytes{words}", case.bytes));
            points.push(self.point(wanted, case)?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(points)
    }

    fn point(&mut self, wanted: &Wanted, case: &Case) -> Result<Point, String> {
        let number = self.open.len();
        let mut times = vec![Vec::new(); number];
        let mut counts = vec![0; number];
        for (contender, count) in counts.iter_mut().enumerate() {
            *count = self.begin(contender, wanted, case).map_err(|why| self.named(contender, &why))?;
        }
        for round in 0..wanted.rounds as usize {
            for turn in 0..number {
                // Whoever was first is last in the next round.
                let contender = (round + turn) % number;
                let l = turns(wanted, case, counts[contender]);
                let time = self.work(contender, Work::Loop(l)).map_err(|why| self.named(contender, &why))?;
                times[contender].push(each(&l, time));
            }
        }
        if let Some(ahead) = case.ahead {
            for contender in 0..number {
                let drained = self.work(contender, Work::Drain(ahead));
                drained.map_err(|why| self.named(contender, &why))?;
            }
        }
        Ok(self.figures(case, times, &counts))
    }

    /// Fill the lists, see that all is right, and find out how many turns a batch has.
    fn begin(&mut self, contender: usize, wanted: &Wanted, case: &Case) -> Result<usize, String> {
        if let Some(ahead) = case.ahead {
            self.work(contender, Work::Fill(ahead))?;
        }
        let checked = Loop { is_checked: true, warm: 0, ..turns(wanted, case, 1) };
        self.work(contender, Work::Loop(checked))?;
        if let Some(count) = wanted.count {
            return Ok(count as usize);
        }
        let mut count = 1;
        loop {
            // With all that it waits for, so that a busy machine has shorter turns and not longer ones.
            let begin = Instant::now();
            self.work(contender, Work::Loop(turns(wanted, case, count)))?;
            let time = begin.elapsed();
            if time * 8 >= wanted.batch || count >= COUNT_MAX {
                return Ok(turns_of(wanted.batch, time, count));
            }
            count *= 4;
        }
    }

    /// One piece of work of both halves: how long its counted turns took here.
    fn work(&mut self, contender: usize, work: Work) -> Result<Duration, String> {
        self.control.begin();
        self.control.say(&Line::Work { contender, work })?;
        let time = self.open[contender].work(&work, Role::Lead);
        let time = time.map_err(|why| self.control.why_soon(&why))?;
        self.done()?;
        self.control.end();
        Ok(time)
    }

    fn done(&self) -> Result<(), String> {
        if self.control.hear()? == Line::Done { Ok(()) } else { Err(UNHEARD.into()) }
    }

    fn figures(&self, case: &Case, times: Vec<Vec<f64>>, counts: &[usize]) -> Point {
        let ratios = times.iter().enumerate().skip(1).filter_map(|(other, theirs)| {
            let ratio = Spread::of_ratios(&times[0], theirs)?;
            Some(Ratio { against: self.setup.contenders[other].name().to_owned(), ratio })
        });
        let ratios = ratios.collect();
        let results = times.into_iter().zip(counts).enumerate();
        let results = results.filter_map(|(contender, (rounds, count))| {
            let time = Spread::of(&rounds)?;
            let name = self.setup.contenders[contender].name().to_owned();
            Some(Figures::new(name, case.bytes, *count, time, rounds))
        });
        Point { bytes: case.bytes, ahead: case.ahead, results: results.collect(), ratios }
    }

    fn named(&self, contender: usize, why: &str) -> String {
        let name = self.setup.contenders[contender].name();
        let why = self.control.why(why);
        if why.starts_with(&format!("{name}: ")) { why } else { format!("{name}: {why}") }
    }
}

fn turns(wanted: &Wanted, case: &Case, count: usize) -> Loop {
    let warm = (count / 10).clamp(1, WARM_MAX);
    Loop { pattern: wanted.pattern, bytes: case.bytes, count, warm, is_checked: false }
}

/// Nanoseconds: half a round trip, or of a message.
fn each(l: &Loop, time: Duration) -> f64 {
    let messages = match l.pattern {
        Pattern::PingPong => 2,
        Pattern::Windows { window } => window,
    };
    #[expect(clippy::cast_precision_loss, reason = "times and counts are far below 2^53")]
    let each = time.as_nanos() as f64 / (l.count * messages) as f64;
    each
}

/// How many turns fill a batch, if so many took this.
fn turns_of(batch: Duration, time: Duration, count: usize) -> usize {
    let wanted = batch.as_nanos() * count as u128 / time.as_nanos().max(1);
    usize::try_from(wanted).unwrap_or(COUNT_MAX).clamp(1, COUNT_MAX)
}

/// Turns of a batch at most.
const COUNT_MAX: usize = 50_000_000;
/// Turns that are not counted at most.
const WARM_MAX: usize = 100;
const UNHEARD: &str = "the other half answers what was not asked";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_of_one_message_in_one_direction() {
        let there_and_back =
            Loop { pattern: Pattern::PingPong, bytes: 8, count: 10, warm: 0, is_checked: false };
        let time = Duration::from_nanos(4000);
        assert!((each(&there_and_back, time) - 200.0).abs() < 1e-9);
        let windows = Loop { pattern: Pattern::Windows { window: 8 }, ..there_and_back };
        assert!((each(&windows, time) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_batch_has_as_many_turns_as_its_time_holds() {
        let (batch, time) = (Duration::from_millis(10), Duration::from_millis(2));
        assert_eq!(turns_of(batch, time, 100), 500);
        assert_eq!(turns_of(batch, Duration::ZERO, 1), 10_000_000);
        assert_eq!(turns_of(batch, Duration::from_secs(5), 1), 1);
    }
}
