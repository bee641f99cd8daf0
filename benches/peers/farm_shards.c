/* What a controller can reach: threads that share nothing, each with its nodes, each with its epoll. See farm.c. */
#include "farm.h"
#include <errno.h>
#include <sys/epoll.h>

enum { ROOM = 1 << 17 };

/* How long nothing has to be ready before a node is served that is ahead of others. */
static const struct timespec quiet = {0, 100000};

/* The stream from a node, and to it: bytes of a token that have come, data to pass over, events owed, bytes of the
 * first that have left. */
struct stream { size_t have, pass, offset; int owed, writing; struct token token; uint64_t first; };

static struct stream streams[NODES_MAX];

static void take(struct node *node, struct stream *stream, const char *bytes, size_t count) {
    while (count) {
        size_t passed = stream->pass < count ? stream->pass : count;
        stream->pass -= passed, bytes += passed, count -= passed;
        size_t wanted = TOKEN - stream->have, part = count < wanted ? count : wanted;
        memcpy((char *)&stream->token + stream->have, bytes, part);
        stream->have += part, bytes += part, count -= part;
        if (stream->have < TOKEN)
            continue;
        stream->have = 0, stream->pass = stream->token.length, stream->owed++;
        if (stream->token.event)
            count_event(node);
    }
}

/* Everything owed, as far as the socket takes it. */
static void give(int poller, struct node *node, struct stream *stream, uint64_t *last) {
    while (stream->owed) {
        struct header headers[BATCH_MAX];
        struct iovec parts[2 * BATCH_MAX];
        int together = stream->owed < options.batch ? stream->owed : options.batch;
        if (stream->offset)
            together = 1;
        else
            stream->first = *last + 1;
        for (int at = 0; at < together; at++) {
            headers[at] = (struct header){options.size, stream->first + at};
            parts[2 * at] = (struct iovec){&headers[at], HEADER};
            parts[2 * at + 1] = (struct iovec){event_of(stream->first + at), options.size};
        }
        struct iovec *rest = parts;
        size_t skip = stream->offset;
        if (skip >= HEADER)
            rest++, skip -= HEADER;
        rest->iov_base = (char *)rest->iov_base + skip, rest->iov_len -= skip;
        struct msghdr message = {.msg_iov = rest, .msg_iovlen = parts + 2 * together - rest};
        ssize_t sent = sendmsg(node->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        need(sent >= 0 || errno == EAGAIN, "sendmsg");
        size_t done = stream->offset + (sent > 0 ? sent : 0), event = HEADER + options.size;
        if (!stream->offset)
            *last += (done + event - 1) / event;
        stream->owed -= done / event;
        stream->first += done / event;
        stream->offset = done % event;
        if (sent < 0)
            break;
    }
    if (stream->writing != (stream->owed > 0)) {
        stream->writing = stream->owed > 0;
        struct epoll_event what = {.events = EPOLLIN | (stream->writing ? EPOLLOUT : 0), .data.u32 = node - nodes};
        need(epoll_ctl(poller, EPOLL_CTL_MOD, node->fd, &what) == 0, "epoll_ctl");
    }
}

/* Whether a node may have its next event now, where the one with the fewest events has so many. */
static int is_due(const struct node *node, uint64_t fewest) {
    return atomic_load_explicit(&node->events, memory_order_relaxed) <= fewest + options.ahead;
}

static uint64_t fewest_events(void) {
    uint64_t fewest = UINT64_MAX;
    for (int at = 0; at < options.nodes; at++) {
        uint64_t events = atomic_load_explicit(&nodes[at].events, memory_order_relaxed);
        fewest = events < fewest ? events : fewest;
    }
    return fewest;
}

static void *shard(void *argument) {
    int number = (int)(intptr_t)argument, poller = epoll_create1(0);
    char *bytes = malloc(ROOM);
    /* Each shard has its own part of the numbers, and begins in its own part of the pool. */
    uint64_t last = ((uint64_t)number << 48) + (uint64_t)number * options.pool / options.shards;
    struct epoll_event ready[NODES_MAX];
    run_on_its_cpu(number);
    for (int at = number; at < options.nodes; at += options.shards) {
        struct epoll_event what = {.events = EPOLLIN, .data.u32 = at};
        need(epoll_ctl(poller, EPOLL_CTL_ADD, nodes[at].fd, &what) == 0, "epoll_ctl");
    }
    for (int waiting = 0;;) {
        int count = epoll_pwait2(poller, ready, NODES_MAX, waiting ? &quiet : NULL, NULL);
        need(count >= 0 || errno == EINTR, "epoll_pwait2");
        for (int at = 0; at < count; at++) {
            struct node *node = &nodes[ready[at].data.u32];
            struct stream *stream = &streams[node - nodes];
            if (ready[at].events & EPOLLIN) {
                ssize_t came = recv(node->fd, bytes, ROOM, MSG_DONTWAIT);
                need(came > 0 || (came < 0 && errno == EAGAIN), "recv");
                take(node, stream, bytes, came > 0 ? came : 0);
            }
            if (!options.ahead)
                give(poller, node, stream, &last);
        }
        waiting = 0;
        uint64_t fewest = options.ahead && count ? fewest_events() : UINT64_MAX - options.ahead;
        for (int at = number; options.ahead && at < options.nodes; at += options.shards) {
            if (streams[at].owed && is_due(&nodes[at], fewest))
                give(poller, &nodes[at], &streams[at], &last);
            else
                waiting |= streams[at].owed > 0;
        }
    }
    return NULL;
}

static void controller(void) {
    tcp_accept(options.nodes);
    for (int number = 0; number < options.shards; number++)
        start(shard, (void *)(intptr_t)number);
}

/* Answers together the events that came together, `--batch` at most, received in pieces of `--room` events. */
static void node(int number, int port) {
    int fd = tcp_connect(number, port), owed = 0, more = 0;
    size_t event = HEADER + options.size, room = event * (options.room ? options.room : options.batch), have = 0;
    size_t length = 0;
    char *bytes = malloc(room), *answers = calloc(options.batch + room / event, TOKEN + options.token_data);
    for (int credit = 0; credit < options.credits; credit++)
        send_all(fd, answers, TOKEN);
    if (options.low_water)
        need(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){event}, sizeof(int)) == 0, "SO_RCVLOWAT");
    for (uint64_t count = 0;;) {
        size_t wanted = options.batch == 1 ? event - have : room - have;
        ssize_t came = recv(fd, bytes + have, wanted, more ? MSG_DONTWAIT : options.batch == 1 ? MSG_WAITALL : 0);
        if (came == 0 || (came < 0 && errno == ECONNRESET))
            exit(0);
        need(came > 0 || (more && errno == EAGAIN), "recv");
        have += came > 0 ? came : 0;
        for (size_t at = 0; at < have / event; at++, owed++) {
            struct header *header = (void *)(bytes + at * event);
            need(header->length == options.size, "an event's length");
            struct token token = {token_data_after(++count, number), number, header->event, {0}};
            memcpy(answers + length, &token, TOKEN);
            length += TOKEN + token.length;
        }
        /* The begun event goes to the front without its bytes, which nobody looks at; its header has to be right. */
        if (have % event)
            memcpy(bytes, bytes + have / event * event, have % event < HEADER ? have % event : HEADER);
        have %= event;
        more = came == (ssize_t)wanted && owed < options.batch;
        if (length && !more)
            send_all(fd, answers, length), length = 0, owed = 0;
    }
}

const struct version shards = {"shards", tcp_listen, controller, node, 0};
