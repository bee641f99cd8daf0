use super::super::{Basis, Finding, Kind, Price};
use super::{Answer, Facts, Topic, fine, found, unknown};
use hodo_io::host::{Busy, Throttling};
use hodo_measure::units::cpus_text;
use hodo_measure::units::text::{bits_per_s, count, digits, percent, time_ns};
use std::time::Duration;

/// Other programs that use less than this of one processor are the background of any host.
const OTHERS_LEAST: f64 = 0.1;
/// A smaller share of a processor is taken by interrupts and the kernel's own threads; a loop of the lowest priority takes 0.015.
const TAKEN_LEAST: f64 = 0.012;
/// Less is within the steps of the counter.
const STOLEN_LEAST: f64 = 0.02;
/// A cheaper wake-up is that of a processor that was not asleep.
const WAKE_UP_LEAST: Duration = Duration::from_micros(10);
/// A slower exchange waited for a processor that another program had: the deepest states take a millisecond to leave.
const WAKE_UP_MOST: Duration = Duration::from_millis(2);
/// A state from which a processor wakes more slowly than this.
const DEEP: Duration = Duration::from_micros(10);
/// A processor that slows down less than this is as good as at its frequency.
const SLOW_LEAST: f64 = 0.05;
/// Clocks that are read without a system call, the best first.
const FAST_CLOCKS: [&str; 6] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "riscv_clocksource"];
/// A reading that costs more than this is a system call, whatever the clock is called.
const CLOCK_LEAST_NS: f64 = 500.0;
/// Readings of the clock in an operation that is timed.
const READINGS: u32 = 2;

/// Judges the quota of this process, and of the far end's if it runs here.
pub(super) fn quota(facts: &Facts) -> Vec<Answer> {
    let far = facts.path.as_ref().and_then(|path| path.far_process.as_ref());
    let own = quota_of(facts, "", "this process", facts.watched.throttling.as_ref());
    let far = far.map(|far| {
        let whose = format!("the far end (process {})", far.process);
        quota_of(facts, "far end", &whose, far.throttling.as_ref())
    });
    std::iter::once(own).chain(far).collect()
}

fn quota_of(facts: &Facts, about: &str, whose: &str, throttling: Option<&Throttling>) -> Answer {
    let topic = Topic::Quota;
    let Some(throttling) = throttling else {
        return unknown(topic, about, format!("the control groups of {whose} cannot be found"));
    };
    let all = facts.online.len().max(1) as f64;
    let (Some(allowed), Some(group)) = (throttling.processors.filter(|allowed| *allowed < all), &throttling.group)
    else {
        return fine(topic, about, format!("none for {whose}"));
    };
    let group = group.display();
    let evidence = format!(
        "the control group {group} allows {whose} {} of {} processors, in periods of {}; it was stopped in {} of {} periods{}",
        digits(allowed, 3),
        facts.online.len(),
        time_ns(throttling.period.as_nanos() as f64),
        count(throttling.throttled_periods),
        count(throttling.periods),
        if about.is_empty() { " while it was examined" } else { " so far" }
    );
    let share = 1.0 - allowed / all;
    let text = format!(
        "{} of the processor time, and pauses of up to {}",
        percent(share),
        time_ns(throttling.period.as_nanos() as f64)
    );
    let price = Price::of_rate(share, Basis::Derived, text);
    let is_version_2 = throttling.group.as_ref().is_some_and(|group| {
        !group
            .components()
            .any(|part| part.as_os_str().to_string_lossy().split(',').any(|controller| controller == "cpu"))
    });
    let remedy = if is_version_2 {
        format!("echo max >{group}/cpu.max   # or a larger limit where the container is started")
    } else {
        format!("echo -1 >{group}/cpu.cfs_quota_us   # or a larger limit where the container is started")
    };
    found(topic, about, Finding { kind: Kind::Fault, evidence, price, remedy })
}

/// Judges whether both ends share one processor.
pub(super) fn one_processor(facts: &Facts) -> Vec<Answer> {
    vec![both_on_one(facts)]
}

