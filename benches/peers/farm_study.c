/* The study's three versions: see farm.c. */
#include "farm.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>

/* Nodes */

static void node_with_tokens(int number, int port) {
    int fd = tcp_connect(number, port);
    size_t bytes = HEADER + options.size;
    char *event = malloc(bytes), *answer = calloc(1, TOKEN + options.token_data);
    struct token *token = (void *)answer;
    token->node = number;
    for (int credit = 0; credit < options.credits; credit++)
        send_all(fd, token, TOKEN);
    for (uint64_t count = 1;; count++) {
        receive(fd, event, bytes);
        need(((struct header *)event)->length == options.size, "an event's length");
        token->event = ((struct header *)event)->event;
        token->length = token_data_after(count, number);
        send_all(fd, answer, TOKEN + token->length);
    }
}

static void node_without_tokens(int number, int port) {
    int fd = tcp_connect(number, port);
    char *event = malloc(HEADER + options.size);
    for (;;)
        receive(fd, event, HEADER + options.size);
}

/* Versions 2 and 3: a thread per node */

static void send_event(int fd, uint64_t number, char *payload) {
    struct header header = {options.size, number};
    struct iovec parts[2] = {{&header, HEADER}, {payload, options.size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    need(sent > 0, "sendmsg");
    if (sent < HEADER)
        send_all(fd, (char *)&header + sent, HEADER - sent), sent = HEADER;
    send_all(fd, payload + (sent - HEADER), options.size - (sent - HEADER));
}

static void send_next(int fd) {
    uint64_t number = next_event();
    send_event(fd, number, event_of(number));
}

/* One token and its data; answers whether it is of an event. */
static int receive_token(int fd, char *data) {
    struct token token;
    receive(fd, &token, TOKEN);
    need(token.length <= options.token_data, "a token's data");
    if (token.length)
        receive(fd, data, token.length);
    return token.event != 0;
}

static void *serve(void *argument) {
    struct node *node = argument;
    char *data = malloc(options.token_data);
    run_on_its_cpu(node - nodes);
    for (;;) {
        if (receive_token(node->fd, data))
            count_event(node);
        send_next(node->fd);
    }
    return NULL;
}

static void *pour(void *argument) {
    struct node *node = argument;
    run_on_its_cpu(node - nodes);
    for (;;) {
        send_next(node->fd);
        count_event(node);
    }
    return NULL;
}

static void controller_2(void) {
    tcp_accept(options.nodes);
    for (int number = 0; number < options.nodes; number++)
        start(serve, &nodes[number]);
}

static void controller_3(void) {
    tcp_accept(options.nodes);
    for (int number = 0; number < options.nodes; number++)
        start(pour, &nodes[number]);
}

/* Version 1: the generator's process, a queue of events, a queue of tokens, one mutex */

/* A first-in first-out queue that cannot overflow: as many places as there are events or tokens. */
struct queue { size_t places, first, count; intptr_t *entries; };

static struct queue events, room, tokens;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
/* An event is sent whole, whichever thread has it. */
static pthread_mutex_t sending[NODES_MAX];

static void make(struct queue *queue, size_t places) {
    *queue = (struct queue){.places = places, .entries = malloc(places * sizeof *queue->entries)};
    need(queue->entries != NULL, "queue");
}

static void push(struct queue *queue, intptr_t entry) {
    queue->entries[(queue->first + queue->count++) % queue->places] = entry;
}

static intptr_t pop(struct queue *queue) {
    intptr_t entry = queue->entries[queue->first];
    queue->first = (queue->first + 1) % queue->places, queue->count--;
    return entry;
}

static void generator_or_node(int number, int port) {
    if (number < options.nodes)
        node_with_tokens(number, port);
    int fd = tcp_connect(number, port);
    for (;;)
        send_next(fd);
}

static void hand_over(char *event, int number) {
    pthread_mutex_lock(&sending[number]);
    send_all(nodes[number].fd, event, HEADER + options.size);
    pthread_mutex_unlock(&sending[number]);
    pthread_mutex_lock(&lock);
    push(&room, (intptr_t)event);
    pthread_cond_signal(&freed);
    pthread_mutex_unlock(&lock);
}

static void *take_events(void *nothing) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!room.count)
            pthread_cond_wait(&freed, &lock);
        char *event = (char *)pop(&room);
        pthread_mutex_unlock(&lock);
        receive(nodes[options.nodes].fd, event, HEADER + options.size);
        pthread_mutex_lock(&lock);
        int number = tokens.count ? (int)pop(&tokens) : -1;
        if (number < 0)
            push(&events, (intptr_t)event), no_token++;
        pthread_mutex_unlock(&lock);
        if (number >= 0)
            hand_over(event, number);
    }
    return nothing;
}

static void *take_tokens(void *nothing) {
    struct pollfd ready[NODES_MAX];
    char *data = malloc(options.token_data);
    for (int number = 0; number < options.nodes; number++)
        ready[number] = (struct pollfd){nodes[number].fd, POLLIN, 0};
    for (;;) {
        need(poll(ready, options.nodes, -1) > 0 || errno == EINTR, "poll");
        for (int number = 0; number < options.nodes; number++) {
            if (!ready[number].revents)
                continue;
            if (receive_token(nodes[number].fd, data))
                count_event(&nodes[number]);
            pthread_mutex_lock(&lock);
            char *event = events.count ? (char *)pop(&events) : NULL;
            if (!event)
                push(&tokens, number);
            pthread_mutex_unlock(&lock);
            if (event)
                hand_over(event, number);
        }
    }
    return nothing;
}

static void controller_1(void) {
    tcp_accept(options.nodes + 1);
    size_t stride = (HEADER + options.size + 63) / 64 * 64;
    char *buffers = malloc(options.pool * stride);
    need(buffers != NULL, "buffers");
    make(&events, options.pool), make(&room, options.pool), make(&tokens, (size_t)options.nodes * options.credits);
    for (int at = 0; at < options.pool; at++)
        push(&room, (intptr_t)(buffers + at * stride));
    for (int number = 0; number < options.nodes; number++)
        pthread_mutex_init(&sending[number], NULL);
    start(take_events, NULL);
    start(take_tokens, NULL);
}

const struct version study[] = {
    {"v1", tcp_listen, controller_1, generator_or_node, 1},
    {"v2", tcp_listen, controller_2, node_with_tokens, 0},
    {"v3", tcp_listen, controller_3, node_without_tokens, 0},
    {0},
};
