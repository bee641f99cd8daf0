/// Bytes of a request up to its empty line, at most.
pub(crate) const HEAD_MAX: usize = 8 << 10;

/// The head of an HTTP/1.x request (RFC 9112), as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The path, from its first slash, without a query.
    pub path: String,
    /// Whether only the head of the answer is wanted.
    pub head_only: bool,
    /// Whether the connection may be used again after the answer.
    pub keeps: bool,
}

/// Why a request is not answered as it wants. What follows it on the connection cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is no request, or one of HTTP/1.1 without `Host`.
    Malformed,
    /// It asks for something else than to read.
    MethodNotAllowed,
    /// Its head passes the bound of 8 KiB.
    HeadTooLarge,
    /// It is of another version of HTTP.
    VersionNotSupported,
}

impl Refusal {
    /// The status that says so.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Refusal::Malformed => 400,
            Refusal::MethodNotAllowed => 405,
            Refusal::HeadTooLarge => 431,
            Refusal::VersionNotSupported => 505,
        }
    }
}

/// The request at the front of `bytes`, and its length; nothing where its end has not come yet.
pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    let window = &bytes[..bytes.len().min(HEAD_MAX)];
    // Empty lines ahead of a request are to be passed over.
    let start = window.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(window.len());
    let Some(length) = head_length(&window[start..]) else {
        return if bytes.len() < HEAD_MAX { Ok(None) } else { Err(Refusal::HeadTooLarge) };
    };
    let head = std::str::from_utf8(&window[start..start + length]).map_err(|_| Refusal::Malformed)?;
    let mut lines = head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let (method, target, minor) = request_line(lines.next().unwrap_or_default())?;
    let (mut keeps, mut has_host, mut has_body) = (minor > 0, false, false);
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(Refusal::Malformed);
        }
        match name.to_ascii_lowercase().as_str() {
            "connection" => {
                let says = |what: &str| value.split(',').any(|option| option.trim().eq_ignore_ascii_case(what));
                keeps = (keeps || says("keep-alive")) && !says("close");
            }
            "host" => has_host = true,
            "content-length" => has_body |= value.trim() != "0",
            "transfer-encoding" => has_body = true,
            _ => {}
        }
    }
    if !matches!(method, "GET" | "HEAD") {
        return Err(Refusal::MethodNotAllowed);
    }
    if minor > 0 && !has_host {
        return Err(Refusal::Malformed);
    }
    let path = path(target).ok_or(Refusal::Malformed)?.to_owned();
    // A body is not read, so that nothing can be read after it.
    let request = Request { path, head_only: method == "HEAD", keeps: keeps && !has_body };
    Ok(Some((request, start + length)))
}

/// The length up to and with the first empty line.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut line = 0;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        if matches!(&bytes[line..at], [] | [b'\r']) {
            return Some(at + 1);
        }
        line = at + 1;
    }
    None
}

fn request_line(line: &str) -> Result<(&str, &str, u8), Refusal> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Malformed);
    };
    let minor = match version.strip_prefix("HTTP/").map(str::as_bytes) {
        Some([b'1', b'.', minor @ b'0'..=b'9']) => minor - b'0',
        Some([b'0'..=b'9', b'.', b'0'..=b'9']) => return Err(Refusal::VersionNotSupported),
        _ => return Err(Refusal::Malformed),
    };
    Ok((method, target, minor))
}

/// The path of a target in origin form, or in absolute form, which servers have to take as well.
fn path(target: &str) -> Option<&str> {
    let target = match target.strip_prefix("http://") {
        Some(absolute) => absolute.find('/').map_or("/", |slash| &absolute[slash..]),
        None => target,
    };
    target.starts_with('/').then(|| target.split('?').next().unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, head_only: bool, keeps: bool) -> Request {
        Request { path: path.to_owned(), head_only, keeps }
    }

    /// As curl 7.88, Prometheus 2.42 and wget 1.21 send them, and what RFC 9112 asks servers to take.
    #[test]
    fn reads_what_clients_send() {
        for (text, expected) in [
            (
                "GET /metrics HTTP/1.1\r\nHost: a:1\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
                ("/metrics", false, true),
            ),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain;version=0.0.4;q=0.3\r\n\
                 Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n",
                ("/metrics", false, true),
            ),
            ("HEAD /health?x=1 HTTP/1.1\r\nhost:a\r\nConnection: Close\r\n\r\n", ("/health", true, false)),
            ("GET / HTTP/1.0\r\n\r\n", ("/", false, false)),
            ("GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n", ("/", false, true)),
            ("\r\n\nGET http://a:1/b?c HTTP/1.1\nHost: a\n\n", ("/b", false, true)),
            ("GET http://a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", ("/", false, false)),
        ] {
            let (path, head_only, keeps) = expected;
            let bytes = text.as_bytes();
            assert_eq!(parse(bytes), Ok(Some((request(path, head_only, keeps), bytes.len()))), "{text}");
            for length in 0..bytes.len() {
                assert_eq!(parse(&bytes[..length]), Ok(None), "the first {length} bytes of {text}");
            }
        }
    }

    #[test]
    fn refuses_what_it_cannot_answer() {
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_MAX));
        for (text, refusal) in [
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::MethodNotAllowed),
            ("get / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::MethodNotAllowed),
            ("GET / HTTP/1.1\r\n\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost\r\n\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Refusal::Malformed),
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Malformed),
            ("GET /\r\n\r\n", Refusal::Malformed),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::Malformed),
            ("GET / SPDY\r\n\r\n", Refusal::Malformed),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refusal::VersionNotSupported),
            (&long, Refusal::HeadTooLarge),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(refusal), "{text}");
        }
        assert_eq!(parse(b"\xff / HTTP/1.0\r\n\r\n"), Err(Refusal::Malformed));
        assert_eq!(parse(&[b'\n'; HEAD_MAX]), Err(Refusal::HeadTooLarge));
    }
}
