use httparse::{EMPTY_HEADER, Header, Status};

/// Bytes of a request up to its empty line, at most.
pub(crate) const HEAD_MAX: usize = 8 << 10;
/// Bytes of a body that are waited for, at most, before its request is answered: a client that still sends when the connection is
/// closed may lose the answer (RFC 9112, 9.6).
pub(crate) const BODY_MAX: usize = 8 << 10;

/// The head of an HTTP/1.x request (RFC 9112), as far as it is used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, from its first slash, without a query.
    pub path: String,
    /// The text behind the path's question mark.
    pub query: String,
    /// The host that is asked for; empty if the request does not say.
    pub host: String,
    /// `true` if a page in a browser sent it, and not a program or a person.
    pub from_page: bool,
    /// `true` if the connection may be used again after the answer.
    pub keeps: bool,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads a page.
    Get,
    /// Reads only the head of the answer.
    Head,
    /// Requests an action.
    Post,
}

/// Headers that browsers send with a page's requests to other sites, and other programs do not send.
const FROM_PAGES: [&str; 3] = ["origin", "referer", "sec-fetch-site"];

/// Why a request is refused. The bytes after it on the connection cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The bytes are not a request, or one of HTTP/1.1 without `Host`.
    Malformed,
    /// The method is none of [`Method`].
    MethodNotAllowed,
    /// An action has a body, and bodies are not accepted.
    BodyNotTaken,
    /// The head passes the bound of 8 KiB or 64 headers.
    HeadTooLarge,
    /// The version of HTTP is not 1.0 or 1.1.
    VersionNotSupported,
}

impl Refusal {
    /// Returns the status of the answer.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Refusal::Malformed => 400,
            Refusal::MethodNotAllowed => 405,
            Refusal::BodyNotTaken => 413,
            Refusal::HeadTooLarge => 431,
            Refusal::VersionNotSupported => 505,
        }
    }
}

/// Headers of a request or an answer at most.
pub(crate) const HEADERS_MAX: usize = 64;

/// Returns the request at the front of `bytes` and its length with its body, which is not read; `None` if its end has not come
/// yet. A body of more than 8 KiB, or of unknown length, is not waited for.
///
/// # Errors
/// The [`Refusal`] to reply with.
pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    let window = &bytes[..bytes.len().min(HEAD_MAX)];
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(window).map_err(refusal)? {
        Status::Complete(length) => length,
        Status::Partial if bytes.len() < HEAD_MAX => return Ok(None),
        Status::Partial => return Err(Refusal::HeadTooLarge),
    };
    let minor = head.version.unwrap_or_default();
    let (mut keeps, mut host, mut body, mut from_page) = (minor > 0, None, Some(0), false);
    for Header { name, value } in head.headers {
        let value = str::from_utf8(value).map_err(|_| Refusal::Malformed)?;
        match name.to_ascii_lowercase().as_str() {
            "connection" => {
                let says = |what: &str| value.split(',').any(|option| option.trim().eq_ignore_ascii_case(what));
                keeps = (keeps || says("keep-alive")) && !says("close");
            }
            // Two could mean two things.
            "host" if host.is_some() => return Err(Refusal::Malformed),
            "host" => host = Some(value.trim().to_owned()),
            "content-length" => {
                let length: usize = value.trim().parse().map_err(|_| Refusal::Malformed)?;
                body = body.filter(|_| length <= BODY_MAX).map(|known: usize| known.max(length));
            }
            // Bodies of unknown length, and those that are sent only if they are asked for.
            "transfer-encoding" | "expect" => body = None,
            name => from_page |= FROM_PAGES.contains(&name),
        }
    }
    if body.is_some_and(|body| bytes.len() - length < body) {
        return Ok(None);
    }
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") if body.is_none_or(|length| length > 0) => return Err(Refusal::BodyNotTaken),
        Some("POST") => Method::Post,
        _ => return Err(Refusal::MethodNotAllowed),
    };
    if minor > 0 && host.is_none() {
        return Err(Refusal::Malformed);
    }
    let (authority, path, query) = target(head.path.unwrap_or_default()).ok_or(Refusal::Malformed)?;
    // RFC 9112, 3.2.2.
    let host = authority.map(str::to_owned).or(host).unwrap_or_default();
    let (path, query) = (path.to_owned(), query.to_owned());
    // Nothing can be read after a body whose end is not known.
    let request = Request { method, path, query, host, from_page, keeps: keeps && body.is_some() };
    Ok(Some((request, length + body.unwrap_or(0))))
}

fn refusal(error: httparse::Error) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::HeadTooLarge,
        httparse::Error::Version => Refusal::VersionNotSupported,
        _ => Refusal::Malformed,
    }
}

