//! `tenfold run`: a rehearsal from its plan to its verdict.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::dashboard::{self, Dashboard};
use super::load::{PlanArgs, TargetArgs};
use super::progress::Progress;
use super::{complain, exit, faults, header, selftest, signals};
use crate::check::{Judgement, RunVerdict, Scene};
use crate::forecast::Forecast;
use crate::live::{self, Board, Ended, Listener, Log, LogFile, Needs, Options, Run, Standing, Stop, Written};
use crate::plan::{Plan, TargetKind};
use crate::report::{self, DryRun, Format, Inputs, RawRefusal, Report, RunHeader, Style};
use crate::simulate::{Agreement, Following};
use crate::units::{Moment, parse_duration};

/// Rehearse a plan with real sockets, and judge what came of it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    plan: PlanArgs,

    #[command(flatten)]
    target: TargetArgs,

    /// Wait so long for a target that does not answer yet
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait_ready: Option<Duration>,

    /// Show what would happen and what it would take, and send nothing
    #[arg(long)]
    dry_run: bool,

    /// Run it although `tenfold selftest` found that this machine does not keep up with such a plan
    #[arg(long)]
    beyond_limits: bool,

    /// The form of the result on stdout
    #[arg(long, default_value = "text", value_parser = format)]
    format: &'static Format,

    /// Serve the report's page at this address while the run goes on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    dashboard: Option<SocketAddr>,

    /// The address of a dashboard that is not this machine's own, named once more to show that it is meant
    #[arg(long, value_name = "HOST")]
    confirm_dashboard: Option<String>,

    /// Run it so many times, one after the other, with the same seed: reports that `tenfold diff` reads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    repeat: u32,

    /// Write a row for each request, both sides of it, to this CSV file; its columns are in `tenfold list log`
    #[arg(long, value_name = "FILE", value_parser = csv)]
    log: Option<PathBuf>,

    /// Where reports are written, in folders named after plan and run
    #[arg(long, value_name = "DIR", default_value = "reports")]
    out: PathBuf,
}

/// The plan in its two sizes, each with its forecast.
struct Whole {
    plan: Plan,
    event: Forecast,
    rehearsal: Forecast,
}

impl Args {
    /// Runs it; gives the exit code.
    pub(super) fn run(&self, quiet: bool) -> u8 {
        if let Some(Err(message)) =
            self.dashboard.map(|address| dashboard::allowed(address, self.confirm_dashboard.as_deref()))
        {
            complain(&format!("{message}\n"));
            return exit::USAGE;
        }
        let loaded = match self.plan.load_for(&self.target, quiet) {
            Ok(loaded) => loaded,
            Err(code) => return code,
        };
        let only = loaded.plan.only_simulated();
        if !only.is_empty() {
            only.iter().for_each(|why| complain(&format!("{}: {why}\n", self.plan.file())));
            complain("`tenfold simulate` takes this plan\n");
            return exit::USAGE;
        }
        let plan = loaded.plan.rehearsed();
        let (event, rehearsal) = (Forecast::of(&loaded.plan), Forecast::of(&plan));
        if let Some(why) =
            selftest::beyond(&plan, forwarded(&plan, &rehearsal)).filter(|_| !self.beyond_limits)
        {
            complain(&format!("error: {}\n", lines(&why)));
            return exit::COULD_NOT_RUN;
        }
        let whole = Arc::new(Whole { plan, event, rehearsal });
        let told = if self.dry_run { self.show(&whole) } else { self.rehearse(&whole, quiet) };
        told.unwrap_or_else(|failure| {
            complain(&format!("error: {}\n", lines(&failure.0)));
            exit::COULD_NOT_RUN
        })
    }

    /// What would happen.
    fn show(&self, whole: &Whole) -> Result<u8, Failure> {
        let needs = Needs::of(&whole.plan);
        needs.secure()?;
        for warning in needs.warnings(&whole.plan) {
            complain(&format!("warning: {warning}\n"));
        }
        let provider = &whole.plan.provider;
        let fixed = (!provider.listen.ends_with(":0")).then(|| format!("http://{}", provider.listen));
        let address = provider.advertise.clone().or(fixed);
        let needs = header::needs(&needs);
        let provider = address.as_deref();
        let dry = DryRun { plan: &whole.plan, forecast: &whole.rehearsal, needs, provider };
        let mut text = Vec::new();
        dry.render(&style(), &mut text)?;
        print(&text);
        Ok(exit::PASSED)
    }

