// A pvxs server and a pvxs client that only measure: the peer of `hodo bench pva`. See pva.py beside this file.
//
//     pva_pvxs serve PORT CHANNELS DOUBLES              channels hodo:double:0 to hodo:double:N-1, 0 doubles for a scalar
//     pva_pvxs spam PORT CHANNELS DOUBLES               the same, whose subscribers get updates as fast as they take them
//     pva_pvxs get HOST:PORT CHANNELS SECONDS           a get on each channel, wait for all, and again
//     pva_pvxs monitor HOST:PORT CHANNELS SECONDS QUEUE updates of all channels, none lost
//     pva_pvxs connect HOST:PORT CHANNELS               time until all channels are connected
#define PVXS_ENABLE_EXPERT_API
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <epicsEvent.h>
#include <epicsThread.h>
#include <pvxs/client.h>
#include <pvxs/nt.h>
#include <pvxs/server.h>
#include <pvxs/sharedpv.h>
#include <pvxs/source.h>

using namespace pvxs;
typedef std::chrono::steady_clock Clock;

static double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

static std::string name(size_t number) { return "hodo:double:" + std::to_string(number); }

static Value served(size_t doubles) {
    const bool scalar = doubles == 0;
    Value value = TypeDef(TypeCode::Struct, scalar ? "epics:nt/NTScalar:1.0" : "epics:nt/NTScalarArray:1.0",
                          {Member(scalar ? TypeCode::Float64 : TypeCode::Float64A, "value")}).create();
    if (scalar) {
        value["value"] = 1.5;
    } else {
        shared_array<double> all(doubles, 1.5);
        all[doubles - 1] = 2.5;
        value["value"] = all.freeze();
    }
    return value;
}

static server::Config listening(unsigned short port) {
    server::Config config;
    config.interfaces = {"127.0.0.1"};
    config.tcp_port = port;
    config.udp_port = 0;
    config.auto_beacon = false;
    return config;
}

// Subscribers get the value again and again, as many updates as their window takes.
struct Spam : public server::Source {
    size_t channels;
    Value value;
    Spam(size_t channels, const Value& value) : channels(channels), value(value) {}
    bool has(const std::string& asked) const {
        return asked.compare(0, 12, "hodo:double:") == 0 && size_t(atol(asked.c_str() + 12)) < channels;
    }
    void onSearch(Search& search) override {
        for (auto& asked : search)
            if (has(asked.name())) asked.claim();
    }
    void onCreate(std::unique_ptr<server::ChannelControl>&& control) override {
        if (!has(control->name())) return;
        Value value = this->value;
        std::shared_ptr<server::ChannelControl> channel(std::move(control));
        channel->onSubscribe([value](std::unique_ptr<server::MonitorSetupOp>&& setup) {
            std::shared_ptr<server::MonitorControlOp> subscriber(setup->connect(value));
            setup->onClose([subscriber](const std::string&) {});
            Value update = value.cloneEmpty();
            update.assign(value);
            update.mark();
            std::weak_ptr<server::MonitorControlOp> weak(subscriber);
            auto fill = [weak, update]() {
                if (auto to = weak.lock())
                    while (to->tryPost(update)) {}
            };
            subscriber->onHighMark(fill);
            subscriber->onStart([fill](bool start) { if (start) fill(); });
        });
        channel->onClose([channel](const std::string&) {});
    }
};

static int serve(unsigned short port, size_t channels, size_t doubles, bool spams) {
    Value value = served(doubles);
    server::Server server(listening(port).build());
    std::vector<server::SharedPV> all;
    if (spams) {
        server.addSource("spam", std::make_shared<Spam>(channels, value));
    } else {
        for (size_t number = 0; number < channels; number++) {
            all.push_back(server::SharedPV::buildReadonly());
            all.back().open(value);
            server.addPV(name(number), all.back());
        }
    }
    server.start();
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    _exit(0);
}

static client::Context context(const std::string& server) {
    client::Config config;
    config.nameServers = {server};
    config.autoAddrList = false;
    // It does not search by UDP, and must have a port nevertheless.
    config.udp_port = atol(server.c_str() + server.rfind(':') + 1);
    return config.build();
}

// Rounds of gets. Each round is begun by the last answer of the one before, on the library's own thread: one that is begun by
// another thread wakes this one for each get where both are on one processor, which makes it ten times slower.
struct Gets {
    std::vector<std::shared_ptr<client::Operation>> all;
    std::atomic<size_t> left;
    epicsEvent done;
    bool failed;
    size_t bytes;
    double seconds, took;
    std::vector<double> times;
    Clock::time_point start, last;
    Gets() : left(0), failed(false), bytes(0), took(0) {}

