/* What bare TCP sockets do with the frames of SSDTP2: a header of 12 bytes, and a packet.
 *
 *   spacewire_floor calls SIZE NEAR FAR SECONDS     header and packet in a send each, and in a receive each, as SpaceWireRMAPLibrary does
 *   spacewire_floor batches SIZE NEAR FAR SECONDS   64 KiB of frames in a send; the receiver walks from header to header
 *
 * One way, between two processes on the processors NEAR and FAR, on 127.0.0.1. Prints JSON.
 */
#include "common.h"
#include <signal.h>
#include <sys/wait.h>

enum { HEADER = 12, BATCH = 64 << 10, ROOM = 1 << 20 };

static size_t size;
static char out[ROOM], in[ROOM];

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
    double at = now_s();
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
    struct sockaddr_in at;
    int listener = listen_anywhere(1, &at);
    pid_t sender = fork();
    if (sender == 0) {
        run_on(arguments[3]);
        (in_calls ? send_calls : send_batches)(join(at));
    }
    run_on(arguments[4]);
    int fd = accept(listener, NULL, NULL);
    need(fd >= 0, "accept");
    begun = now_s();
    (in_calls ? receive_calls : receive_batches)(fd);
    double per_s = (double)(packets - packets_before) / (now_s() - counted_from);
    kill(sender, SIGTERM);
    waitpid(sender, NULL, 0);
    need(counted_from > 0, "the sender ended early");
    printf("{\"per_s\": %.1f, \"gbit_per_s\": %.4f}\n", per_s, per_s * (double)size * 8e-9);
    return 0;
}