/// Returns path and query of a target in origin form, or in absolute form, which servers have to accept as well and which
/// names the host.
fn target(target: &str) -> Option<(Option<&str>, &str, &str)> {
    let (host, target) = match target.strip_prefix("http://") {
        Some(absolute) => {
            let (host, path) = absolute.split_at(absolute.find('/').unwrap_or(absolute.len()));
            (Some(host), if path.is_empty() { "/" } else { path })
        }
        None => (None, target),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    target.starts_with('/').then_some((host, path, query))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, method: Method, keeps: bool) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let host = String::new();
        Request { method, path: path.to_owned(), query: query.to_owned(), host, from_page: false, keeps }
    }

    /// Covers requests of curl 7.88, Prometheus 2.42 and wget 1.21, and those that RFC 9112 asks servers to accept.
    #[test]
    fn reads_what_clients_send() {
        for (text, expected) in [
            (
                "GET /metrics HTTP/1.1\r\nHost: a:1\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
                ("/metrics", Method::Get, true),
            ),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain;version=0.0.4;q=0.3\r\n\
                 Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n",
                ("/metrics", Method::Get, true),
            ),
            ("HEAD /health?x=1 HTTP/1.1\r\nhost:a\r\nConnection: Close\r\n\r\n", ("/health?x=1", Method::Head, false)),
            ("GET / HTTP/1.0\r\n\r\n", ("/", Method::Get, false)),
            ("GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n", ("/", Method::Get, true)),
            ("\r\n\nGET http://a:1/b?c HTTP/1.1\nHost: a\n\n", ("/b?c", Method::Get, true)),
            ("GET http://a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345", ("/", Method::Get, true)),
            (
                "POST /run?number=7 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                ("/run?number=7", Method::Post, true),
            ),
        ] {
            let (target, method, keeps) = expected;
            let bytes = text.as_bytes();
            let (found, length) = parse(bytes).expect("it is a request").expect("it is whole");
            assert!(["", "a", "a:1"].contains(&found.host.as_str()), "{found:?}");
            let found = Request { host: String::new(), ..found };
            assert_eq!((found, length), (request(target, method, keeps), bytes.len()), "{text}");
            for length in 0..bytes.len() {
                assert_eq!(parse(&bytes[..length]), Ok(None), "the first {length} bytes of {text}");
            }
        }
    }

    /// Covers a client that sends head and body by two system calls, as Python's `http.client` does.
    #[test]
    fn is_refused_for_its_body_when_all_of_it_has_come() {
        let bytes = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n123";
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]), Ok(None), "{length} bytes");
        }
        assert_eq!(parse(bytes), Err(Refusal::BodyNotTaken));
    }

    /// Covers headers that Chromium 120 and Firefox 115 send with a form or a script of another site.
    #[test]
    fn a_page_in_a_browser_is_known() {
        for header in
            ["Origin: http://evil.example", "origin: null", "Referer: http://a/", "Sec-Fetch-Site: cross-site"]
        {
            let text = format!("POST /stop HTTP/1.1\r\nHost: a\r\n{header}\r\nContent-Length: 0\r\n\r\n");
            let (request, _) = parse(text.as_bytes()).expect("it is a request").expect("it is whole");
            assert!(request.from_page, "{header}");
        }
    }

    #[test]
    fn the_host_of_an_absolute_target_counts() {
        let host = |text: &str| parse(text.as_bytes()).expect("a request").expect("a whole one").0.host;
        assert_eq!(host("GET / HTTP/1.1\r\nHost: farm7:9205\r\n\r\n"), "farm7:9205");
        assert_eq!(host("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n"), "evil.example");
        assert_eq!(host("GET / HTTP/1.0\r\n\r\n"), "");
    }

    #[test]
    fn refuses_what_it_cannot_answer() {
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_MAX));
        for (text, refusal) in [
            ("PUT / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::MethodNotAllowed),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n123", Refusal::BodyNotTaken),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8193\r\n\r\n", Refusal::BodyNotTaken),
            ("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", Refusal::BodyNotTaken),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\n", Refusal::Malformed),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", Refusal::BodyNotTaken),
            ("get / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::MethodNotAllowed),
            ("GET / HTTP/1.1\r\n\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost\r\n\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Refusal::Malformed),
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Malformed),
            ("GET /\r\n\r\n", Refusal::Malformed),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Malformed),
            ("GET / SPDY\r\n\r\n", Refusal::VersionNotSupported),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refusal::VersionNotSupported),
            (&long, Refusal::HeadTooLarge),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(refusal), "{text}");
        }
        assert_eq!(parse(b"\xff / HTTP/1.0\r\n\r\n"), Err(Refusal::Malformed));
        assert_eq!(parse(&[b'\n'; HEAD_MAX]), Err(Refusal::HeadTooLarge));
    }
}
