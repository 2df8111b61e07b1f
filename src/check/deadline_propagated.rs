//! The provider is told what is left of the caller's time: no call without a deadline, and none with more than what
//! the caller had left when the call arrived, so that work for nobody can be cut off there too.
//!
//! A gateway that hands the header on as it came, or gives each call a whole new deadline, tells too much by as long
//! as the request waited. In virtual time nothing travels, and told is exactly what is left. Live it may be more by
//! the way from the gateway to the provider and by what the header's form rounds. That way takes at most 50 ms, or twice
//! as long as the slowest ping or the latest of our own requests, where the machine stood still.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::Trouble;
use crate::plan::DeadlineForm;
use crate::units::show_duration;

pub(super) const KIND: Kind = Kind {
    id: "deadline.propagated",
    about: "the provider is told what is left of the caller's time, and never more",
    limit: Standard::Part(0.0),
    unit: "share",
    judge,
};

/// The least that is allowed for the way to the provider and for scheduling.
const TRANSIT: Duration = Duration::from_millis(50);

fn judge(scene: &Scene<'_>) -> Finding {
    let (budgets, limit) = (&scene.measures.budgets, scene.part(&KIND));
    let header = &scene.plan.target.deadline;
    let draft = KIND.draft(format!(
        "each request reaches the provider with `{}` of its caller's deadline less the time it waited",
        header.header
    ));
    if budgets.requests == 0 {
        return draft.no_data("no request reached the provider while its caller waited");
    }
    let slack = slack(scene, header.form);
    let slack_us = u64::try_from(slack.as_micros()).unwrap_or(u64::MAX);
    let over = budgets.overtold.count() - budgets.overtold.count_to(slack_us);
    let wrong = (budgets.untold + over).min(budgets.requests);
    let share = wrong as f64 / budgets.requests as f64;
    let most = budgets.overtold.max().map_or(Duration::ZERO, Duration::from_micros);
    let mut because = format!(
        "of {} requests at the provider {} came without a deadline, {} with more than was left",
        words::thousands(budgets.requests),
        words::thousands(budgets.untold),
        words::thousands(over)
    );
    if over > 0 {
        because = format!("{because} (by up to {})", words::seconds(most.as_secs_f64()));
    }
    if slack > Duration::ZERO {
        because = format!("{because}; {} more is taken for the way there", show_duration(slack));
    }
    draft.judged(share <= limit, share, limit, because).showing(if wrong > 0 {
        scene.measures.examples.of(Trouble::ToldWrong)
    } else {
        Vec::new()
    })
}

/// By how much more than what is left may be told: none in virtual time; live the way there, and what a gateway may
/// round up to in this form.
fn slack(scene: &Scene<'_>, form: DeadlineForm) -> Duration {
    if !scene.live {
        return Duration::ZERO;
    }
    let (pings, lag) = (&scene.measures.vitals.pings.took, &scene.measures.lag);
    let longest = Duration::from_micros(pings.max().max(lag.max()).unwrap_or(0));
    let way = (longest * 2).max(TRANSIT);
    let rounding = match form {
        DeadlineForm::AbsoluteMs | DeadlineForm::RemainingMs => Duration::from_millis(1),
        DeadlineForm::RemainingS | DeadlineForm::Grpc => Duration::from_secs(1),
    };
    way + rounding
}
