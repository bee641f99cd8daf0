/* A hub that only forwards, and its clients: what is left of a hub if nothing is checked, lost or remembered.
 *
 * Packets go to one board in the order in which they come, 16 of them at most before its replies, so the replies come
 * in this order too. It does all that makes a relay cheap: one system call for all the datagrams that are there
 * (recvmmsg), one for all that go out (UDP_SEGMENT), one for all the replies of a client.
 */
#include "floor.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/wait.h>

enum { IN_FLIGHT = 16, PACKET_MAX = 1500, CLIENTS = 64, ROOM = 1 << 18, CHUNKS = 1 << 10, QUEUE = 1 << 12 };
/* The headers of a chunk, of a packet in it, and of a reply in it. */
enum { CHUNK = 4, ASKED = 8, ANSWERED = 12 };

struct client {
    int fd, entries[CHUNKS];
    unsigned first_chunk, last_chunk;
    size_t have, begun, sendable, filled;
    unsigned char in[ROOM], out[ROOM];
};
struct packet { struct client *from; size_t length; unsigned char header[ASKED], bytes[PACKET_MAX]; };

static struct client *clients[CLIENTS];
static struct packet queue[QUEUE];
/* Packets before `asked` are with the board, those before `answered` are done. */
static unsigned answered, asked, queued;
static int poller, board_fd;