    /// The real thing, as often as it is asked for. The exit code is the worst one.
    fn rehearse(&self, whole: &Arc<Whole>, quiet: bool) -> Result<u8, Failure> {
        // whatever can be wrong with it is wrong now, and not when there is a result to be written
        let folder = self.out.join(&whole.plan.name);
        fs::create_dir_all(&folder).map_err(|e| cannot_write(&folder, &e))?;
        let log = self.log.as_deref().map(|path| opened(path, &whole.plan)).transpose()?;
        let stop = Stop::new();
        let caught = signals::watch(stop.clone())?;
        let dashboard = self.dashboard.map(|address| show_at(address, whole)).transpose()?;
        let board = dashboard.as_ref().map(|dashboard| dashboard.board.clone());
        let session = Session { whole, stop: &stop, quiet, log: log.as_ref(), board };
        let ended = self.runs(&session, &folder);
        // whatever came of the runs, the rows there are get written
        if let Some((log, path)) = log.zip(self.log.as_deref()) {
            closed(log, path);
        }
        let (verdict, last) = ended?;
        if let Some((dashboard, report)) = dashboard.zip(last) {
            dashboard.finish(report::html::page(&report, None)?);
        }
        Ok(match verdict {
            RunVerdict::Interrupted => caught.code(),
            verdict => verdict.exit_code(),
        })
    }

    /// All runs, one after the other; gives the worst of their verdicts, and the last report.
    fn runs(&self, session: &Session<'_>, folder: &Path) -> Result<(RunVerdict, Option<Report>), Failure> {
        let (mut verdicts, mut last) = (Vec::new(), None);
        let mut parent: Option<PathBuf> = None;
        for nth in 1..=self.repeat {
            if self.repeat > 1 && !session.quiet {
                complain(&format!("run {nth} of {}\n", self.repeat));
            }
            let Some((run, agreement)) = self.once(session, session.log.map(|file| file.of_run(nth)))? else {
                verdicts.push(RunVerdict::Interrupted);
                break;
            };
            let own = match (&parent, self.repeat) {
                (_, 1) => fresh(folder, &run.run_id),
                (Some(parent), _) => fresh(parent, &nth.to_string()),
                // a folder of their own, so that it is one side of a comparison
                (None, times) => fresh(folder, &format!("{}-x{times}", run.run_id))
                    .and_then(|new| fresh(parent.insert(new), &nth.to_string())),
            };
            let own = own.map_err(|e| cannot_write(folder, &e))?;
            let report = self.report(session.whole, (run, agreement), &own)?;
            verdicts.push(report.verdict);
            let interrupted = report.verdict == RunVerdict::Interrupted;
            last = Some(report);
            if interrupted {
                break;
            }
        }
        if let Some(parent) = parent.filter(|_| !session.quiet) {
            complain(&format!("the reports in {} are one side of `tenfold diff`\n", parent.display()));
        }
        Ok((worst(&verdicts), last))
    }

    /// One run, and how its verdicts agree with those of the declared policy; none if it was ended before its load began.
    fn once(&self, session: &Session<'_>, log: Option<Log>) -> Result<Option<Judged>, Failure> {
        let Whole { plan, rehearsal, .. } = session.whole;
        let foreign = matches!(plan.target.kind, TargetKind::Url { .. });
        let announce: Option<fn(&str)> = if foreign && !session.quiet { Some(announce) } else { None };
        let board = session.board.clone();
        let following = Following::of(plan);
        let listener = following.clone().map(|following| Listener::new(move |closed| following.see(closed)));
        let options =
            Options { wait_ready: self.wait_ready, announce, board, log, listener, ..Options::default() };
        let mut progress = Progress::new(plan, rehearsal, session.quiet);
        let run = live::run(plan, &options, &mut |now| progress.show(now), session.stop);
        progress.clear();
        match run {
            Err(live::LiveError::Interrupted) => Ok(None),
            other => Ok(Some((other?, following.map(|following| following.finish())))),
        }
    }

    /// Writes a run's report to its folder, and prints it.
    fn report(&self, whole: &Whole, run: Judged, folder: &Path) -> Result<Report, Failure> {
        let report = reported(whole, run, folder);
        write(&report, folder).map_err(|e| cannot_write(folder, &e))?;
        let mut text = Vec::new();
        (self.format.render)(&report, &style(), &mut text)?;
        print(&text);
        Ok(report)
    }
}

/// Requests a second that reach the provider at most: what its quota and the gateway let through of the busiest phase.
fn forwarded(plan: &Plan, forecast: &Forecast) -> f64 {
    plan.load.peak_per_s().min(forecast.basis.served)
}

/// A run, and how its verdicts agree with those of the declared policy.
type Judged = (Run, Option<Agreement>);

/// What all runs of one call share.
struct Session<'a> {
    whole: &'a Whole,
    stop: &'a Stop,
    quiet: bool,
    log: Option<&'a LogFile>,
    board: Option<Board>,
}

