/* A farm of ZeroMQ: the least recently used node first, as its guide has it. See farm.c.
 *
 * The token of a node asks for the next event, so the queue of messages at the ROUTER is the queue of tokens. An event
 * is one message that points into the pool: no copy before the system call.
 */
#include "farm.h"
#include <zmq.h>

static void *router;

static void kept(void *bytes, void *hint) { (void)bytes, (void)hint; }

static int listen_at(void) {
    void *context = zmq_ctx_new();
    char endpoint[64];
    size_t length = sizeof endpoint;
    int port = 0;
    need(zmq_ctx_set(context, ZMQ_IO_THREADS, options.threads) == 0, "ZMQ_IO_THREADS");
    need((router = zmq_socket(context, ZMQ_ROUTER)) != NULL, "zmq_socket");
    need(zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &(int){1}, sizeof(int)) == 0, "ZMQ_ROUTER_MANDATORY");
    if (options.buffer) {
        zmq_setsockopt(router, ZMQ_SNDBUF, &options.buffer, sizeof(int));
        zmq_setsockopt(router, ZMQ_RCVBUF, &options.buffer, sizeof(int));
    }
    need(zmq_bind(router, "tcp://127.0.0.1:*") == 0, "zmq_bind");
    need(zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0, "ZMQ_LAST_ENDPOINT");
    need(sscanf(endpoint, "tcp://127.0.0.1:%d", &port) == 1, "endpoint");
    return port;
}

static void *route(void *nothing) {
    for (;;) {
        zmq_msg_t identity, message;
        zmq_msg_init(&identity), zmq_msg_init(&message);
        need(zmq_msg_recv(&identity, router, 0) >= 0, "zmq_msg_recv");
        need(zmq_msg_recv(&message, router, 0) >= TOKEN, "zmq_msg_recv");
        struct token token;
        memcpy(&token, zmq_msg_data(&message), TOKEN);
        zmq_msg_close(&message);
        if (token.event)
            count_event(&nodes[token.node]);
        /* With a pool smaller than what is in flight a number may be overwritten before it has left. */
        uint64_t number = next_event();
        char *event = event_of(number) - HEADER;
        memcpy(event, &(struct header){options.size, number}, HEADER);
        need(zmq_msg_init_data(&message, event, HEADER + options.size, kept, NULL) == 0, "zmq_msg_init_data");
        need(zmq_msg_send(&identity, router, ZMQ_SNDMORE) >= 0 && zmq_msg_send(&message, router, 0) >= 0, "zmq_msg_send");
    }
    return nothing;
}

static void controller(void) { start(route, NULL); }

static void node(int number, int port) {
    void *context = zmq_ctx_new(), *dealer = zmq_socket(context, ZMQ_DEALER);
    char endpoint[64], *answer = calloc(1, TOKEN + options.token_data);
    struct token *token = (void *)answer;
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", port);
    if (options.buffer) {
        zmq_setsockopt(dealer, ZMQ_SNDBUF, &options.buffer, sizeof(int));
        zmq_setsockopt(dealer, ZMQ_RCVBUF, &options.buffer, sizeof(int));
    }
    need(zmq_connect(dealer, endpoint) == 0, "zmq_connect");
    token->node = number;
    for (int credit = 0; credit < options.credits; credit++)
        need(zmq_send(dealer, token, TOKEN, 0) == TOKEN, "zmq_send");
    zmq_msg_t event;
    for (uint64_t count = 1;; count++) {
        zmq_msg_init(&event);
        need(zmq_msg_recv(&event, dealer, 0) == (int)(HEADER + options.size), "zmq_msg_recv");
        memcpy(&token->event, (char *)zmq_msg_data(&event) + 4, 8);
        zmq_msg_close(&event);
        token->length = token_data_after(count, number);
        need(zmq_send(dealer, answer, TOKEN + token->length, 0) >= TOKEN, "zmq_send");
    }
}

const struct version zeromq = {"zeromq", listen_at, controller, node, 0};