    void begin(double for_seconds) {
        seconds = for_seconds;
        bytes = 0;
        times.clear();
        start = last = Clock::now();
        round();
    }
    void round() {
        left = all.size();
        for (auto& one : all) one->reExecGet([this](client::Result&& result) { answer(std::move(result)); });
    }
    void answer(client::Result&& result);
};

static size_t bytes_of(const Value& value) {
    Value field = value["value"];
    return field.type() == TypeCode::Float64A ? field.as<shared_array<const double>>().size() * 8 : 8;
}

void Gets::answer(client::Result&& result) {
    try {
        bytes += bytes_of(result());
    } catch (std::exception& error) {
        failed = true;
    }
    if (--left != 0) return;
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
    took = std::chrono::duration<double>(now - start).count();
    if (took < seconds && !failed) return round();
    done.signal();
}

static int get(const std::string& server, size_t channels, double seconds) {
    client::Context client(context(server));
    Gets gets;
    gets.left = channels;
    for (size_t number = 0; number < channels; number++) {
        gets.all.push_back(client.get(name(number)).pvRequest("field(value)").autoExec(false)
            .onInit([&gets](const Value&) { if (--gets.left == 0) gets.done.signal(); })
            .result([](client::Result&&) {}).exec());
    }
    client.hurryUp();
    if (!gets.done.wait(20.0)) {
        fprintf(stderr, "%zu channels were not found\n", size_t(gets.left));
        return 1;
    }
    for (double part : {0.2, 1.0}) {
        gets.begin(part * seconds);
        if (!gets.done.wait(60.0 + seconds) || gets.failed) return 1;
    }
    const size_t rounds = gets.times.size();
    std::sort(gets.times.begin(), gets.times.end());
    printf("{\"per_s\": %.3f, \"gbit_per_s\": %.5f, \"p50_us\": %.3f, \"p99_us\": %.3f}\n", rounds * channels / gets.took,
           gets.bytes * 8e-9 / gets.took, gets.times[rounds / 2] * 1e6, gets.times[rounds * 99 / 100] * 1e6);
    fflush(stdout);
    _exit(0);
}

static int monitor(const std::string& server, size_t channels, double seconds, unsigned queue) {
    client::Context client(context(server));
    std::atomic<size_t> updates(0), connected(0);
    std::vector<std::shared_ptr<client::Subscription>> all;
    for (size_t number = 0; number < channels; number++) {
        all.push_back(client.monitor(name(number)).record("pipeline", true).record("queueSize", queue)
            .maskConnected(true).event([&updates, &connected](client::Subscription& one) {
                bool first = true;
                while (Value update = one.pop()) {
                    updates++;
                    if (first) connected++;
                    first = false;
                }
            }).exec());
    }
    client.hurryUp();
    const auto patience = Clock::now();
    while (updates < channels && since(patience) < 20) epicsThreadSleep(0.01);
    epicsThreadSleep(0.2 * seconds);
    const size_t before = updates;
    const auto start = Clock::now();
    epicsThreadSleep(seconds);
    printf("{\"per_s\": %.3f}\n", (updates - before) / since(start));
    fflush(stdout);
    _exit(0);
}

static int connect(const std::string& server, size_t channels) {
    client::Context client(context(server));
    std::atomic<size_t> left(channels);
    epicsEvent done;
    std::vector<std::shared_ptr<client::Connect>> all;
    const auto start = Clock::now();
    for (size_t number = 0; number < channels; number++)
        all.push_back(client.connect(name(number)).onConnect([&]() { if (--left == 0) done.signal(); }).exec());
    client.hurryUp();
    if (!done.wait(60.0)) return 1;
    printf("{\"s\": %.6f}\n", since(start));
    fflush(stdout);
    _exit(0);
}

int main(int count, char** words) {
    const std::vector<std::string> all(words + 1, words + count);
    auto number = [&all](size_t at) { return at < all.size() ? atol(all[at].c_str()) : 0; };
    if (all.size() >= 4 && (all[0] == "serve" || all[0] == "spam")) return serve(number(1), number(2), number(3), all[0] == "spam");
    if (all.size() >= 4 && all[0] == "get") return get(all[1], number(2), atof(all[3].c_str()));
    if (all.size() >= 5 && all[0] == "monitor") return monitor(all[1], number(2), atof(all[3].c_str()), number(4));
    if (all.size() >= 3 && all[0] == "connect") return connect(all[1], number(2));
    fprintf(stderr, "usage: see the top of pva_pvxs.cpp\n");
    return 2;
}
