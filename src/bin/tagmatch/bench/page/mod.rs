//! A run as one page that needs nothing but a browser: plots, tables, and what they mean.
//!
//! No script, nothing from elsewhere. Not here: how plots are drawn (`plot`).

mod axis;
mod parts;
mod plot;

use super::report::{Curve, Measured, Replayed, Report, Row};
use super::text::{about, percent, summed};
use crate::reasons::meaning;
use parts::{Html, badge, date, escaped, head_point};
use plot::{Bars, Colour, Line, Lines, Stacks, Unit};

/// The page.
pub(super) fn page(report: &Report) -> String {
    let mut page = Html::default();
    top(&mut page, report);
    for section in SECTIONS {
        curve(&mut page, report, &section);
    }
    traces(&mut page, report);
    meanings(&mut page, report);
    parts::figures(&mut page, report);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{TITLE}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n{}</body>\n</html>\n",
        page.0
    )
}

/// Where and what, and the one comparison that says most.
fn top(page: &mut Html, report: &Report) {
    let machine = &report.machine;
    page.raw(&format!("<h1>{TITLE}</h1>\n"));
    let busy = if machine.is_busy() { " (busy: times are worth less)" } else { "" };
    let load = |load: Option<f64>| load.map_or("unknown".into(), |load| format!("{load:.1}"));
    page.facts(&format!(
        "{} on {}; load {} before, {} after{busy}. tagmatch {}, commit {}, {}{}.",
        date(report.measured_at),
        machine.words(),
        load(machine.load_before),
        load(machine.load_after),
        report.build.version,
        report.build.commit,
        report.build.compiler,
        if report.build.debug { ", NOT OPTIMISED: times mean little" } else { "" },
    ));
    page.key(&[(SOFTWARE, "software: the host matches"), (OFFLOAD, "offload: the device's list matches")]);
    let heads: Vec<_> =
        report.devices.iter().filter_map(|device| Some((device, head_point(device)?))).collect();
    let groups = heads.iter().map(|(device, head)| {
        let offload = head.offload.map(|point| (OFFLOAD, point.receiver_ns));
        (device.device.clone(), [(SOFTWARE, head.software.receiver_ns)].into_iter().chain(offload).collect())
    });
    let bars = Bars { unit: Unit::Time, groups: groups.collect() };
    page.raw("<div class=\"glance\">\n");
    if let Some(svg) = bars.svg() {
        page.figure("Receiving host's processor time for a message of 8 bytes, receive posted before", &svg);
    }
    if let Some(svg) = traced(report).svg() {
        page.figure(
            "Recorded MPI programs: matched by the list, of what was posted before its message",
            &svg,
        );
    }
    page.raw("</div>\n<ul>\n");
    for (device, head) in &heads {
        let mut text = format!("<li><b>{}</b> {}<br>", escaped(&device.device), badge(device));
        let software = head.software.receiver_ns;
        if let Some(offload) = head.offload {
            text += &format!(
                "A small message takes {} of the receiving host's processor in software, {} with offload: {:.2} times. \
                 The list matched {} of them.<br>",
                Unit::Time.exact(software),
                Unit::Time.exact(offload.receiver_ns),
                offload.receiver_ns / software.max(1e-9),
                percent(offload.share_in_hardware)
            );
        }
        let about = about(device);
        let about = about.iter().map(|line| line.trim_end_matches('.')).collect::<Vec<_>>().join("; ");
        page.raw(&format!("{text}<span class=\"facts\">{}.</span></li>\n", escaped(&about)));
    }
    page.raw("</ul>\n");
    parts::warnings(page, report);
}

/// How much of what they could the devices' lists matched, over the recorded traces that all of them have.
fn traced(report: &Report) -> Bars {
    let is_of = |row: &Row, device: &Measured| {
        let who = (super::rows::OFFLOAD, Some(device.device.as_str()));
        row.results.iter().any(|result| result.who() == who)
    };
    let of_any =
        |device: &&Measured| report.rows.iter().any(|row| row.kind == "recorded" && is_of(row, device));
    let devices: Vec<&Measured> = report.devices.iter().filter(of_any).collect();
    let share = |device: &Measured| {
        let who = (super::rows::OFFLOAD, Some(device.device.as_str()));
        let recorded = report.rows.iter().filter(|row| row.kind == "recorded");
        let recorded = recorded.filter(|row| devices.iter().all(|device| is_of(row, device)));
        let results = recorded.flat_map(|row| &row.results).filter(|result| result.who() == who);
        let (matched, posted) = results.fold((0u64, 0u64), |(matched, posted), result| {
            let matched = matched.saturating_add(result.matches_in_hardware);
            (matched, posted.saturating_add(result.matches_of_posted))
        });
        (posted > 0).then(|| super::share(matched, posted))
    };
    let groups = report
        .devices
        .iter()
        .filter_map(|device| Some((device.device.clone(), vec![(OFFLOAD, share(device)?)])));
    Bars { unit: Unit::Share, groups: groups.collect() }
}

