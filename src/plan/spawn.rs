//! A command that is started for the run: the keys of `target.spawn`.

use std::io::Read as _;
use std::time::Duration;

use super::address::Address;
use super::target::{origin, texts};
use super::{Files, Spawn, Template};
use crate::admission;
use crate::units::Reader;

/// What a spawned command is told in its environment, besides the variables the plan names, and in what a template may
/// say as `${NAME}`.
pub const VARIABLES: &[(&str, &str)] = &[
    ("TENFOLD_CONFIG", "the file made from `config`"),
    ("TENFOLD_DIR", "a directory of its own, gone when the run is over"),
    ("TENFOLD_METRICS_PORT", "another free port: port 0 of `target.metrics.url`"),
    ("TENFOLD_PROVIDER_HOST", "the provider's host"),
    ("TENFOLD_PROVIDER_PORT", "the provider's port"),
    ("TENFOLD_PROVIDER_URL", "the provider's address"),
    ("TENFOLD_TARGET_HOST", "the host of `ready`"),
    ("TENFOLD_TARGET_PORT", "the port of `ready`: where to listen"),
];

/// How names of ours begin.
const OURS: &str = "TENFOLD_";
/// How long a command may take until it answers, where the plan does not say.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// The largest template.
const LARGEST: u64 = 1 << 20;

/// Reads `target.spawn`. Its template is opened with `files` and read at once.
pub(super) fn read(
    reader: &Reader<'_>,
    policy: Option<admission::Config>,
    files: Files<'_>,
) -> Option<Spawn> {
    let mut map = reader.map()?;
    let command: Option<Vec<String>> = map.need("command");
    let ready = map.reader("ready").map_or_else(
        || {
            map.here().fault("`ready` is missing: which URL answers once the target is up?");
            None
        },
        |ready| ready.parse("a URL", Address::parse_or_free),
    );
    let url = match map.reader("url") {
        None => ready.as_ref().map(Address::origin),
        Some(url) => url.parse("a URL", origin),
    };
    let ready_within = map.or("ready_within", READY_WITHIN);
    let config = map.reader("config").map_or(Some(None), |config| template(&config, files).map(Some));
    let env = texts(&mut map, "env", |name| {
        let tidy = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !tidy {
            Err(format!("`{name}` is no name of a variable"))
        } else if name.starts_with(OURS) {
            Err(format!("`{name}` is set by tenfold itself: leave it out"))
        } else {
            Ok(name.to_owned())
        }
    });
    let command = command?;
    if command.first().is_none_or(String::is_empty) {
        map.here().fault("`command` is empty: it names a program and its arguments");
        return None;
    }
    let ready = ready?;
    Some(Spawn {
        command,
        ready: format!("{}{}", ready.origin(), ready.path),
        url: url?,
        config: config?,
        ready_within: ready_within?,
        env: env?,
        policy,
    })
}

/// Reads the file that is to become the target's configuration.
fn template(reader: &Reader<'_>, files: Files<'_>) -> Option<Template> {
    let file = reader.scalar("a file")?;
    let wrong = |message: String| {
        reader.fault(format!("{file}: {message}"));
        None
    };
    let mut text = String::new();
    let read = match files(file) {
        Ok(from) => from.take(LARGEST + 1).read_to_string(&mut text).map_err(|e| e.to_string()),
        Err(message) => Err(message),
    };
    match read {
        Err(message) => wrong(message),
        Ok(_) if text.len() as u64 > LARGEST => wrong("a configuration of more than 1 MiB is none".into()),
        Ok(_) => {
            let template = Template { file: file.to_owned(), text };
            let known: Vec<_> = VARIABLES.iter().map(|(name, _)| *name).collect();
            let strange = template.names().find(|name| name.starts_with(OURS) && !known.contains(name));
            if let Some(name) = strange {
                reader.fault(format!("{file}: `${{{name}}}` is none of ours (known: {})", known.join(", ")));
                return None;
            }
            Some(template)
        }
    }
}

