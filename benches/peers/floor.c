/* What bare sockets do: the floor under an exchange, and a bare client of an IPbus hub.
 *
 *   floor pingpong udp|tcp OUT BACK block|spin NEAR FAR SECONDS   one message of OUT bytes, one back of BACK, at a time
 *   floor relay block|spin NEAR HUB FAR SECONDS                   a read's bytes over TCP, passed on over UDP, and back
 *   floor window OUT BACK WINDOW block|spin NEAR FAR SECONDS      UDP, WINDOW in flight, one packet a system call
 *   floor hub PORT BOARD block|spin NEAR SECONDS                  single reads of BOARD through the hub at PORT, one at a time
 *   floor board PORT block|spin FAR                               an IPbus 2.0 board: see floor_board.c
 *   floor forward PORT BOARD block|yield|poll HUB                 a hub that only forwards: see floor_forward.c
 *   floor blocks PORT BOARD read|write NEAR SECONDS               60 full packets in flight through the hub at PORT
 *   floor crowd PORT BOARD CLIENTS NEAR SECONDS                   single reads of so many clients through it
 *
 * NEAR, HUB and FAR are processors, as 0 or 0,1. Everything is on 127.0.0.1. Prints JSON.
 */
#include "floor.h"
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

enum { READ = 12, HUB_READ = 24, HUB_ANSWER = 28, ROOM = 1 << 16, TIMES_MAX = 1 << 23, WARM_UP = 2000 };

int flags;

static void wait_as(const char *how) { flags = strcmp(how, "spin") == 0 ? MSG_DONTWAIT : 0; }

/* One receive: what came, or -1 after a quarter of a second without. */
static ssize_t receive_some(int fd, char *bytes, size_t most) {
    for (;;) {
        ssize_t came = recv(fd, bytes, most, flags);
        if (came >= 0)
            return came;
        if (flags && errno == EAGAIN)
            continue;
        if (errno == EAGAIN)
            return -1;
        need(errno == EINTR, "recv");
    }
}

/* Exactly so many bytes; answers 0 at the end of a stream. */
static int receive(int fd, char *bytes, size_t count) {
    for (size_t have = 0; have < count;) {
        ssize_t came = receive_some(fd, bytes + have, count - have);
        if (came <= 0)
            return 0;
        have += came;
    }
    return 1;
}

/* Two connected sockets: ours and the far end's. */
static void pair(int is_tcp, int fds[2]) {
    struct sockaddr_in at[2] = {place(0), place(0)};
    if (is_tcp) {
        int listener = listen_anywhere(1, at);
        fds[0] = join(at[0]);
        need((fds[1] = accept(listener, NULL, NULL)) >= 0, "accept");
        without_delay(fds[1]);
        return;
    }
    for (int end = 0; end < 2; end++) {
        socklen_t length = sizeof *at;
        need(bind(fds[end] = socket(AF_INET, SOCK_DGRAM, 0), (void *)&at[end], length) == 0, "bind");
        need(getsockname(fds[end], (void *)&at[end], &length) == 0, "getsockname");
        setsockopt(fds[end], SOL_SOCKET, SO_RCVBUF, &(int){4 << 20}, sizeof(int));
    }
    for (int end = 0; end < 2; end++)
        need(connect(fds[end], (void *)&at[!end], sizeof *at) == 0, "connect");
}

/* Answers each message, until it is killed or its stream ends. */
static pid_t far_end(int fd, size_t out, size_t back, const char *cpu) {
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child > 0)
        return child;
    static char bytes[ROOM];
    run_on(cpu);
    while (receive(fd, bytes, out))
        need(send(fd, bytes, back, 0) == (ssize_t)back, "send");
    exit(0);
}

static int by_size(const void *a, const void *b) { return (*(float *)a > *(float *)b) - (*(float *)a < *(float *)b); }

/* A hub that looks at nothing: what comes from one side goes to the other, with the sizes of a read and its answer. */
static pid_t relay(int client, int board, const char *cpu) {
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child > 0)
        return child;
    static char bytes[ROOM];
    struct epoll_event at[2] = {{.events = EPOLLIN, .data.fd = client}, {.events = EPOLLIN, .data.fd = board}};
    int poller = epoll_create1(0);
    for (int side = 0; side < 2; side++)
        need(epoll_ctl(poller, EPOLL_CTL_ADD, at[side].data.fd, &at[side]) == 0, "epoll_ctl");
    run_on(cpu);
    for (;;) {
        int ready = epoll_wait(poller, at, 2, flags ? 0 : -1);
        for (int index = 0; index < ready; index++) {
            int from = at[index].data.fd;
            ssize_t came = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
            if (came == 0)
                exit(0);
            if (came > 0)
                need(send(from == client ? board : client, bytes, from == client ? READ : HUB_ANSWER, 0) > 0, "send");
        }
    }
}