/// Of several runs: interrupted, then invalid, then a failed check, then no data.
fn worst(verdicts: &[RunVerdict]) -> RunVerdict {
    let order = [RunVerdict::Interrupted, RunVerdict::Invalid, RunVerdict::Failed, RunVerdict::Inconclusive];
    order.into_iter().find(|bad| verdicts.contains(bad)).unwrap_or(RunVerdict::Passed)
}

fn opened(path: &Path, plan: &Plan) -> Result<LogFile, Failure> {
    LogFile::open(path, plan)
        .map_err(|e| Failure(format!("the log cannot be written to {}: {e}", path.display())))
}

/// Ends the log, and tells what it lacks.
fn closed(log: LogFile, path: &Path) {
    let name = path.display();
    match log.close() {
        Ok(Written { lost: 0, .. }) => {}
        Ok(Written { rows, lost }) => complain(&format!(
            "warning: {name} lacks {lost} of {} rows: the disk was slower than the load\n",
            rows + lost
        )),
        Err(e) => complain(&format!("warning: {name} is not whole: {e}\n")),
    }
}

/// The only form of a log so far.
fn csv(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match path.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("csv")) {
        true => Ok(path),
        false => Err("a log is a CSV file: give it a name that ends in `.csv`".to_owned()),
    }
}

/// Judges a run and puts it into a report.
fn reported(whole: &Whole, (run, agreement): Judged, folder: &Path) -> Report {
    let Whole { plan, event, rehearsal } = whole;
    let scene = Scene::live(plan, rehearsal, &run.measures).beside(agreement.as_ref());
    let judgement = Judgement::of(&scene, run.ended_by == Ended::Interrupted);
    let refusals = run.evidence.into_iter().map(|raw| RawRefusal {
        seq: raw.seq,
        status: raw.status,
        headers: raw.headers,
        body: raw.body,
    });
    Report::of(Inputs {
        header: RunHeader {
            id: run.run_id,
            simulated: false,
            started: run.started,
            took: run.took,
            target: run.target,
            name: run.looked.map(header::name),
            generator: Some(header::generator(run.generator)),
            ended_early: match run.ended_by {
                Ended::Done => None,
                Ended::Interrupted => Some("interrupted".to_owned()),
                Ended::Aborted(why) => Some(why),
            },
            path: Some(folder.join(REPORT).display().to_string()),
        },
        plan,
        event,
        rehearsal,
        measures: &run.measures,
        judgement: &judgement,
        refusals: refusals.collect(),
    })
}

/// Serves the page of a run that is to begin.
fn show_at(address: SocketAddr, whole: &Arc<Whole>) -> Result<Dashboard, Failure> {
    let whole = Arc::clone(whole);
    let draw = move |standing: Option<&Standing>| {
        let name = &whole.plan.name;
        standing.map_or_else(|| report::html::waiting(name), |standing| drawn(&whole, standing))
    };
    let served = Dashboard::start(address, draw);
    let dashboard = served.map_err(|e| {
        Failure(format!("no dashboard at {address}: {e} (is it taken? port 0 takes a free one)"))
    })?;
    complain(&format!("the run can be watched at {}\n", dashboard.url));
    Ok(dashboard)
}

/// The page of a run that stands like this.
fn drawn(whole: &Whole, standing: &Standing) -> String {
    let Whole { plan, event, rehearsal } = whole;
    let measures = &standing.measures;
    let judgement = Judgement::of(&Scene::live(plan, rehearsal, measures), false);
    let at = standing.at.since(Moment::ZERO);
    let header = RunHeader {
        simulated: false,
        id: "it goes on".to_owned(),
        started: "under way".to_owned(),
        took: at,
        target: match &plan.target.kind {
            TargetKind::Embedded(_) => "the embedded gateway".to_owned(),
            TargetKind::Spawn(spawn) => format!("`{}`", spawn.command.join(" ")),
            TargetKind::Url { url, .. } => url.clone(),
        },
        name: None,
        generator: None,
        ended_early: None,
        path: None,
    };
    let inputs =
        Inputs { header, plan, event, rehearsal, measures, judgement: &judgement, refusals: Vec::new() };
    let lasts_s = plan.load.end().since(Moment::ZERO).as_secs_f64();
    let running = report::html::Running { at_s: at.as_secs_f64(), lasts_s };
    let mut report = Report::of(inputs);
    // what is open counts as unfinished now, and its end lies ahead: only whole windows are shown
    report.windows.retain(|window| window.from_s + window.width_s <= running.at_s);
    report::html::page(&report, Some(running)).unwrap_or_else(|e| format!("no page: {e}"))
}

/// The report's file in its folder.
const REPORT: &str = "report.json";