impl Template {
    /// The names that stand in it as `${NAME}`.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
    }

    /// The text with every `${NAME}` replaced that `value` knows; anything else is left as it is, since configurations
    /// have variables of their own.
    pub fn filled(&self, value: impl Fn(&str) -> Option<String>) -> String {
        let mut parts = self.text.split("${");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            match part.split_once('}').and_then(|(name, rest)| Some((value(name)?, rest))) {
                Some((value, rest)) => {
                    out.push_str(&value);
                    out.push_str(rest);
                }
                None => {
                    out.push_str("${");
                    out.push_str(part);
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use crate::plan::{Plan, TargetKind, parse_with};
    use crate::units::Fault;

    const SMOKE: &str = include_str!("../../plans/smoke.yaml");

    fn with(spawn: &str, file: Option<&'static [u8]>) -> Result<Plan, Vec<Fault>> {
        let set = vec![format!("target.spawn={{command: [x], {spawn}}}")];
        let open = move |_: &str| {
            file.map(|file| Box::new(file) as Box<dyn BufRead>).ok_or_else(|| "no such file".to_owned())
        };
        parse_with(SMOKE, None, &set, &|_| None, &open).map(|loaded| loaded.plan)
    }

    fn fault(spawn: &str, file: Option<&'static [u8]>) -> String {
        with(spawn, file).unwrap_err().into_iter().map(|f| format!("{}: {}\n", f.path, f.message)).collect()
    }

    #[test]
    fn a_free_port_is_asked_for_by_the_port_0_of_this_machine() {
        let plan = with("ready: 'http://127.0.0.1:0/up'", None).unwrap();
        let TargetKind::Spawn(spawn) = &plan.target.kind else { panic!("spawn") };
        assert_eq!(
            (spawn.ready.as_str(), spawn.url.as_str()),
            ("http://127.0.0.1:0/up", "http://127.0.0.1:0")
        );
        assert!(fault("ready: 'http://a.example:0/up'", None).contains("of this machine"));
        assert!(fault("ready: 'http://127.0.0.1:1', url: 'http://127.0.0.1:0'", None).contains("no port"));
    }

    #[test]
    fn a_template_is_filled_with_what_is_known_and_its_own_variables_are_left() {
        let file = b"listen ${TENFOLD_TARGET_PORT}; set $a ${b}; ${A}${ open";
        let plan = with("ready: 'http://127.0.0.1:0/', config: gw.conf, env: {A: z}", Some(file)).unwrap();
        let TargetKind::Spawn(spawn) = &plan.target.kind else { panic!("spawn") };
        let template = spawn.config.as_ref().unwrap();
        assert_eq!(template.file, "gw.conf");
        let value = |name: &str| match name {
            "TENFOLD_TARGET_PORT" => Some("81".to_owned()),
            "A" => Some("${b}".to_owned()),
            _ => None,
        };
        assert_eq!(template.filled(value), "listen 81; set $a ${b}; ${b}${ open");
    }

    #[test]
    fn what_is_wrong_with_a_template_is_told_with_its_place() {
        let config = "ready: 'http://127.0.0.1:0/', config: gw.conf";
        let said = fault(config, Some(b"${TENFOLD_PORT}"));
        assert!(said.contains("gw.conf: `${TENFOLD_PORT}` is none of ours (known: TENFOLD_CONFIG"), "{said}");
        assert!(fault(config, None).contains("target.spawn.config: gw.conf: no such file"));
        assert!(fault(config, Some(b"\xff")).contains("gw.conf: "));
        let large: &'static [u8] = Box::leak(vec![b'a'; (1 << 20) + 1].into_boxed_slice());
        assert!(fault(config, Some(large)).contains("more than 1 MiB"));
        let said = fault("ready: 'http://127.0.0.1:1', env: {TENFOLD_DIR: a}", None);
        assert!(said.contains("set by tenfold itself"), "{said}");
    }
}
