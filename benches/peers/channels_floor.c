/* What many connections cost a plain program: a message in flight on each, a process at each end, with epoll.
 *
 *   channels_floor CHANNELS BYTES SECONDS
 *
 * Everything is on 127.0.0.1. Prints JSON: the processor time of an exchange at both ends.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 16, EVENTS = 256, SPARE = 100 };

static char bytes[ROOM];
static struct epoll_event ready[EVENTS];

static void need(int ok, const char *what) {
    if (ok)
        return;
    perror(what);
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static double used_s(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void watch(int poller, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    need(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0, "TCP_NODELAY");
    need(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* Answers until one of its connections ends, and tells what that took from the first message on. */
static void far_end(int listener, int channels, int tell) {
    int poller = epoll_create1(0);
    for (int index = 0; index < channels; index++) {
        int fd = accept(listener, NULL, NULL);
        need(fd >= 0, "accept");
        watch(poller, fd);
    }
    double before = -1;
    for (;;) {
        int count = epoll_wait(poller, ready, EVENTS, -1);
        before = before < 0 ? used_s() : before;
        for (int index = 0; index < count; index++) {
            ssize_t came = recv(ready[index].data.fd, bytes, ROOM, MSG_DONTWAIT);
            if (came == 0) {
                double took = used_s() - before;
                need(write(tell, &took, sizeof took) == sizeof took, "write");
                exit(0);
            }
            need(came < 0 || send(ready[index].data.fd, bytes, came, MSG_NOSIGNAL) == came, "send");
        }
    }
}

int main(int count, char **words) {
    if (count != 4) {
        fputs("usage: channels_floor CHANNELS BYTES SECONDS\n", stderr);
        return 2;
    }
    int channels = atoi(words[1]), size = atoi(words[2]), tell[2];
    struct rlimit most = {channels + SPARE, channels + SPARE};
    need(setrlimit(RLIMIT_NOFILE, &most) == 0, "descriptors");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), poller = epoll_create1(0), *fds = calloc(channels, sizeof *fds);
    need(bind(listener, (void *)&at, sizeof at) == 0 && listen(listener, channels) == 0, "listen");
    need(getsockname(listener, (void *)&at, &length) == 0 && pipe(tell) == 0, "getsockname");
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0)
        far_end(listener, channels, tell[1]);
    for (int index = 0; index < channels; index++) {
        fds[index] = socket(AF_INET, SOCK_STREAM, 0);
        need(connect(fds[index], (void *)&at, sizeof at) == 0, "connect");
        watch(poller, fds[index]);
    }
    double before = used_s(), end = now_s() + atof(words[3]), far;
    long exchanges = 0;
    for (int index = 0; index < channels; index++)
        need(send(fds[index], bytes, size, 0) == size, "send");
    while (now_s() < end) {
        int events = epoll_wait(poller, ready, EVENTS, 100);
        for (int index = 0; index < events; index++) {
            ssize_t came = recv(ready[index].data.fd, bytes, ROOM, MSG_DONTWAIT);
            need(came < 0 || came == size, "a message in pieces");
            need(came < 0 || send(ready[index].data.fd, bytes, size, MSG_NOSIGNAL) == size, "send");
            exchanges += came > 0;
        }
    }
    double near = used_s() - before;
    for (int index = 0; index < channels; index++)
        close(fds[index]);
    need(read(tell[0], &far, sizeof far) == sizeof far, "read");
    waitpid(child, NULL, 0);
    printf("{\"ns_per_exchange\": %.1f}\n", (near + far) / exchanges * 1e9);
    return 0;
}
