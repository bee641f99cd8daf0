// RMAP over SSDTP2 with spw_rmap's client: `spacewire_rmap PORT IN_FLIGHT SECONDS`.
//
// Reads four bytes again and again, each answered before the next (IN_FLIGHT 1) or so many at a time. Prints JSON.

#include <spw_rmap/spw_rmap_tcp_node.hh>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

using Clock = std::chrono::steady_clock;

static double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

static void fail(const char *what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

int main(int count, char **arguments) {
    if (count != 4) fail("spacewire_rmap PORT IN_FLIGHT SECONDS");
    const int in_flight = std::atoi(arguments[2]);
    const double seconds = std::atof(arguments[3]), warm_up = 0.1;
    spw_rmap::SpwRmapTCPClient client({.ip_address = "127.0.0.1", .port = arguments[1]});
    if (!client.Connect(std::chrono::seconds(1))) fail("cannot connect");
    const spw_rmap::TargetNode target(0xFE);
    unsigned long done = 0, before = 0;
    double counted_from = 0;
    const auto begin = Clock::now();
    const auto is_over = [&] {
        const double at = seconds_since(begin);
        if (counted_from == 0 && at >= warm_up) counted_from = at, before = done;
        return counted_from > 0 && at >= counted_from + seconds;
    };
    if (in_flight == 1) {
        std::thread receiver([&] { (void)client.RunLoop(); });
        std::array<uint8_t, 4> data{};
        while (!is_over()) {
            if (!client.Read(target, 0, data, std::chrono::milliseconds(1000))) fail("a read failed");
            ++done;
        }
        // Its loop goes on until the far end closes, which this program does not wait for.
        receiver.detach();
    } else {
        int open = 0;
        while (!is_over()) {
            for (; open < in_flight; ++open) {
                const auto started = client.ReadAsync(target, 0, 4, [&](auto reply) {
                    if (!reply) fail("a read failed");
                    --open, ++done;
                });
                if (!started) fail("a read was not sent");
            }
            if (!client.Poll()) fail("receiving failed");
        }
    }
    std::printf("{\"per_s\": %.1f}\n", (done - before) / (seconds_since(begin) - counted_from));
    std::fflush(stdout);
    std::_Exit(0);
}