fn both_on_one(facts: &Facts) -> Answer {
    let topic = Topic::OneProcessor;
    let (all, allowed) = (facts.online.len(), &facts.allowed);
    if all < 2 {
        return fine(topic, "", "this host has one processor");
    }
    let [only] = allowed[..] else {
        return fine(topic, "", format!("this process may use processors {}", cpus_text(allowed)));
    };
    let far = facts.path.as_ref().and_then(|path| path.far_process.as_ref());
    let other = match (&facts.path, far) {
        (Some(_), Some(far)) if far.cpus == *allowed => format!("the far end (process {}) too", far.process),
        (Some(_), Some(far)) => {
            return fine(topic, "", format!("this end on {only}, the far end on {}", cpus_text(&far.cpus)));
        }
        (Some(path), None) if !path.route.is_local => {
            return fine(topic, "", format!("this end on {only}, the far end on another host"));
        }
        _ => "a far end that it starts inherits that".to_owned(),
    };
    let evidence = format!("this process may use processor {only} alone, of {all}; {other}");
    let rates = facts.tcp.system.zip(facts.tcp.one_processor).filter(|_| facts.is_quiet());
    let price = match rates {
        Some((apart, together)) => {
            let share = (1.0 - together / apart).max(0.0);
            let text = format!(
                "{} of the rate: TCP over loopback has {} with both ends on processor {only}, {} with a processor each",
                percent(share),
                bits_per_s(together),
                bits_per_s(apart)
            );
            Price::of_rate(share, Basis::Measured, text)
        }
        None => Price::of_rate(0.5, Basis::Derived, "50.0 % of the rate where processors bind".to_owned()),
    };
    let every = cpus_text(&facts.online);
    let remedy = match far {
        Some(far) => format!("taskset -acp {every} {}; taskset -c {every} hodo …", far.process),
        None => format!("taskset -c {every} hodo …"),
    };
    found(topic, "", Finding { kind: Kind::Fault, evidence, price, remedy })
}

/// Judges what other programs take of the processors.
pub(super) fn neighbour(facts: &Facts) -> Vec<Answer> {
    let (topic, watched) = (Topic::Neighbour, &facts.watched);
    let Some(others) = watched.others else { return vec![unknown(topic, "", "/proc/stat cannot be read")] };
    let far = facts.path.as_ref().and_then(|path| path.far_process.as_ref()).map(|far| far.process);
    let names: Vec<&Busy> = watched.busiest.iter().filter(|busy| Some(busy.process) != far).take(3).collect();
    let all = facts.online.len().max(1) as f64;
    let was_stopped = watched.throttling.as_ref().is_some_and(|throttling| throttling.throttled_periods > 0);
    let measured = !was_stopped && !facts.occupancy.is_empty();
    let mean = facts.occupancy.iter().map(|each| 1.0 - each.share).sum::<f64>() / facts.occupancy.len().max(1) as f64;
    let share = if measured { mean } else { (others / all).min(1.0) };
    let used = format!("other programs used {} of {} processors", digits(others, 2), facts.online.len());
    if others < OTHERS_LEAST || share < TAKEN_LEAST {
        return vec![fine(topic, "", used)];
    }
    let each: Vec<String> = names
        .iter()
        .map(|busy| format!("{} ({}) {}", busy.name, busy.process, digits(busy.cpu_s / watched.span_s.max(1e-9), 2)))
        .collect();
    let waited =
        watched.pressure.map(|share| format!("; threads waited for a processor {} of the time", percent(share)));
    let listed = if each.is_empty() { String::new() } else { format!(": {}", each.join(", ")) };
    let evidence = format!("{used} while hodo slept{listed}{}", waited.unwrap_or_default());
    let (basis, text) = if measured {
        (Basis::Measured, format!("{} of each processor: a thread that never sleeps gets the rest", percent(share)))
    } else {
        (Basis::Derived, format!("{} of the processors", percent(share)))
    };
    let remedy = match names.first() {
        Some(busy) => {
            // A session has a priority of its own where the kernel groups them: that of a process counts within it only.
            let process = busy.process;
            format!(
                "renice 19 -p {process}   # and echo 19 >/proc/{process}/autogroup, if it exists; or stop it, or keep it off these processors with taskset"
            )
        }
        None => "it is not visible here: look for it outside of this container".to_owned(),
    };
    vec![found(topic, "", Finding { kind: Kind::Fault, evidence, price: Price::of_rate(share, basis, text), remedy })]
}

/// Judges the time that the hypervisor gave to other machines.
pub(super) fn steal(facts: &Facts) -> Vec<Answer> {
    let topic = Topic::Steal;
    let Some(stolen) = facts.watched.stolen else { return vec![unknown(topic, "", "/proc/stat cannot be read")] };
    if stolen < STOLEN_LEAST {
        return vec![fine(topic, "", percent(stolen))];
    }
    let pause = facts.longest_pause().unwrap_or_default();
    let evidence = format!(
        "the hypervisor ran other machines for {} of the processors' time in the last seconds; a processor was away for up to {}",
        percent(stolen),
        time_ns(pause.as_nanos() as f64)
    );
    let price = Price::of_rate(stolen, Basis::Measured, format!("{} of the processor time", percent(stolen)));
    let remedy = "nothing within this machine: ask for processors of its own, or measure on the host".to_owned();
    vec![found(topic, "", Finding { kind: Kind::Cost, evidence, price, remedy })]
}

