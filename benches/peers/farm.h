/* What the peers of the event farm have in common: see farm.c. */
#pragma once
#include "common.h"
#include <stdatomic.h>

enum { HEADER = 12, TOKEN = 28, NODES_MAX = 1024, CPUS_MAX = 64, BATCH_MAX = 64 };

struct options {
    const char *mode, *congestion, *listen, *to;
    int nodes, credits, pool, every, shards, batch, room, ahead, buffer, threads, number;
    int low_water, sched_batch;
    size_t size, token_data;
    double seconds, warmup;
    int cpus[CPUS_MAX], cpu_count;
};

/* Event: this, then the payload. */
struct __attribute__((packed)) header { uint32_t length; uint64_t event; };
/* Token: this, then so many bytes of data. Event 0 is none: the token only gives a credit. */
struct __attribute__((packed)) token { uint32_t length, node; uint64_t event; uint8_t rest[12]; };

/* A node as the controller sees it; the generator of version 1 is the one after the last. */
struct node { _Alignas(64) int fd; pid_t pid; _Atomic uint64_t events; };

extern struct options options;
extern struct node nodes[NODES_MAX];
extern _Atomic uint64_t no_token;

/* A version of the farm: its two sides, and where the nodes find the controller. */
struct version {
    const char *name;
    int (*listen_at)(void);     /* answers the port */
    void (*controller)(void);   /* accepts the nodes and starts its threads */
    void (*node)(int number, int port);
    int has_generator;
};

extern const struct version zeromq;
extern const struct version shards;

void run_on_its_cpu(int number);
void start(void *(*thread)(void *), void *argument);
int tcp_listen(void);
void tcp_accept(int count);
int tcp_connect(int number, int port);
void receive(int fd, void *bytes, size_t count);
void send_all(int fd, const void *bytes, size_t count);
char *event_of(uint64_t number);
uint64_t next_event(void);
uint32_t token_data_after(uint64_t count, int number);

static inline void count_event(struct node *node) { atomic_fetch_add_explicit(&node->events, 1, memory_order_relaxed); }