/// Plots of a curve, a row of them for each device.
struct Section {
    curve: Curve,
    title: &'static str,
    says: &'static str,
    shows: &'static [Shows],
}

/// What a plot shows of its points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shows {
    Receiver,
    Latency,
    Rate,
    Share,
}

impl Shows {
    const fn title(self) -> &'static str {
        match self {
            Self::Receiver => "Receiving host's processor time for a message",
            Self::Latency => "Latency of one message",
            Self::Rate => "Messages per second, on one processor",
            Self::Share => "Share matched by the device's list",
        }
    }

    const fn unit(self) -> Unit {
        match self {
            Self::Receiver | Self::Latency => Unit::Time,
            Self::Rate => Unit::Rate,
            Self::Share => Unit::Share,
        }
    }
}

fn curve(page: &mut Html, report: &Report, section: &Section) {
    let curve = section.curve;
    let shown: Vec<&Measured> = report
        .devices
        .iter()
        .filter(|device| device.points.iter().any(|point| point.curve == curve))
        .filter(|device| curve != Curve::List || device.offload.is_some())
        .collect();
    if shown.is_empty() {
        return;
    }
    page.heading(section.title, section.says);
    page.key(&[(SOFTWARE, "software"), (OFFLOAD, "offload")]);
    for device in shown {
        page.raw(&format!("<h3>{} {}</h3>\n<div class=\"plots\">\n", escaped(&device.device), badge(device)));
        for &shows in section.shows {
            if let Some(svg) = lines(device, curve, shows).svg() {
                page.figure(shows.title(), &svg);
            }
        }
        page.raw("</div>\n");
    }
}

/// One plot: software beside offload.
fn lines(device: &Measured, curve: Curve, shows: Shows) -> Lines {
    let values: Vec<u64> =
        super::text::values(device, curve).into_iter().filter(|at| curve != Curve::List || *at > 0).collect();
    let side = |is_offload: bool| -> Vec<Option<f64>> {
        let of = |at: u64| {
            // Of software there is one figure, whatever the length of a list that it does not use.
            let at = if curve == Curve::List && !is_offload { 0 } else { at };
            let point = device.point(curve, at, is_offload)?;
            match shows {
                Shows::Receiver => Some(point.receiver_ns),
                Shows::Latency => point.latency_ns,
                Shows::Rate => Some(point.per_second),
                Shows::Share => Some(point.share_in_hardware),
            }
        };
        values.iter().map(|&at| of(at)).collect()
    };
    let mut lines = vec![Line { colour: SOFTWARE, y: side(false) }];
    if shows == Shows::Share {
        lines.clear();
    }
    lines.push(Line { colour: OFFLOAD, y: side(true) });
    Lines {
        x_title: curve.words().into(),
        x: values.iter().map(|&at| curve.value(at)).collect(),
        unit: shows.unit(),
        lines,
    }
}

/// Who matched in each trace, and why the device did not match the rest.
fn traces(page: &mut Html, report: &Report) {
    let recorded: Vec<_> = report.rows.iter().filter(|row| row.kind == "recorded").collect();
    let mut is_first = true;
    for device in &report.devices {
        let name = device.device.as_str();
        let offload = |result: &&Replayed| result.who() == (super::rows::OFFLOAD, Some(name));
        let results: Vec<_> =
            recorded.iter().filter_map(|row| Some((*row, row.results.iter().find(offload)?))).collect();
        if results.is_empty() {
            continue;
        }
        if std::mem::take(&mut is_first) {
            page.heading(
                "Recorded traces of MPI programs",
                "Every receive of each trace, by who matched it; where that was not the device's list, why. The source is \
                 in the tag. The number is the share of the matches that the list made.",
            );
        }
        let mut reasons: Vec<&str> =
            results.iter().flat_map(|(_, result)| result.reasons.keys().map(String::as_str)).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let bars = results.iter().map(|(row, result)| {
            let total = result
                .reasons
                .values()
                .fold(result.matches_in_hardware, |sum, count| sum.saturating_add(*count));
            let share = |count| super::share(count, total);
            let others = reasons.iter().enumerate().map(|(number, reason)| {
                (colour(reason, number), share(result.reasons.get(*reason).copied().unwrap_or_default()))
            });
            let pieces = [(OFFLOAD, share(result.matches_in_hardware))].into_iter().chain(others).collect();
            (row.name.clone(), pieces, result.share_in_hardware.map_or(String::new(), percent))
        });
        page.raw(&format!("<h3>{} {}</h3>\n", escaped(name), badge(device)));
        let mut key = vec![(OFFLOAD, "matched by the device's list".to_owned())];
        key.extend(
            reasons
                .iter()
                .enumerate()
                .map(|(number, reason)| (colour(reason, number), reason.replace('_', " "))),
        );
        let key: Vec<(Colour, &str)> = key.iter().map(|(colour, name)| (*colour, name.as_str())).collect();
        page.key(&key);
        if let Some(svg) = (Stacks { bars: bars.collect() }).svg() {
            page.figure(&format!("Who matched the receives of each trace ({name})"), &svg);
        }
    }
}