/// A folder of this run's own in `parent`: two runs of one second get two.
fn fresh(parent: &Path, run_id: &str) -> io::Result<PathBuf> {
    let mut folder = parent.join(run_id);
    for n in 2..100 {
        match fs::create_dir(&folder) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                folder = parent.join(format!("{run_id}-{n}"))
            }
            other => return other.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The report's other forms beside it.
const BESIDE: &[(&str, &str)] = &[("html", "report.html"), ("junit", "junit.xml"), ("markdown", "report.md")];

/// Writes the report in every form that has a file, each beside its place first, so that none is ever half there.
fn write(report: &Report, folder: &Path) -> io::Result<()> {
    for (form, file) in [("json", REPORT)].iter().chain(BESIDE) {
        let format = report::find(form).ok_or(io::ErrorKind::Unsupported)?;
        let mut text = Vec::new();
        (format.render)(report, &Style::default(), &mut text)?;
        let draft = folder.join(format!(".{file}"));
        fs::write(&draft, text)?;
        fs::rename(draft, folder.join(file))?;
    }
    Ok(())
}

fn cannot_write(folder: &Path, error: &io::Error) -> Failure {
    Failure(format!(
        "reports cannot be written to {}: {error} (--out DIR takes another place)",
        folder.display()
    ))
}

/// Says where a gateway that is already running must send its calls.
fn announce(url: &str) {
    complain(&format!("the provider listens at {url}: that is the upstream the gateway must call\n"));
}

/// Why a command could not be carried out: one message with everything that lies behind it.
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let behind = std::iter::successors(error.source(), |e| e.source()).map(|e| format!(": {e}"));
        Self(format!("{error}{}", behind.collect::<String>()))
    }
}

/// The text with its lines kept and everything else that could move a cursor written out.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(faults::tame).collect::<Vec<_>>().join("\n")
}

/// A result. A reader that has gone away (`| head`) is no error.
pub(super) fn print(text: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text).and_then(|()| out.flush());
}

/// How results are dressed on stdout.
pub(super) fn style() -> Style {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style { colour: io::stdout().is_terminal() && !plain, ascii: false }
}

/// The form with this name, or the names there are.
pub(super) fn format(name: &str) -> Result<&'static Format, String> {
    report::find(name).ok_or_else(|| {
        let known: Vec<_> = report::ALL.iter().map(|format| format.name).collect();
        format!("known: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in tsenart/vegeta#593: what several runs wrote was read as one.
    #[test]
    fn two_runs_of_one_second_have_two_folders() {
        let parent = tempfile::tempdir().unwrap();
        let (first, second) = (fresh(parent.path(), "id").unwrap(), fresh(parent.path(), "id").unwrap());
        assert_eq!((first, second), (parent.path().join("id"), parent.path().join("id-2")));
        assert!(fresh(&parent.path().join("missing"), "id").is_err());
    }

    #[test]
    fn no_more_reaches_the_provider_than_comes_or_is_let_through() {
        let text = include_str!("../../plans/smoke.yaml");
        let at = |sets: &[&str]| {
            let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
            let plan = crate::plan::parse(text, &sets, &|_| None).unwrap().plan.rehearsed();
            (forwarded(&plan, &Forecast::of(&plan)), plan.load.peak_per_s())
        };
        // 1,200,000 tokens a minute are 16.7 requests a second of 1,200
        let (let_through, comes) = at(&[]);
        assert!((comes - 80.0).abs() < 1e-9 && (16.0..17.0).contains(&let_through), "{let_through}");
        let (all, comes) = at(&["load.phases.promotion.rate=9/s"]);
        assert!((all - comes).abs() < 1e-9 && (comes - 9.0).abs() < 1e-9, "{all} of {comes}");
    }

    #[test]
    fn the_worst_of_several_runs_is_what_they_come_to() {
        use RunVerdict::{Failed, Inconclusive, Interrupted, Invalid, Passed};
        assert_eq!(worst(&[Passed, Passed]), Passed);
        assert_eq!(worst(&[Passed, Inconclusive, Failed]), Failed);
        assert_eq!(worst(&[Failed, Invalid, Passed]), Invalid);
        assert_eq!(worst(&[Invalid, Interrupted]), Interrupted);
    }

    #[test]
    fn a_log_is_csv_by_its_name() {
        assert!(csv("a/b.csv").is_ok() && csv("x.CSV").is_ok());
        for other in ["plans/smoke.yaml", "x.parquet", "csv", ""] {
            assert!(csv(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_failure_tells_what_lies_behind_it() {
        let behind = live::LiveError::Thread(io::Error::other("no memory"));
        assert!(Failure::from(behind).0.ends_with("(ulimit -u) or free some memory: no memory"));
        assert_eq!(lines("a\u{1b}b\nc"), "a\\u{1b}b\nc");
    }
}
