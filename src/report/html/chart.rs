//! A chart over time: an SVG that stretches, with its labels beside it in HTML, so that they keep their size on a
//! phone. Colours are classes of the page's style sheet, which knows light, dark and print; no line is told from
//! another by its colour alone.

use maud::{Markup, html};

use super::super::WindowPart;
use super::times::{self, Times};
use crate::check::words::seconds;

/// The plot's own units across and down.
const ACROSS: f64 = 1_000.0;
const DOWN: f64 = 100.0;

/// A line of a chart.
pub(super) struct Series {
    pub(super) name: &'static str,
    /// Its class in the style sheet.
    pub(super) class: &'static str,
    pub(super) value: fn(&[WindowPart]) -> Option<f64>,
    /// Filled to the ground instead of drawn.
    pub(super) area: bool,
}

/// A level to compare with.
pub(super) struct Level {
    pub(super) name: String,
    pub(super) class: &'static str,
    pub(super) at: f64,
}

/// An instant that is worth a word.
pub(super) struct Mark {
    pub(super) at: f64,
    pub(super) value: f64,
    pub(super) text: String,
}

/// A chart over time.
pub(super) struct Chart<'a> {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// What it shows, in a sentence.
    pub(super) about: String,
    pub(super) times: &'a Times<'a>,
    pub(super) series: Vec<Series>,
    pub(super) levels: Vec<Level>,
    pub(super) mark: Option<Mark>,
    /// A value in words, with its unit.
    pub(super) show: fn(f64) -> String,
    pub(super) small: bool,
}

/// A coordinate in a path: one decimal is finer than a screen.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A round number of which a few reach `most`, and how many: the steps of a scale.
pub(super) fn steps(most: f64) -> (f64, u32) {
    if !(most.is_finite() && most > 0.0) {
        return (1.0, 1);
    }
    let rough = most / 4.0;
    let ten = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * ten).find(|step| *step >= rough).unwrap_or(most);
    (step, (most / step).ceil().clamp(1.0, 5.0) as u32)
}