/// What figures and reasons mean.
fn meanings(page: &mut Html, report: &Report) {
    page.heading("What the words mean", "");
    page.raw("<dl>\n");
    for (word, what) in WORDS {
        page.definition(word, what);
    }
    if let Some(refused) = &report.instructions_refused {
        page.definition("instructions", &format!("not counted: {refused}"));
    } else {
        page.definition(
            "instructions",
            "of the receiver's calls, outside the kernel, for a message: the tables have them",
        );
    }
    let mut reasons: Vec<String> =
        report.devices.iter().flat_map(|device| summed(report, &device.device).into_keys()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        page.definition(
            &reason.replace('_', " "),
            &format!("a receive that the list did not match: {}", meaning(&reason)),
        );
    }
    page.raw("</dl>\n");
}

/// Of a reason. What no list could have matched is grey.
fn colour(reason: &str, number: usize) -> Colour {
    if reason == crate::reasons::MESSAGE_WAS_FIRST {
        (0xA9, 0xB2, 0xBC)
    } else {
        OTHERS[number % OTHERS.len()]
    }
}

const SECTIONS: [Section; 5] = [
    Section {
        curve: Curve::Size,
        title: "By message size",
        says: "64 messages at a time (fewer of long ones), each receive posted before its message.",
        shows: &[Shows::Receiver, Shows::Latency, Shows::Rate],
    },
    Section {
        curve: Curve::Depth,
        title: "By how many older receives are in the list",
        says: "So many receives that none of the messages fits stand before those that are measured. When they fill the \
               device's list, software matches the rest.",
        shows: &[Shows::Receiver, Shows::Latency, Shows::Share],
    },
    Section {
        curve: Curve::List,
        title: "By the length of the device's list",
        says: "1,024 receives are posted, then their messages come. Software uses no list: its line is one figure.",
        shows: &[Shows::Receiver, Shows::Share],
    },
    Section {
        curve: Curve::Wildcards,
        title: "By the share of receives with a wildcard",
        says: "256 receives, some of which take any tag; then their messages.",
        shows: &[Shows::Receiver, Shows::Share],
    },
    Section {
        curve: Curve::Unexpected,
        title: "By the share of messages that come before their receive",
        says: "256 messages, some of which are there before their receive is posted: those no list can match.",
        shows: &[Shows::Receiver, Shows::Share],
    },
];

const WORDS: [(&str, &str); 6] = [
    ("software", "every message is matched by this library's engine, on the host"),
    (
        "offload",
        "receives are put into the list of the device as far as that is safe, and the device matches them; the \
                 engine matches the rest",
    ),
    (
        "model",
        "the device that matches, or the card that carries messages, is software in this program. Its own time says \
               nothing of a card. Which messages it matches, and what the host has to do for that, is what a card of this \
               kind would have to be given",
    ),
    (
        "processor time",
        "of the calls that the receiver makes for a message: post, progress, completion; in the kernel and \
                        outside; median. Calls that find nothing are not counted, nor what the system does on behalf of the \
                        sender or in threads of its own, nor the model of a card",
    ),
    (
        "latency",
        "from the call that sends to the completed receive, one message at a time, both sides driven by one thread \
                 in turn; median. A model's own time is in it",
    ),
    ("messages per second", "the same for a burst: both sides, and a model, on one processor"),
];

const TITLE: &str = "Tag matching: offload against software";
const STYLE: &str = include_str!("style.css");
const SOFTWARE: Colour = (0x2B, 0x6C, 0xB0);
const OFFLOAD: Colour = (0xD9, 0x62, 0x0B);
const OTHERS: [Colour; 7] = [
    (0x4C, 0x78, 0xA8),
    (0x7B, 0x5E, 0xA7),
    (0x3D, 0x8F, 0x6B),
    (0xB2, 0x8A, 0x1E),
    (0x9C, 0x3D, 0x54),
    (0x2F, 0x8F, 0x9D),
    (0x5B, 0x5F, 0x66),
];