/// Judges the cost of reading the clock.
pub(super) fn clock_source(facts: &Facts) -> Vec<Answer> {
    let (topic, cost_ns) = (Topic::ClockSource, facts.clock_cost_ns);
    let Some(source) = &facts.host.clock_source else {
        return vec![unknown(
            topic,
            "",
            format!("the kernel does not report it; a reading takes {}", time_ns(cost_ns)),
        )];
    };
    let is_fast = FAST_CLOCKS.contains(&source.as_str());
    if is_fast && cost_ns < CLOCK_LEAST_NS {
        return vec![fine(topic, "", format!("{source}, {} a reading", time_ns(cost_ns)))];
    }
    // The kernel lists them with the best first.
    let available = &facts.host.clock_sources;
    let best = available.first().filter(|best| *best != source);
    if is_fast && best.is_none() {
        // An emulated processor, or a kernel that lets no program read it: no setting changes that.
        return vec![fine(topic, "", format!("{source}, the best that there is, {} a reading", time_ns(cost_ns)))];
    }
    let evidence = format!("clock source {source}, of {}: a reading takes {}", available.join(", "), time_ns(cost_ns));
    let time = Duration::from_nanos((cost_ns * f64::from(READINGS)) as u64);
    let text = format!("{} on an operation that is timed with {READINGS} readings", time_ns(time.as_nanos() as f64));
    let (kind, remedy) = match best {
        Some(best) => {
            let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
            (Kind::Fault, format!("echo {best} >{file}"))
        }
        None => (Kind::Cost, "boot with tsc=reliable, if the processor's own counter is steady".to_owned()),
    };
    let price = Price::of_time(time, Basis::Measured, text);
    vec![found(topic, "", Finding { kind, evidence, price, remedy })]
}

/// Judges the cost of waking an idle processor.
pub(super) fn wake_up(facts: &Facts) -> Vec<Answer> {
    let topic = Topic::WakeUp;
    if facts.allowed.len().max(facts.online.len()) < 2 {
        return vec![unknown(topic, "", "it takes two processors to measure it")];
    }
    let Some(wake_up) = facts.wake_up.filter(|wake_up| wake_up.sleeping.max(wake_up.polling) < WAKE_UP_MOST) else {
        return vec![unknown(topic, "", "other programs had the processors: measure again when they are idle")];
    };
    let (cost, idle) = (wake_up.cost(), &facts.idle);
    let each = time_ns(cost.as_nanos() as f64);
    let driver = match (&idle.driver, idle.deepest()) {
        (Some(driver), Some(deepest)) => format!(
            "idle driver {driver}, deepest state {} ({} to leave)",
            deepest.name,
            time_ns(deepest.exit_latency.as_nanos() as f64)
        ),
        (Some(driver), None) => format!("idle driver {driver}"),
        (None, _) => "no idle driver: processors halt".to_owned(),
    };
    if cost < WAKE_UP_LEAST {
        return vec![fine(topic, "", format!("{each}; {driver}"))];
    }
    let under = facts.host.hypervisor.as_ref().map(|name| format!(" under {name}")).unwrap_or_default();
    let evidence = format!(
        "a byte there and back takes {} if the far thread sleeps, {} if it polls; {driver}{under}",
        time_ns(wake_up.sleeping.as_nanos() as f64),
        time_ns(wake_up.polling.as_nanos() as f64)
    );
    let remedy = if idle.driver.as_deref() != Some("haltpoll")
        && idle.deepest().is_some_and(|state| state.exit_latency > DEEP)
    {
        format!("cpupower idle-set -D {}   # or let programs poll: hodo bench --wait spin", DEEP.as_micros())
    } else if facts.host.hypervisor.is_some() && idle.driver.is_none() && idle.has_haltpoll_module {
        "modprobe cpuidle_haltpoll force=1   # polls before it halts; or let programs poll: hodo bench --wait spin"
            .to_owned()
    } else {
        "let programs poll: hodo bench --wait spin".to_owned()
    };
    let price = Price::of_time(cost, Basis::Measured, format!("{each} on each wait that sleeps"));
    vec![found(topic, "", Finding { kind: Kind::Cost, evidence, price, remedy })]
}

/// Judges the frequency of a processor that has just been idle.
pub(super) fn governor(facts: &Facts) -> Vec<Answer> {
    let topic = Topic::Governor;
    let Some(governor) = &facts.idle.frequency_governor else {
        return vec![fine(topic, "", "this kernel does not set the frequency")];
    };
    let Some(slow) = facts.slow_start else { return vec![unknown(topic, "", "the start was not measured")] };
    let has_performance = facts.idle.frequency_governors.iter().any(|name| name == "performance");
    if governor == "performance" || slow < SLOW_LEAST {
        return vec![fine(topic, "", format!("{governor}; {} slower after a rest", percent(slow)))];
    }
    let evidence =
        format!("frequency governor {governor}: the same work is {} slower right after a rest of 60 ms", percent(slow));
    let price = Price::of_rate(
        slow,
        Basis::Measured,
        format!("{} of the speed until the processor has sped up", percent(slow)),
    );
    let remedy = if has_performance {
        "cpupower frequency-set -g performance".to_owned()
    } else {
        "set the firmware's power profile to performance".to_owned()
    };
    vec![found(topic, "", Finding { kind: Kind::Fault, evidence, price, remedy })]
}
