//! Drives a link in a bare loop: `quick URI size window mode seconds wait cpu`, or serves: `quick serve URI wait cpu`.

use hodo_catalog::{ServeSettings, Settings, open, serve};
use hodo_measure::{Mode, Operation, Plan, units};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn run_server(args: &[String]) {
    let settings = ServeSettings {
        threads: 1,
        cpus: args.get(3).map(|cpu| vec![cpu.parse().unwrap()]).unwrap_or_default(),
        wait: units::wait(&args[2]).unwrap(),
        congestion: None,
        path: hodo_io::PathOptions::default(),
        socket_buffer: None,
        payload: None,
        size_max: 1 << 30,
        peers_max: 20_000,
    };
    let server = serve(&hodo_catalog::uri(&args[1]).unwrap(), &settings).unwrap();
    println!("listening on {}", server.uri());
    server.run(&AtomicBool::new(false)).unwrap();
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "serve" {
        return run_server(&args);
    }
    let window: u64 = args[2].parse().unwrap();
    let size: u32 = args[1].parse().unwrap();
    let mode = match args[3].as_str() {
        "send" => Mode::Send,
        "receive" => Mode::Receive,
        _ => Mode::Both,
    };
    let settings = Settings {
        window: window as u32,
        wait: units::wait(&args[5]).unwrap(),
        cpus: vec![args[6].parse().unwrap()],
        congestion: args.get(7).cloned(),
        socket_buffer: args.get(8).map(|b| b.parse().unwrap()),
        timeout: Duration::from_secs(1),
        ..Settings::of(&Plan::one(mode, size))
    };
    let mut opened = open(&hodo_catalog::uri(&args[0]).unwrap(), &settings, &AtomicBool::new(false)).unwrap();
    hodo_io::affinity::pin_thread(settings.cpus[0]).unwrap();
    let link = &mut opened.links[0];
    let mut done = Vec::new();
    for tag in 0..window {
        link.start(Operation { tag, channel: 0, size, mode });
    }
    let start = link.now();
    let end = start + Duration::from_secs_f64(args[4].parse().unwrap());
    let mut times = Vec::new();
    let (mut count, mut lost, mut last) = (0u64, 0u64, start);
    while last < end {
        link.poll(settings.wait, end, &mut done).unwrap();
        let now = link.now();
        for completion in done.drain(..) {
            match completion.outcome {
                hodo_measure::Outcome::Done => count += 1,
                hodo_measure::Outcome::Recovered => {
                    count += 1;
                    lost -= 1;
                    continue;
                }
                _ => lost += 1,
            }
            link.start(Operation { tag: completion.tag, channel: 0, size, mode });
            if window == 1 {
                times.push(now.nanos_since(last));
            }
        }
        last = now;
    }
    let spent = (last - start).as_secs_f64();
    times.sort_unstable();
    let p50 = times.get(times.len() / 2).copied().unwrap_or(0);
    let rate = count as f64 / spent;
    println!("{:.0} ops/s  {:.2} Gbit/s  p50 {} ns  lost {lost}", rate, rate * f64::from(size) * 8e-9, p50);
}
