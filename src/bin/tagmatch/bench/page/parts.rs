//! Pieces of the page: text that does no harm, figures, tables.

use super::plot::Colour;
use crate::bench::report::{Curve, Measured, Point, Report};
use crate::bench::text::{matchers, percent, values};
use crate::table::{nanoseconds, or_dash};

/// HTML in the making.
#[derive(Clone, Default, Debug)]
pub(super) struct Html(pub(super) String);

impl Html {
    /// As it is.
    pub(super) fn raw(&mut self, html: &str) {
        self.0 += html;
    }

    pub(super) fn facts(&mut self, text: &str) {
        self.0 += &format!("<p class=\"facts\">{}</p>\n", escaped(text));
    }

    pub(super) fn heading(&mut self, title: &str, says: &str) {
        self.0 += &format!("<h2>{}</h2>\n<p>{}</p>\n", escaped(title), escaped(says));
    }

    /// Which colour is what.
    pub(super) fn key(&mut self, colours: &[(Colour, &str)]) {
        self.0 += "<p class=\"facts\">";
        for ((red, green, blue), name) in colours {
            let name = escaped(name);
            self.0 += &format!(
                "<span class=\"key\"><i style=\"background:rgb({red},{green},{blue})\"></i>{name}</span> "
            );
        }
        self.0 += "</p>\n";
    }

    /// A plot with its title.
    pub(super) fn figure(&mut self, title: &str, svg: &str) {
        let title = escaped(title);
        self.0 += &format!(
            "<figure role=\"img\" aria-label=\"{title}\"><figcaption>{title}</figcaption>\n{svg}</figure>\n"
        );
    }

    pub(super) fn definition(&mut self, word: &str, what: &str) {
        self.0 += &format!("<dt>{}</dt><dd>{}</dd>\n", escaped(word), escaped(what));
    }

    fn table(&mut self, headings: &[String], rows: &[Vec<String>]) {
        let cells = |cells: &[String], kind: &str| {
            cells.iter().map(|cell| format!("<{kind}>{}</{kind}>", escaped(cell))).collect::<String>()
        };
        self.0 += &format!("<div class=\"wide\"><table>\n<tr>{}</tr>\n", cells(headings, "th"));
        for row in rows {
            self.0 += &format!("<tr>{}</tr>\n", cells(row, "td"));
        }
        self.0 += "</table></div>\n";
    }
}

/// A text that is nothing but text, also in an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other => safe.push(other),
        }
    }
    safe
}

/// Whether what a device does is a model's.
pub(super) fn badge(device: &Measured) -> &'static str {
    if device.is_software_list() {
        "<span class=\"badge\">a model in software, not a card; its work is in the receiver's time</span>"
    } else if device.is_model() {
        "<span class=\"badge\">a model, not a card; its work is beside the receiver's time</span>"
    } else if device.offload.is_some() {
        "<span class=\"badge real\">a card</span>"
    } else {
        "<span class=\"badge real\">software alone</span>"
    }
}

/// The same point of both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) software: &'a Point,
    pub(super) offload: Option<&'a Point>,
}

/// Small messages; if those were not measured, what was.
pub(super) fn head_point(device: &Measured) -> Option<Head<'_>> {
    let mut curves = Curve::ALL.into_iter().filter(|curve| *curve != Curve::List);
    curves.find_map(|curve| {
        let at = *values(device, curve).first()?;
        Some(Head { software: device.point(curve, at, false)?, offload: device.point(curve, at, true) })
    })
}

/// What is not there, and what to beware of.
pub(super) fn warnings(page: &mut Html, report: &Report) {
    if report.devices.iter().any(Measured::is_model) {
        page.raw(
            "<div class=\"note\"><p><b>No card was measured where it says “model”.</b> A model's own work is in \
             latency and messages per second, and a card would do it beside the host. The soft TM-SRQ (soft, tcp, rxe) is \
             worked by the receiver's own calls, so that offload to it takes longer than software, always: it shows what a \
             list matches. The simulated card's work is not in the receiver's time, which is what the host has to \
             do through the real driver.</p></div>\n",
        );
    }
    if !report.absent.is_empty() {
        page.raw("<div class=\"note\"><p><b>Not measured here:</b></p>\n");
        for absent in &report.absent {
            let (device, why) = (escaped(&absent.device), escaped(&absent.why));
            page.raw(&format!("<p><b>{device}</b>:</p><pre>{why}</pre>\n"));
        }
        page.raw("</div>\n");
    }
    for note in &report.notes {
        page.facts(note);
    }
}

/// All figures as tables.
pub(super) fn figures(page: &mut Html, report: &Report) {
    page.heading("All figures", "");
    for device in report.devices.iter().filter(|device| !device.points.is_empty()) {
        page.raw(&format!("<details><summary>{}: curves</summary>\n", escaped(&device.device)));
        let headings = [
            "",
            "side",
            "messages",
            "latency, ns",
            "messages/s",
            "receiver, ns",
            "sender, ns",
            "instructions",
            "in hardware",
            "not in hardware",
        ];
        let row = |point: &Point| {
            let reasons = point.reasons.iter().map(|(reason, count)| format!("{reason} {count}"));
            vec![
                format!("{}: {}", point.curve.words(), point.curve.value(point.at)),
                if point.is_offload { "offload" } else { "software" }.into(),
                point.messages.to_string(),
                or_dash(point.latency_ns, nanoseconds),
                format!("{:.0}", point.per_second),
                nanoseconds(point.receiver_ns),
                nanoseconds(point.sender_ns),
                or_dash(point.instructions, nanoseconds),
                if point.is_offload { percent(point.share_in_hardware) } else { "-".into() },
                reasons.collect::<Vec<_>>().join(", "),
            ]
        };
        let rows: Vec<Vec<String>> = device.points.iter().map(row).collect();
        page.table(&headings.map(String::from), &rows);
        page.raw("</details>\n");
    }
    if report.rows.is_empty() {
        return;
    }
    page.raw("<details><summary>traces and mixes: nanoseconds per event</summary>\n");
    let who = matchers(&report.rows);
    let name = |(matcher, device): &(&str, Option<&str>)| {
        device.map_or((*matcher).to_owned(), |device| format!("{device}: {matcher}"))
    };
    let headings: Vec<String> =
        ["name".to_owned(), "events".to_owned()].into_iter().chain(who.iter().map(name)).collect();
    let rows: Vec<Vec<String>> = report
        .rows
        .iter()
        .map(|row| {
            let cell = |who| {
                let result = row.results.iter().find(|result| result.who() == who);
                or_dash(result, |result| nanoseconds(result.ns_per_event))
            };
            [row.name.clone(), row.events.to_string()]
                .into_iter()
                .chain(who.iter().map(|who| cell(*who)))
                .collect()
        })
        .collect();
    page.table(&headings, &rows);
    page.raw("</details>\n");
}

/// A day and a time of it, by the seconds since 1970 (UTC).
pub(super) fn date(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since March 1st of the year 0, in eras of 400 years: leap days come last.
    let from_march = days + 719_468;
    let (era, of_era) = (from_march / 146_097, from_march % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", of_day / 3600, of_day / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_140), "2024-02-29 23:59 UTC");
        assert_eq!(date(4_102_444_800), "2100-01-01 00:00 UTC");
    }

    #[test]
    fn names_from_elsewhere_are_text() {
        assert_eq!(escaped("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
    }
}
