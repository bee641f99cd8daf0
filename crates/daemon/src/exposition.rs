use std::fmt::Write;

/// The media type of [`Exposition::text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics in Prometheus's text format 0.0.4, while they are gathered.
///
/// All samples of one name stand together in the text, in whatever order they were added.
#[derive(Debug, Default)]
pub struct Exposition {
    families: Vec<Family>,
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    samples: String,
}

/// Pairs of a label's name and its value, which may be any text.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

/// The value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A measure.
    Measure(f64),
}

/// The distribution of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution<'a> {
    /// The number of values.
    pub count: u64,
    /// The sum of the values.
    pub sum: f64,
    /// Pairs of a share of the values and the value that this share does not exceed: `(0.99, 0.000_012)`.
    pub quantiles: &'a [(f64, f64)],
}

impl Exposition {
    /// Adds a sample of a count that only grows. The name ends in `_total`.
    ///
    /// # Panics
    /// If the name or a label is malformed, or the name was used with another kind: our own mistake.
    pub fn counter(&mut self, name: &'static str, help: &'static str, labels: Labels<'_>, value: impl Into<Value>) {
        sample(self.family(name, help, "counter"), name, labels, None, value.into());
    }

    /// Adds a sample of a value that goes up and down.
    ///
    /// # Panics
    /// As [`Exposition::counter`].
    pub fn gauge(&mut self, name: &'static str, help: &'static str, labels: Labels<'_>, value: impl Into<Value>) {
        sample(self.family(name, help, "gauge"), name, labels, None, value.into());
    }

    /// Adds a sample of a distribution.
    ///
    /// # Panics
    /// As [`Exposition::counter`].
    pub fn summary(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: Labels<'_>,
        Distribution { count, sum, quantiles }: Distribution<'_>,
    ) {
        let samples = self.family(name, help, "summary");
        for (share, value) in quantiles {
            sample(samples, name, labels, Some(("quantile", &share.to_string())), Value::Measure(*value));
        }
        sample(samples, &format!("{name}_sum"), labels, None, Value::Measure(sum));
        sample(samples, &format!("{name}_count"), labels, None, Value::Count(count));
    }

    /// Returns the whole text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.families.iter().map(|family| family.samples.len() + 200).sum());
        for Family { name, help, kind, samples } in &self.families {
            text.push_str("# HELP ");
            text.push_str(name);
            text.push(' ');
            escape(&mut text, help, false);
            text.push_str("\n# TYPE ");
            text.push_str(name);
            text.push(' ');
            text.push_str(kind);
            text.push('\n');
            text.push_str(samples);
        }
        text
    }

    fn family(&mut self, name: &'static str, help: &'static str, kind: &'static str) -> &mut String {
        let index = self.families.iter().position(|family| family.name == name).unwrap_or_else(|| {
            assert!(is_name(name, true), "`{name}` is no name of a metric");
            self.families.push(Family { name, help, kind, samples: String::new() });
            self.families.len() - 1
        });
        let family = &mut self.families[index];
        assert_eq!(family.kind, kind, "`{name}` is of one kind");
        &mut family.samples
    }
}

fn sample(text: &mut String, name: &str, labels: Labels<'_>, last: Option<(&'static str, &str)>, value: Value) {
    text.push_str(name);
    let mut before = '{';
    for (label, value) in labels.iter().copied().chain(last) {
        assert!(is_name(label, false), "`{label}` is no name of a label");
        text.push(before);
        text.push_str(label);
        text.push_str("=\"");
        escape(text, value, true);
        text.push('"');
        before = ',';
    }
    text.push_str(if before == '{' { " " } else { "} " });
    let written = match value {
        Value::Count(count) => writeln!(text, "{count}"),
        Value::Measure(measure) if measure.is_infinite() => {
            writeln!(text, "{}Inf", if measure < 0.0 { '-' } else { '+' })
        }
        Value::Measure(measure) => writeln!(text, "{measure}"),
    };
    written.expect("a string takes whatever is written");
}

/// Escapes backslashes and line feeds, and quotes within a label's value.
fn escape(text: &mut String, raw: &str, quoted: bool) {
    for c in raw.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quoted => text.push_str("\\\""),
            _ => text.push(c),
        }
    }
}

fn is_name(name: &str, colons: bool) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || colons && c == ':';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Value::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Value::Count(u64::from(count))
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Value::Count(count as u64)
    }
}

impl From<f64> for Value {
    fn from(measure: f64) -> Self {
        Value::Measure(measure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_name_stand_together_under_one_head() {
        let mut exposition = Exposition::default();
        exposition.counter("hub_requests_total", "Requests taken.", &[("client", "a")], 3_u64);
        exposition.gauge("hub_boards", "Boards now.", &[], 2_usize);
        exposition.counter("hub_requests_total", "Requests taken.", &[("client", "b"), ("port", "1")], u64::MAX);
        let expected = "# HELP hub_requests_total Requests taken.\n\
            # TYPE hub_requests_total counter\n\
            hub_requests_total{client=\"a\"} 3\n\
            hub_requests_total{client=\"b\",port=\"1\"} 18446744073709551615\n\
            # HELP hub_boards Boards now.\n\
            # TYPE hub_boards gauge\n\
            hub_boards 2\n";
        assert_eq!(exposition.text(), expected);
    }

    /// Checks the escapes and special values against the format's description.
    #[test]
    fn any_text_and_any_value_can_be_read_back() {
        let mut exposition = Exposition::default();
        let odd = "C:\\DIR\\ \"x\"\nné";
        exposition.gauge("odd", "a \\ and\na \"b\"", &[("path", odd)], f64::NEG_INFINITY);
        exposition.gauge("odd", "", &[], f64::INFINITY);
        exposition.gauge("odd", "", &[], f64::NAN);
        exposition.gauge("odd", "", &[], 1.5e-7);
        let expected = "# HELP odd a \\\\ and\\na \"b\"\n# TYPE odd gauge\n\
            odd{path=\"C:\\\\DIR\\\\ \\\"x\\\"\\nné\"} -Inf\nodd +Inf\nodd NaN\nodd 0.00000015\n";
        assert_eq!(exposition.text(), expected);
    }

    #[test]
    fn a_distribution_has_quantiles_a_sum_and_a_count() {
        let mut exposition = Exposition::default();
        let distribution = Distribution { count: 4, sum: 0.25, quantiles: &[(0.5, 0.05), (0.99, 0.1)] };
        exposition.summary("rtt_seconds", "Round-trips.", &[("board", "b")], distribution);
        let expected = "# HELP rtt_seconds Round-trips.\n# TYPE rtt_seconds summary\n\
            rtt_seconds{board=\"b\",quantile=\"0.5\"} 0.05\n\
            rtt_seconds{board=\"b\",quantile=\"0.99\"} 0.1\n\
            rtt_seconds_sum{board=\"b\"} 0.25\n\
            rtt_seconds_count{board=\"b\"} 4\n";
        assert_eq!(exposition.text(), expected);
    }

    #[test]
    #[should_panic(expected = "is of one kind")]
    fn a_name_has_one_kind() {
        let mut exposition = Exposition::default();
        exposition.gauge("a", "", &[], 1.0);
        exposition.counter("a", "", &[], 1_u64);
    }

    #[test]
    fn names_are_checked() {
        for (name, metric, label) in [
            ("a_b9", true, true),
            ("a:b", true, false),
            ("9a", false, false),
            ("", false, false),
            ("a-b", false, false),
        ] {
            assert_eq!((is_name(name, true), is_name(name, false)), (metric, label), "{name}");
        }
    }
}
