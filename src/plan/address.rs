//! URLs as far as a plan needs them: a scheme, a host, perhaps a port and a path.

/// A URL taken apart. Nothing in it needs escaping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `http` or `https`.
    pub scheme: String,
    /// The host: a name, an IPv4 address, or an IPv6 address in brackets.
    pub host: String,
    /// The port, if it is written.
    pub port: Option<u16>,
    /// The path from `/` on; `/` if there is none.
    pub path: String,
}

impl Address {
    /// Reads `http://host:port/path`. Anything a load test has no use for (user names, queries, fragments) is refused.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, false)
    }

    /// The same, and port 0 of this machine stands for a port that is free when the run begins.
    pub fn parse_or_free(text: &str) -> Result<Self, String> {
        let address = Self::read(text, true)?;
        if address.port == Some(0) && !address.is_loopback() {
            return Err(format!("`{}`: port 0 is a free port of this machine: write 127.0.0.1", shown(text)));
        }
        Ok(address)
    }

    fn read(text: &str, free: bool) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{}` {why} (write http://host:port)", shown(text)));
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("is no URL");
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return wrong("is neither http nor https");
        }
        if rest.chars().any(|c| !c.is_ascii_graphic()) {
            return wrong("has a blank or a sign that no URL has");
        }
        if rest.contains(['?', '#']) {
            return wrong("has a query or a fragment");
        }
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        if authority.contains('@') {
            return wrong("has a user name in it: send credentials in `target.request.headers`");
        }
        let (host, port) = match authority.rfind(':').filter(|at| !authority[*at..].contains(']')) {
            Some(at) => (&authority[..at], Some(&authority[at + 1..])),
            None => (authority, None),
        };
        if !is_host(host) {
            return wrong("names no host");
        }
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port)) if port > 0 || free => Some(port),
            Some(_) => return wrong("has no port between 1 and 65535"),
        };
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port, path: path.to_owned() })
    }

    /// The scheme and authority: `http://host:port`, without a path.
    pub fn origin(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.scheme, self.host)
    }

    /// Whether the host is this machine by its own name: 127.0.0.0/8, `[::1]` or `localhost`.
    pub fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// The text without anything that may be a password.
fn shown(text: &str) -> String {
    let text = text.split_once('@').map_or_else(|| text.to_owned(), |(_, rest)| format!("…@{rest}"));
    let text = text.split_once(['?', '#']).map_or_else(|| text.clone(), |(before, _)| format!("{before}?…"));
    text.chars().take(200).collect()
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let numeric = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    host.len() <= 253
        && host.split('.').all(label)
        && (!numeric || host.parse::<std::net::Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let read = |text: &str| Address::parse(text).map(|a| (a.origin(), a.path.clone(), a.is_loopback()));
        let ok = |origin: &str, path: &str, loopback| Ok((origin.to_owned(), path.to_owned(), loopback));
        assert_eq!(read("http://127.0.0.1:9/"), ok("http://127.0.0.1:9", "/", true));
        assert_eq!(read("HTTPS://Gateway.Example"), ok("https://gateway.example", "/", false));
        assert_eq!(read("http://[::1]:80/health/ready"), ok("http://[::1]:80", "/health/ready", true));
        assert_eq!(read("http://localhost"), ok("http://localhost", "/", true));
        assert_eq!(read("http://192.0.2.1"), ok("http://192.0.2.1", "/", false));
        assert_eq!(read("http://127.0.0.1.example"), ok("http://127.0.0.1.example", "/", false));
    }

    #[test]
    fn what_no_load_test_needs_is_refused() {
        let cases = [
            ("gateway:80", "is no URL"),
            ("ftp://x", "neither http nor https"),
            ("http://", "names no host"),
            ("http://a b", "a blank"),
            ("http://a:0", "no port"),
            ("http://a:99999", "no port"),
            ("http://a/?q", "a query"),
            ("http://999.1.1.1", "names no host"),
            ("http://127.1", "names no host"),
            ("http://[::1", "names no host"),
        ];
        for (text, why) in cases {
            let said = Address::parse(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        // as in bojand/ghz#457
        for (text, why) in
            [("http://user:s3cret@host", "a user name"), ("http://host/?key=s3cret", "a query")]
        {
            let said = Address::parse(text).unwrap_err();
            assert!(said.contains(why) && !said.contains("s3cret"), "{said}");
        }
    }
}
