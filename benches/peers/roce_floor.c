/* What bare UDP sockets do with the packets of an RDMA reliable connection: no headers are read, no CRC, no state.
 *
 *   roce_floor pingpong SIZE MTU NEAR FAR ITERATIONS   a message each way, in one segmented send with the acknowledgement of the last
 *   roce_floor stream SIZE MTU NEAR FAR ITERATIONS     messages one way, an acknowledgement of each back
 *
 * Two processes spin on the processors NEAR and FAR, on 127.0.0.1 and 127.0.0.2. Prints JSON.
 */
#include "common.h"
#include <sys/wait.h>

/* Base header and CRC of a packet; an acknowledgement; packets of a segmented send at most. */
enum { AROUND = 16, ACK = 20, ROOM = 1 << 17, SEGMENTS_MAX = 60, PORT = 4799, BUFFER = 4 << 20, AHEAD = 8 };

static int size, mtu, packets;

/* 127.0.0.1, or another `last` byte. */
static struct sockaddr_in host(int last) {
    struct sockaddr_in at = place(PORT);
    at.sin_addr.s_addr = htonl(0x7f000000 | last);
    return at;
}

static int open_at(int last) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), how = IP_PMTUDISC_DO, on = 1, bytes = BUFFER;
    struct sockaddr_in at = host(last);
    need(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    need(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &how, sizeof how) == 0, "IP_MTU_DISCOVER");
    need(setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0, "UDP_GRO");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return fd;
}

static void send_bytes(int fd, int to, int bytes, int segment) {
    static char from[ROOM];
    char control[CMSG_SPACE(sizeof(unsigned short))] = {0};
    struct sockaddr_in at = host(to);
    struct iovec piece = {from, bytes};
    struct msghdr message = {.msg_name = &at, .msg_namelen = sizeof at, .msg_iov = &piece, .msg_iovlen = 1};
    if (bytes > segment) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = IPPROTO_UDP;
        head->cmsg_type = UDP_SEGMENT;
        head->cmsg_len = CMSG_LEN(sizeof(unsigned short));
        *(unsigned short *)CMSG_DATA(head) = segment;
    }
    need(sendmsg(fd, &message, 0) >= 0, "sendmsg");
}

/* Takes so many bytes, in as many receives as it takes. Gives up after some seconds: a datagram was lost. */
static void receive(int fd, long bytes) {
    static char into[ROOM];
    time_t give_up = time(NULL) + 5;
    for (unsigned turns = 1; bytes > 0; turns++) {
        char control[64];
        struct iovec piece = {into, sizeof into};
        struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t came = recvmsg(fd, &message, MSG_DONTWAIT);
        if (came > 0)
            bytes -= came;
        if (turns % (1 << 20) == 0 && time(NULL) > give_up) {
            fprintf(stderr, "a datagram was lost\n");
            exit(1);
        }
    }
}

static int bytes_of(int with_ack) { return size + AROUND * packets + (with_ack ? ACK : 0); }
static int segment(void) { return (packets > 1 ? mtu : size) + AROUND; }

static void exchange(int fd, int to, int first, int iterations) {
    for (int i = 0; i < iterations; i++) {
        if (first)
            send_bytes(fd, to, bytes_of(1), segment());
        receive(fd, bytes_of(1));
        if (!first)
            send_bytes(fd, to, bytes_of(1), segment());
    }
}

static void stream(int fd, int to, int first, int iterations) {
    for (int i = 0; i < iterations; i++) {
        if (first) {
            send_bytes(fd, to, bytes_of(0), segment());
            if (i >= AHEAD)
                receive(fd, ACK);
        } else {
            receive(fd, bytes_of(0));
            send_bytes(fd, to, ACK, ACK);
        }
    }
    if (first)
        receive(fd, (long)ACK * (iterations < AHEAD ? iterations : AHEAD));
}

int main(int count, char **words) {
    need(count == 7, "roce_floor pingpong|stream SIZE MTU NEAR FAR ITERATIONS");
    int iterations = atoi(words[6]), is_stream = strcmp(words[1], "stream") == 0;
    size = atoi(words[2]);
    mtu = atoi(words[3]);
    packets = size > mtu ? (size + mtu - 1) / mtu : 1;
    need(packets <= SEGMENTS_MAX && bytes_of(1) < 65000, "too many packets for one send");
    int near = open_at(1), far = open_at(2);
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        run_on(words[5]);
        (is_stream ? stream : exchange)(far, 1, 0, iterations);
        exit(0);
    }
    run_on(words[4]);
    usleep(50000);
    double began = now_s();
    (is_stream ? stream : exchange)(near, 2, 1, iterations);
    double us = (now_s() - began) * 1e6;
    int status;
    waitpid(child, &status, 0);
    printf("{\"us\": %.4f, \"gbit_per_s\": %.3f}\n", us / iterations, size * 8e-3 * iterations / us);
    return status != 0;
}