static uint32_t big(const unsigned char *at) { return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

static void put_big(unsigned char *at, uint32_t word) { word = htonl(word), memcpy(at, &word, 4); }

static void watch(int fd, void *as) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = as};
    need(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static void take_in(struct client *client) {
    ssize_t came = recv(client->fd, client->in + client->have, ROOM - client->have, MSG_DONTWAIT);
    if (came <= 0) {
        if (came == 0)
            epoll_ctl(poller, EPOLL_CTL_DEL, client->fd, NULL);
        return;
    }
    client->have += came;
    size_t at = 0;
    while (client->have - at >= CHUNK && client->have - at >= CHUNK + big(client->in + at)) {
        size_t end = at + CHUNK + big(client->in + at);
        int *entries = &client->entries[client->last_chunk++ % CHUNKS];
        for (*entries = 0, at += CHUNK; at < end; ++*entries) {
            struct packet *packet = &queue[queued++ % QUEUE];
            packet->from = client;
            packet->length = 4 * (client->in[at + 6] << 8 | client->in[at + 7]);
            need(packet->length <= PACKET_MAX && queued - answered <= QUEUE, "a packet");
            memcpy(packet->header, client->in + at, ASKED);
            memcpy(packet->bytes, client->in + at + ASKED, packet->length);
            at += ASKED + packet->length;
        }
    }
    memmove(client->in, client->in + at, client->have -= at);
}

/* As many packets as the board has room for, those of one length together. */
static void ask(void) {
    while (asked != queued && asked - answered < IN_FLIGHT) {
        struct iovec pieces[IN_FLIGHT];
        size_t length = queue[asked % QUEUE].length, count = 0;
        while (asked != queued && asked - answered < IN_FLIGHT && queue[asked % QUEUE].length == length) {
            struct packet *packet = &queue[asked++ % QUEUE];
            pieces[count++] = (struct iovec){packet->bytes, length};
        }
        char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
        if (count > 1) {
            message.msg_control = control, message.msg_controllen = sizeof control;
            struct cmsghdr *head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_UDP, head->cmsg_type = UDP_SEGMENT, head->cmsg_len = CMSG_LEN(sizeof(uint16_t));
            memcpy(CMSG_DATA(head), &(uint16_t){length}, sizeof(uint16_t));
        }
        need(sendmsg(board_fd, &message, 0) >= 0, "sendmsg");
    }
}

static void answer(const unsigned char *bytes, size_t length) {
    struct packet *packet = &queue[answered++ % QUEUE];
    struct client *client = packet->from;
    int *left = &client->entries[client->first_chunk % CHUNKS];
    need(client->filled + CHUNK + ANSWERED + length <= ROOM, "room for a reply");
    if (client->begun == client->filled)
        client->filled += CHUNK;
    unsigned char *to = client->out + client->filled;
    put_big(to, ASKED + length);
    memcpy(to + 4, packet->header, 6);
    memset(to + 10, 0, 2);
    memcpy(to + ANSWERED, bytes, length);
    client->filled += ANSWERED + length;
    if (--*left > 0)
        return;
    put_big(client->out + client->begun, client->filled - client->begun - CHUNK);
    client->begun = client->sendable = client->filled;
    client->first_chunk++;
}

static void hear(void) {
    static unsigned char bytes[IN_FLIGHT][PACKET_MAX];
    static struct iovec places[IN_FLIGHT];
    static struct mmsghdr messages[IN_FLIGHT];
    for (int index = 0; index < IN_FLIGHT; index++) {
        places[index] = (struct iovec){bytes[index], PACKET_MAX};
        messages[index].msg_hdr = (struct msghdr){.msg_iov = &places[index], .msg_iovlen = 1};
    }
    int count = recvmmsg(board_fd, messages, IN_FLIGHT, MSG_DONTWAIT, NULL);
    for (int index = 0; index < count; index++)
        answer(bytes[index], messages[index].msg_len);
}

static void flush(void) {
    for (int index = 0; index < CLIENTS && clients[index]; index++) {
        struct client *client = clients[index];
        if (client->sendable == 0)
            continue;
        ssize_t sent = send(client->fd, client->out, client->sendable, MSG_NOSIGNAL);
        need(sent == (ssize_t)client->sendable || errno == EPIPE || errno == ECONNRESET, "send");
        memmove(client->out, client->out + client->sendable, client->filled -= client->sendable);
        client->begun -= client->sendable, client->sendable = 0;
    }
}

/* `block` sleeps at once; `yield` looks once more after a yield; `poll` looks for 50 us while a reply is owed. */
static int wait_for(const char *how, struct epoll_event *events, int most) {
    double until = now_s() + 50e-6;
    int ready = epoll_wait(poller, events, most, *how == 'b' ? -1 : 0);
    if (ready == 0 && *how == 'y') {
        sched_yield();
        ready = epoll_wait(poller, events, most, 0);
    }
    while (ready == 0 && *how == 'p' && asked != answered && now_s() < until) {
        sched_yield();
        ready = epoll_wait(poller, events, most, 0);
    }
    return ready ? ready : epoll_wait(poller, events, most, -1);
}

void forward(int port, int board_port, const char *how) {
    struct sockaddr_in here = place(port), there = place(board_port);
    int listener = socket(AF_INET, SOCK_STREAM, 0), count = 0;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    need(bind(listener, (void *)&here, sizeof here) == 0 && listen(listener, CLIENTS) == 0, "listen");
    board_fd = socket(AF_INET, SOCK_DGRAM, 0);
    need(connect(board_fd, (void *)&there, sizeof there) == 0, "connect");
    poller = epoll_create1(0);
    watch(listener, &listener), watch(board_fd, &board_fd);
    for (;;) {
        struct epoll_event events[CLIENTS];
        int ready = wait_for(how, events, CLIENTS);
        for (int index = 0; index < ready; index++) {
            if (events[index].data.ptr == &board_fd) {
                hear();
            } else if (events[index].data.ptr == &listener) {
                need(count < CLIENTS, "a place for a client");
                struct client *client = clients[count++] = calloc(1, sizeof *client);
                need((client->fd = accept(listener, NULL, NULL)) >= 0, "accept");
                without_delay(client->fd);
                watch(client->fd, client);
            } else {
                take_in(events[index].data.ptr);
            }
        }
        ask();
        flush();
    }
}

/* A client */

/* Packets are in the host's byte order, as uHAL's. */
static void put(unsigned char *at, uint32_t word) { memcpy(at, &word, 4); }

/* A chunk of three packets that read, or write, 347 or 345 words each, as uHAL fills them. */
static size_t fill(unsigned char *to, int board_port, int reads) {
    unsigned char *at = to + CHUNK;
    for (int index = 0; index < 3; index++) {
        int words = reads ? 5 : 350;
        put_big(at, INADDR_LOOPBACK);
        at[4] = board_port >> 8, at[5] = board_port, at[6] = words >> 8, at[7] = words;
        unsigned char *packet = at + ASKED;
        put(packet, 0x200000F0);
        put(packet + 4, reads ? 0x2000FF0F : 0x2000FF1F), put(packet + 8, 0x1000);
        unsigned char *second = packet + 12 + (reads ? 0 : 4 * 255);
        put(second, reads ? 0x20015C0F : 0x20015A1F), put(second + 4, 0x10FF);
        at = packet + 4 * words;
    }
    put_big(to, at - to - CHUNK);
    return at - to;
}

void blocks(int port, int board_port, int reads, double seconds) {
    enum { FLYING = 20 };
    static unsigned char chunk[8192], came[ROOM];
    size_t out = fill(chunk, board_port, reads), back = CHUNK + 3 * (ANSWERED + 4 * (reads ? 350 : 3)), rest = 0;
    int fd = join(place(port));
    for (int index = 0; index < FLYING; index++)
        need(send(fd, chunk, out, 0) == (ssize_t)out, "send");
    double begun = now_s(), from = 0, at = begun;
    long chunks = 0;
    while (from == 0 || at < from + seconds) {
        ssize_t have = recv(fd, came, sizeof came, 0);
        need(have > 0, "no reply");
        for (rest += have; rest >= back; rest -= back, chunks++)
            need(send(fd, chunk, out, 0) == (ssize_t)out, "send");
        at = now_s();
        if (from == 0 && at > begun + 0.1)
            from = at, chunks = 0;
    }
    printf("{\"gbit_per_s\": %.4f}\n", chunks * 3 * (reads ? 347 : 345) * 32 / (at - from) / 1e9);
}

void crowd(int port, int board_port, int count, double seconds) {
    int results[2];
    need(pipe(results) == 0, "pipe");
    for (int index = 0; index < count; index++) {
        if (fork() != 0)
            continue;
        struct { uint32_t bytes, host; uint16_t port, words; uint32_t packet, read, address; } ask = {
            htonl(20), htonl(INADDR_LOOPBACK), htons(board_port), htons(3), 0x200000F0, 0x2000010F, 0x10};
        int fd = join(place(port));
        double begun = now_s(), at = begun;
        long reads = 0;
        for (; at < begun + 0.2 + seconds; at = now_s()) {
            char back[CHUNK + ANSWERED + 12];
            need(send(fd, &ask, sizeof ask, 0) == sizeof ask, "send");
            need(recv(fd, back, sizeof back, MSG_WAITALL) == sizeof back, "no reply");
            reads += at > begun + 0.2;
        }
        need(write(results[1], &reads, sizeof reads) == sizeof reads, "write");
        exit(0);
    }
    long sum = 0, reads;
    for (int index = 0; index < count; index++) {
        need(read(results[0], &reads, sizeof reads) == sizeof reads, "read");
        sum += reads;
    }
    while (wait(NULL) > 0)
        ;
    printf("{\"reads_per_s\": %.1f}\n", sum / seconds);
}