/* So many bytes out and so many back, one at a time. */
static void ping(int fd, const char *message, size_t out, size_t back, double seconds) {
    static char bytes[ROOM];
    float *times = malloc(TIMES_MAX * sizeof *times);
    long count = -WARM_UP;
    double before = now_s(), end = 0;
    do {
        need(send(fd, message, out, 0) == (ssize_t)out, "send");
        need(receive(fd, bytes, back), "no answer");
        double after = now_s();
        if (count == 0)
            end = after + seconds;
        if (count >= 0 && count < TIMES_MAX)
            times[count] = (after - before) * 1e6;
        count++;
        before = after;
    } while (count <= 0 || before < end);
    long kept = count < TIMES_MAX ? count : TIMES_MAX;
    qsort(times, kept, sizeof *times, by_size);
    printf("{\"p50_us\": %.3f, \"p99_us\": %.3f, \"count\": %ld}\n", times[kept / 2], times[kept * 99 / 100], count);
}

static void window(int fd, size_t out, size_t back, long most, double seconds) {
    static char bytes[ROOM];
    double begun = now_s(), from = 0, at = begun;
    long count = 0, lost = 0, in_flight = 0;
    while (from == 0 || at < from + seconds) {
        for (; in_flight < most; in_flight++)
            need(send(fd, bytes, out, 0) == (ssize_t)out, "send");
        if (receive_some(fd, bytes, back) < 0) {
            lost += in_flight, in_flight = 0;
        } else {
            count++, in_flight--;
        }
        at = now_s();
        if (from == 0 && at > begun + 0.1)
            from = at, count = 0;
    }
    printf("{\"messages_per_s\": %.1f, \"lost\": %ld}\n", count / (at - from), lost);
}

/* A chunk of one packet of one read, as uHAL sends it. */
static void hub(int port, int board, double seconds) {
    struct { uint32_t bytes, host; uint16_t port, words; uint32_t packet, read, address; } ask = {
        htonl(20), htonl(INADDR_LOOPBACK), htons(board), htons(3), 0x200000F0, 0x2000010F, 0x10};
    /* Length of the chunk; length, place and error of the packet; the packet. */
    ping(join(place(port)), (char *)&ask, sizeof ask, 4 + 12 + 12, seconds);
}

int main(int count, char **words) {
    int fds[2];
    if (count == 9 && strcmp(words[1], "pingpong") == 0) {
        static char message[ROOM];
        size_t out = atoi(words[3]), back = atoi(words[4]);
        wait_as(words[5]);
        pair(strcmp(words[2], "tcp") == 0, fds);
        pid_t child = far_end(fds[1], out, back, words[7]);
        run_on(words[6]);
        ping(fds[0], message, out, back, atof(words[8]));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else if (count == 9 && strcmp(words[1], "window") == 0) {
        size_t out = atoi(words[2]), back = atoi(words[3]);
        wait_as(words[5]);
        pair(0, fds);
        pid_t child = far_end(fds[1], out, back, words[7]);
        run_on(words[6]);
        need(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, 250000}, sizeof(struct timeval)) == 0, "SO_RCVTIMEO");
        window(fds[0], out, back, atoi(words[4]), atof(words[8]));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else if (count == 7 && strcmp(words[1], "relay") == 0) {
        static char message[HUB_READ];
        int board[2];
        wait_as(words[2]);
        pair(1, fds), pair(0, board);
        pid_t far = far_end(board[1], READ, READ, words[5]), middle = relay(fds[1], board[0], words[4]);
        run_on(words[3]);
        ping(fds[0], message, HUB_READ, HUB_ANSWER, atof(words[6]));
        kill(far, SIGKILL), kill(middle, SIGKILL);
        while (wait(NULL) > 0)
            ;
    } else if (count == 7 && strcmp(words[1], "hub") == 0) {
        wait_as(words[4]);
        run_on(words[5]);
        hub(atoi(words[2]), atoi(words[3]), atof(words[6]));
    } else if (count == 5 && strcmp(words[1], "board") == 0) {
        wait_as(words[3]);
        run_on(words[4]);
        board(atoi(words[2]));
    } else if (count == 6 && strcmp(words[1], "forward") == 0) {
        run_on(words[5]);
        forward(atoi(words[2]), atoi(words[3]), words[4]);
    } else if (count == 7 && strcmp(words[1], "blocks") == 0) {
        run_on(words[5]);
        blocks(atoi(words[2]), atoi(words[3]), strcmp(words[4], "read") == 0, atof(words[6]));
    } else if (count == 7 && strcmp(words[1], "crowd") == 0) {
        run_on(words[5]);
        crowd(atoi(words[2]), atoi(words[3]), atoi(words[4]), atof(words[6]));
    } else {
        fputs("usage: see the head of floor.c\n", stderr);
        return 2;
    }
    return 0;
}
