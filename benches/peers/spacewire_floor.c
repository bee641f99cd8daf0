/* What bare TCP sockets do with the frames of SSDTP2: a header of 12 bytes, and a packet.
 *
 *   spacewire_floor calls SIZE NEAR FAR SECONDS     header and packet in a send each, and in a receive each, as SpaceWireRMAPLibrary does
 *   spacewire_floor batches SIZE NEAR FAR SECONDS   64 KiB of frames in a send; the receiver walks from header to header
 *
 * One way, between two processes on the processors NEAR and FAR, on 127.0.0.1. Prints JSON.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 12, BATCH = 64 << 10, ROOM = 1 << 20 };

static size_t size;
static char out[ROOM], in[ROOM];

static void need(int ok, const char *what) {
    if (ok)
        return;
    perror(what);
    exit(1);
}

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

static void write_header(char *at) {
    uint64_t length = size;
    memset(at, 0, HEADER);
    for (int byte = 0; byte < 8; ++byte)
        at[HEADER - 1 - byte] = (char)(length >> 8 * byte);
}

static uint64_t read_length(const char *at) {
    uint64_t length = 0;
    for (int byte = 4; byte < HEADER; ++byte)
        length = length << 8 | (unsigned char)at[byte];
    return length;
}

static void send_all(int fd, const char *from, size_t left) {
    while (left > 0) {
        ssize_t sent = send(fd, from, left, MSG_NOSIGNAL);
        if (sent <= 0)
            exit(0);
        from += sent;
        left -= (size_t)sent;
    }
}

static int receive_all(int fd, char *to, size_t left) {
    while (left > 0) {
        ssize_t came = recv(fd, to, left, 0);
        if (came <= 0)
            return 0;
        to += came;
        left -= (size_t)came;
    }
    return 1;
}

static void send_calls(int fd) {
    write_header(out);
    for (;;) {
        send_all(fd, out, HEADER);
        send_all(fd, out + HEADER, size);
    }
}

static void send_batches(int fd) {
    size_t length = 0;
    do {
        write_header(out + length);
        length += HEADER + size;
    } while (length + HEADER + size <= BATCH);
    for (;;)
        send_all(fd, out, length);
}

static uint64_t packets;
static double begun, counted_from, seconds;
static uint64_t packets_before;

/* Counts from the first tenth of a second on. Returns whether the time is over. */
static int is_over(void) {
    double at = now();
    if (counted_from == 0 && at >= begun + 0.1) {
        counted_from = at;
        packets_before = packets;
    }
    return counted_from > 0 && at >= counted_from + seconds;
}

static void receive_calls(int fd) {
    while (receive_all(fd, in, HEADER) && receive_all(fd, in + HEADER, read_length(in))) {
        ++packets;
        if (packets % 256 == 0 && is_over())
            return;
    }
}

static void receive_batches(int fd) {
    size_t held = 0;
    for (;;) {
        ssize_t came = recv(fd, in + held, ROOM - held, 0);
        if (came <= 0)
            return;
        held += (size_t)came;
        size_t at = 0;
        while (held - at >= HEADER && held - at >= HEADER + read_length(in + at)) {
            at += HEADER + read_length(in + at);
            ++packets;
        }
        memmove(in, in + at, held - at);
        held -= at;
        if (is_over())
            return;
    }
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "spacewire_floor calls|batches SIZE NEAR FAR SECONDS\n");
        return 2;
    }
    int in_calls = strcmp(arguments[1], "calls") == 0;
    size = (size_t)atol(arguments[2]);
    seconds = atof(arguments[5]);
    need(size > 0 && size + HEADER <= BATCH * 4, "SIZE");
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    need(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0, "listen");
    need(getsockname(listener, (struct sockaddr *)&at, &length) == 0, "getsockname");
    pid_t sender = fork();
    if (sender == 0) {
        run_on(atoi(arguments[3]));
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        need(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (in_calls ? send_calls : send_batches)(fd);
    }
    run_on(atoi(arguments[4]));
    int fd = accept(listener, NULL, NULL);
    need(fd >= 0, "accept");
    begun = now();
    (in_calls ? receive_calls : receive_batches)(fd);
    double per_s = (double)(packets - packets_before) / (now() - counted_from);
    kill(sender, SIGTERM);
    waitpid(sender, NULL, 0);
    need(counted_from > 0, "the sender ended early");
    printf("{\"per_s\": %.1f, \"gbit_per_s\": %.4f}\n", per_s, per_s * (double)size * 8e-9);
    return 0;
}
