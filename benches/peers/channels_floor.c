/* What many connections cost a plain program: a message in flight on each, a process at each end, with epoll.
 *
 *   channels_floor CHANNELS BYTES SECONDS
 *
 * Everything is on 127.0.0.1. Prints JSON: the processor time of an exchange at both ends.
 */
#include "common.h"
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ROOM = 1 << 16, EVENTS = 256, SPARE = 100 };

static char bytes[ROOM];
static struct epoll_event ready[EVENTS];

static double used_s(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void watch(int poller, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    need(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* Answers until one of its connections ends, and tells what that took from the first message on. */
static void far_end(int listener, int channels, int tell) {
    int poller = epoll_create1(0);
    for (int index = 0; index < channels; index++) {
        int fd = accept(listener, NULL, NULL);
        need(fd >= 0, "accept");
        without_delay(fd);
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
    struct sockaddr_in at;
    int listener = listen_anywhere(channels, &at), poller = epoll_create1(0), *fds = calloc(channels, sizeof *fds);
    need(pipe(tell) == 0, "pipe");
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0)
        far_end(listener, channels, tell[1]);
    for (int index = 0; index < channels; index++) {
        fds[index] = join(at);
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