impl Chart<'_> {
    /// The figure.
    pub(super) fn render(&self) -> Markup {
        let buckets = self.times.buckets();
        let lines: Vec<Vec<Option<f64>>> = self
            .series
            .iter()
            .map(|series| buckets.iter().map(|bucket| (series.value)(bucket)).collect())
            .collect();
        let values = lines.iter().flatten().flatten().copied();
        let most = values.chain(self.levels.iter().map(|level| level.at)).fold(0.0, f64::max);
        let (step, count) = steps(most);
        let top = step * f64::from(count);
        let (title, about) = (format!("{}-t", self.id), format!("{}-d", self.id));
        html! {
            figure id=(self.id) class=[self.small.then_some("small")] {
                figcaption {
                    h3 id=(title) { (self.title) }
                    p id=(about) { (self.about) }
                    (self.legend())
                }
                div.frame {
                    div.y aria-hidden="true" {
                        @for i in 0..=count {
                            span style={ "bottom:" (short(100.0 * f64::from(i) / f64::from(count))) "%" } {
                                ((self.show)(step * f64::from(i)))
                            }
                        }
                    }
                    div.plot {
                        svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img"
                            aria-labelledby=(title) aria-describedby=(about) {
                            (self.ground(count))
                            @for (series, line) in self.series.iter().zip(&lines) {
                                @if series.area { path.area d=(self.path(&buckets, line, top, true)) {} }
                                @else { path class=(series.class) d=(self.path(&buckets, line, top, false)) {} }
                            }
                            @for level in &self.levels {
                                path class=(level.class) d={ "M0 " (short(y(level.at, top))) "H1000" } {}
                            }
                            (self.mark_line(top))
                            (self.hits(&buckets, &lines))
                        }
                        (self.mark_text(top))
                    }
                    div.x aria-hidden="true" { (axis(self.times)) }
                }
                output.readout aria-hidden="true" {}
                (self.table())
            }
        }
    }

    fn legend(&self) -> Markup {
        let levels = self.levels.iter().map(|level| (level.name.as_str(), level.class, false));
        let series = self.series.iter().map(|series| (series.name, series.class, series.area));
        html! {
            ul.legend {
                @for (name, class, area) in series.chain(levels) {
                    li {
                        svg viewBox="0 0 30 12" aria-hidden="true" {
                            @if area { path.area d="M0 2H30V12H0Z" {} } @else { path class=(class) d="M0 6H30" {} }
                        }
                        (name)
                    }
                }
            }
        }
    }

    /// Phases of the event shaded, and the lines of the scale.
    fn ground(&self, count: u32) -> Markup {
        html! {
            @for band in self.times.bands.iter().filter(|band| band.phase.event) {
                rect.band x=(short(self.x(band.from))) width=(short(self.x(band.to) - self.x(band.from)))
                    y="0" height="100" {}
            }
            @for i in 1..=count {
                path.grid d={ "M0 " (short(DOWN - DOWN * f64::from(i) / f64::from(count))) "H1000" } {}
            }
        }
    }

    /// Steps from bucket to bucket, broken where there is no value.
    fn path(&self, buckets: &[&[WindowPart]], line: &[Option<f64>], top: f64, area: bool) -> String {
        let mut d = String::new();
        let mut open = false;
        for (bucket, value) in buckets.iter().zip(line) {
            let (from, to) = times::span(bucket);
            let (from, to) = (short(self.x(from)), short(self.x(to)));
            let Some(value) = value else {
                if area && open {
                    d.push_str("V100Z");
                }
                open = false;
                continue;
            };
            let at = short(y(*value, top));
            let part = match (open, area) {
                (true, _) => format!("V{at}H{to}"),
                (false, false) => format!("M{from} {at}H{to}"),
                (false, true) => format!("M{from} 100V{at}H{to}"),
            };
            d.push_str(&part);
            open = true;
        }
        if area && open {
            d.push_str("V100Z");
        }
        d
    }

    fn mark_line(&self, top: f64) -> Markup {
        html! {
            @if let Some(mark) = &self.mark {
                path.mark d={ "M" (short(self.x(mark.at))) " 0V100" } {}
                path.dot.bad d={ "M" (short(self.x(mark.at))) " " (short(y(mark.value, top))) "h0" } {}
            }
        }
    }

    fn mark_text(&self, top: f64) -> Markup {
        let left = |at: f64| self.times.share(at) > 0.55;
        html! {
            @if let Some(mark) = &self.mark {
                span.note.left[left(mark.at)] style={
                    "left:" (short(100.0 * self.times.share(mark.at))) "%;top:"
                    (short((y(mark.value, top) + 6.0).min(84.0))) "%;margin:0 .5rem"
                } { (mark.text) }
            }
        }
    }

    /// What stands over each bucket, for a pointer: a title, which a script shows at once.
    fn hits(&self, buckets: &[&[WindowPart]], lines: &[Vec<Option<f64>>]) -> Markup {
        html! {
            g.hits {
                @for (i, bucket) in buckets.iter().enumerate() {
                    @let (from, to) = times::span(bucket);
                    rect x=(short(self.x(from))) width=(short(self.x(to) - self.x(from))) y="0" height="100" {
                        title {
                            (seconds(from))
                            @for (series, line) in self.series.iter().zip(lines) {
                                @if let Some(value) = line[i] { " · " (series.name) " " ((self.show)(value)) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The same in few rows, for those who do not see it.
    fn table(&self) -> Markup {
        html! {
            details {
                summary { "as a table" }
                div.wide { table {
                    thead { tr {
                        th { "from" }
                        @for series in &self.series { th.n { (series.name) } }
                    } }
                    tbody {
                        @for bucket in self.times.rows() {
                            tr {
                                td { (seconds(times::span(bucket).0)) }
                                @for series in &self.series {
                                    td.n { @if let Some(value) = (series.value)(bucket) { ((self.show)(value)) } @else { "–" } }
                                }
                            }
                        }
                    }
                } }
            }
        }
    }

    fn x(&self, at: f64) -> f64 {
        ACROSS * self.times.share(at)
    }
}

fn y(value: f64, top: f64) -> f64 {
    (DOWN - DOWN * value / top).clamp(0.0, DOWN)
}

/// The labels under the axis of time.
fn axis(times: &Times<'_>) -> Markup {
    html! {
        @for at in times.ticks() {
            @let share = times.share(at);
            span.first[share < 0.02].last[share > 0.98] style={ "left:" (short(100.0 * share)) "%" } { (seconds(at)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_on_a_round_number_at_or_above_the_most() {
        let eq = |most: f64, step: f64, count: u32| {
            let (got, n) = steps(most);
            assert!((got / step - 1.0).abs() < 1e-9 && n == count, "{most}: {got} × {n}");
        };
        eq(55.0, 20.0, 3);
        eq(80.0, 20.0, 4);
        eq(3.47, 1.0, 4);
        eq(0.0, 1.0, 1);
        eq(f64::NAN, 1.0, 1);
        eq(34e6, 1e7, 4);
        assert_eq!((short(12.04), short(3.0)), ("12".to_owned(), "3".to_owned()));
    }
}
