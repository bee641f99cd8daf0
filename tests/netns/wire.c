/* A wire between two network namespaces that delays, loses, slows, polices and damages packets, alike in both directions.
 *
 *     wire NEAR FAR [delay=US] [jitter=US] [loss=SHARE] [rate=BITS] [queue=BYTES] [police=BITS] [bucket=BYTES] [swap=SHARE]
 *
 * Each namespace gets a TUN interface named `wire`. When both are there, the program prints `ready`; addresses and MTU are for the caller.
 * It ends with SIGTERM, or when standard input does. Kernels have all of this in netem and act_police, but not every kernel has those.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKET_MAX = 65536, IN_FLIGHT_MAX = 1 << 16, BATCH = 64, SWAPPED_MIN = 1000 };

/* What the wire does to packets; 0 where it does nothing. Times are in nanoseconds, rates in bits per second. */
struct settings {
    double delay, jitter, loss, rate, queue, police, bucket, swap;
};

struct packet {
    int64_t due;
    int length;
    unsigned char *bytes;
};

/* One direction: packets that are on their way, in the order in which they arrive. */
struct way {
    int from, to;
    struct packet *packets;
    unsigned first, end;
    int64_t line_free, refilled;
    double tokens;
};

static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* A share of 1, by xorshift: the same in every run. */
static double drawn(void) {
    static uint64_t state = 0x9E3779B97F4A7C15;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) * 0x1p-53;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int interface_in(const char *namespace) {
    char path[256];
    snprintf(path, sizeof path, "/var/run/netns/%s", namespace);
    int there = open(path, O_RDONLY);
    if (there < 0 || setns(there, CLONE_NEWNET) < 0) fail(path);
    close(there);
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strcpy(request.ifr_name, "wire");
    if (tun < 0 || ioctl(tun, TUNSETIFF, &request) < 0) fail("/dev/net/tun");
    return tun;
}

/* Whether a policer lets a packet pass: a bucket of bytes, filled at its rate. */
static int passes(struct way *way, const struct settings *settings, int length, int64_t at) {
    way->tokens += (at - way->refilled) * 1e-9 * settings->police / 8;
    way->refilled = at;
    if (way->tokens > settings->bucket) way->tokens = settings->bucket;
    if (way->tokens < length) return 0;
    way->tokens -= length;
    return 1;
}

/* Lets two words in the middle of a packet change places, which leaves the checksums of TCP and UDP as they are. */
static void swap(unsigned char *bytes, int length) {
    unsigned char *place = bytes + length / 4 * 2, word[2];
    memcpy(word, place, 2);
    memmove(place, place + 2, 2);
    memcpy(place + 2, word, 2);
}

static void take(struct way *way, const struct settings *settings, const unsigned char *bytes, int length) {
    int64_t at = now(), sent = at;
    if (settings->loss > 0 && drawn() < settings->loss) return;
    if (settings->police > 0 && !passes(way, settings, length, at)) return;
    if (settings->rate > 0) {
        if (way->line_free < at) way->line_free = at;
        if ((way->line_free - at) * 1e-9 * settings->rate / 8 + length > settings->queue) return;
        way->line_free += length * 8e9 / settings->rate;
        sent = way->line_free;
    }
    if (way->end - way->first == IN_FLIGHT_MAX) return;
    int64_t due = sent + settings->delay + settings->jitter * drawn();
    struct packet *packet = &way->packets[way->end % IN_FLIGHT_MAX];
    /* Packets stay in their order. */
    if (way->end != way->first) {
        int64_t before = way->packets[(way->end - 1) % IN_FLIGHT_MAX].due;
        if (due < before) due = before;
    }
    *packet = (struct packet){due, length, malloc(length)};
    if (!packet->bytes) fail("malloc");
    memcpy(packet->bytes, bytes, length);
    if (settings->swap > 0 && length > SWAPPED_MIN && drawn() < settings->swap) swap(packet->bytes, length);
    way->end++;
}

/* Delivers what is due. Returns when the next packet is. */
static int64_t deliver(struct way *way) {
    while (way->first != way->end) {
        struct packet *packet = &way->packets[way->first % IN_FLIGHT_MAX];
        if (packet->due > now()) return packet->due;
        /* An interface whose queue is full drops the packet, as any does. */
        if (write(way->to, packet->bytes, packet->length) < 0 && errno != EAGAIN && errno != EIO) fail("write");
        free(packet->bytes);
        way->first++;
    }
    return INT64_MAX;
}

static struct settings parsed(int count, char **words) {
    struct settings settings = {.queue = 1e6, .bucket = 65536};
    const struct { const char *name; double *value, scale; } known[] = {
        {"delay", &settings.delay, 1e3},  {"jitter", &settings.jitter, 1e3}, {"loss", &settings.loss, 1},
        {"rate", &settings.rate, 1},      {"queue", &settings.queue, 1},     {"police", &settings.police, 1},
        {"bucket", &settings.bucket, 1},  {"swap", &settings.swap, 1},
    };
    for (int word = 0; word < count; word++) {
        char *value = strchr(words[word], '=');
        size_t option = 0, options = sizeof known / sizeof *known;
        if (value) *value++ = 0;
        while (option < options && strcmp(known[option].name, words[word])) option++;
        if (!value || option == options) {
            fprintf(stderr, "wire: %s is no option\n", words[word]);
            exit(2);
        }
        *known[option].value = atof(value) * known[option].scale;
    }
    return settings;
}

int main(int count, char **words) {
    if (count < 3) return fputs("usage: wire NEAR FAR [option=value ...]\n", stderr), 2;
    struct settings settings = parsed(count - 3, words + 3);
    int ends[] = {interface_in(words[1]), interface_in(words[2])};
    struct way ways[2];
    for (int way = 0; way < 2; way++) {
        ways[way] = (struct way){.from = ends[way], .to = ends[!way], .refilled = now(), .tokens = settings.bucket};
        ways[way].packets = calloc(IN_FLIGHT_MAX, sizeof(struct packet));
        if (!ways[way].packets) fail("calloc");
    }
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    puts("ready");
    fflush(stdout);
    static unsigned char bytes[PACKET_MAX];
    while (!stopped) {
        int64_t due = deliver(&ways[0]), other = deliver(&ways[1]);
        if (other < due) due = other;
        struct pollfd polled[] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}, {0, POLLIN, 0}};
        int64_t left = due == INT64_MAX ? 200000000 : due - now();
        struct timespec wait = {0, left < 0 ? 0 : left > 200000000 ? 200000000 : left};
        ppoll(polled, 3, &wait, NULL);
        if (polled[2].revents) break;
        for (int way = 0; way < 2; way++) {
            int length = 0;
            for (int packet = 0; packet < BATCH && (length = read(ways[way].from, bytes, sizeof bytes)) > 0; packet++)
                take(&ways[way], &settings, bytes, length);
        }
    }
    return 0;
}
