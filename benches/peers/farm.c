/* The farms that ours is measured against: one controller, nodes in processes of their own, events out and tokens back.
 *
 *   farm v1      a generator's process sends events over TCP; a queue and a mutex between the thread that takes
 *                events and the one that takes tokens (farm_study.c)
 *   farm v2      the generator inside; a thread per node that blocks in receive and send; a token is answered at once
 *   farm v3      the same without tokens: the ceiling
 *   farm shards  no version of the study: epoll, `--shards` threads that share nothing (farm_shards.c)
 *   farm zeromq  ROUTER and DEALER, least recently used first, without a copy (farm_zeromq.c)
 *   farm node --to HOST:PORT --number N    one node, for a controller that was told to --listen
 *
 *   --nodes 20 --credits 2 --size 32768 --pool 256      events that a node may have; payload; different events
 *   --token-data 65536 --every 200                      what one of so many tokens carries
 *   --seconds 2 --warmup 0.5 --congestion cubic --buffer BYTES (each way, of each socket)
 *   --cpus 0,1                                          node n, and its thread or shard, on the n-th of these
 *   --listen HOST:PORT                                  v2: the nodes are started elsewhere, with these options
 *   --shards 2 --batch 1 --room N --ahead N             shards: events answered together, and received at once (as
 *                                                       many, unless told); a node so many before the
 *                                                       last waits until nothing else is ready
 *   --low-water --sched-batch                           shards: wake a node for whole events only; no wake-up takes
 *                                                       the processor away
 *   --threads 1                                         zeromq: its own threads
 *
 * An event is a header of 12 bytes and the payload; a token 28 bytes and its data. Prints one line of JSON.
 */
#include "farm.h"
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

enum { WINDOW_S = 10, WINDOWS_MAX = 10000 };

struct options options = {.nodes = 20, .credits = 2, .pool = 256, .every = 200, .shards = 2, .batch = 1, .threads = 1,
    .size = 32768, .token_data = 65536, .seconds = 2, .warmup = 0.5};
struct node nodes[NODES_MAX];
_Atomic uint64_t no_token;

static int listener = -1, is_node;
static char *pool;
static _Atomic uint64_t last_event;

/* Small things that every version uses */

/* The calling thread, on the processor of this node or shard, where processors were given. */
void run_on_its_cpu(int number) {
    if (options.sched_batch)
        need(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}) == 0, "SCHED_BATCH");
    if (!options.cpu_count)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(options.cpus[number % options.cpu_count], &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

void start(void *(*thread)(void *), void *argument) {
    pthread_t made;
    errno = pthread_create(&made, NULL, thread, argument);
    need(errno == 0, "pthread_create");
}

/* The controller ends first: then its nodes end as well, and say nothing. */
static void lost(const char *what) {
    if (is_node)
        exit(0);
    fprintf(stderr, "%s: the other side has ended\n", what);
    exit(1);
}

void receive(int fd, void *bytes, size_t count) {
    for (size_t have = 0; have < count;) {
        ssize_t came = recv(fd, (char *)bytes + have, count - have, MSG_WAITALL);
        if (came == 0 || (came < 0 && errno == ECONNRESET))
            lost("recv");
        need(came > 0 || errno == EINTR, "recv");
        have += came > 0 ? came : 0;
    }
}

void send_all(int fd, const void *bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        ssize_t sent = send(fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL);
        if (sent < 0 && (errno == ECONNRESET || errno == EPIPE))
            lost("send");
        need(sent > 0 || errno == EINTR, "send");
        done += sent > 0 ? sent : 0;
    }
}

/* A payload, with room for a header before it. */
char *event_of(uint64_t number) { return pool + number % options.pool * (options.size + 64) + 64; }

uint64_t next_event(void) { return atomic_fetch_add_explicit(&last_event, 1, memory_order_relaxed) + 1; }

/* Bytes that a node's token carries; the nodes take turns. */
uint32_t token_data_after(uint64_t count, int number) {
    uint64_t from = (uint64_t)number * options.every / options.nodes;
    return options.every && (count + from) % options.every == 0 ? options.token_data : 0;
}

static void make_pool(void) {
    size_t bytes = options.pool * (options.size + 64);
    need((pool = aligned_alloc(64, (bytes + 63) / 64 * 64)) != NULL, "pool");
    for (size_t at = 0; at < bytes; at++)
        pool[at] = at * 2654435761u >> 24;
}

/* Connections */

static void set_up(int fd) {
    without_delay(fd);
    const char *congestion = options.congestion;
    if (congestion)
        need(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion)) == 0, "TCP_CONGESTION");
    if (options.buffer) {
        need(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &options.buffer, sizeof(int)) == 0, "SO_SNDBUF");
        need(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &options.buffer, sizeof(int)) == 0, "SO_RCVBUF");
    }
}

static struct sockaddr_in place_of(const char *text) {
    struct sockaddr_in at = place(0);
    char host[64] = "127.0.0.1";
    int port = 0;
    need(!text || sscanf(text, "%63[0-9.]:%d", host, &port) == 2, "HOST:PORT");
    at.sin_port = htons(port);
    need(inet_pton(AF_INET, host, &at.sin_addr) == 1, "address");
    return at;
}

int tcp_listen(void) {
    struct sockaddr_in at = place_of(options.listen);
    socklen_t length = sizeof at;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    need(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0, "SO_REUSEADDR");
    set_up(listener);
    need(bind(listener, (void *)&at, sizeof at) == 0 && listen(listener, NODES_MAX) == 0, "listen");
    need(getsockname(listener, (void *)&at, &length) == 0, "getsockname");
    if (options.listen)
        fprintf(stderr, "listening on %s:%d\n", inet_ntoa(at.sin_addr), ntohs(at.sin_port));
    return ntohs(at.sin_port);
}

/* So many nodes, and perhaps the generator: each says its number first. */
void tcp_accept(int count) {
    for (int left = count; left > 0; left--) {
        uint32_t number;
        int fd = accept(listener, NULL, NULL);
        need(fd >= 0, "accept");
        set_up(fd);
        receive(fd, &number, sizeof number);
        need(number < (uint32_t)count, "a node's number");
        nodes[number].fd = fd;
    }
}

int tcp_connect(int number, int port) {
    struct sockaddr_in at = place_of(options.to);
    if (port)
        at.sin_port = htons(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    set_up(fd);
    need(connect(fd, (void *)&at, sizeof at) == 0, "connect");
    send_all(fd, &(uint32_t){number}, sizeof(uint32_t));
    return fd;
}

/* Processes */

extern const struct version study[];

static const struct version *version_of(const char *name) {
    for (const struct version *one = study; one->name; one++)
        if (strcmp(one->name, name) == 0)
            return one;
    return strcmp(name, "shards") == 0 ? &shards : strcmp(name, "zeromq") == 0 ? &zeromq : NULL;
}

/* Started before there is a thread; each waits for the port. */
static int start_nodes(const struct version *version) {
    int gate[2];
    need(pipe(gate) == 0, "pipe");
    pid_t parent = getpid();
    for (int number = options.listen ? options.nodes : 0; number < options.nodes + version->has_generator; number++) {
        pid_t child = fork();
        need(child >= 0, "fork");
        nodes[number].pid = child;
        if (child > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            exit(0);
        int port;
        is_node = 1;
        need(read(gate[0], &port, sizeof port) == sizeof port, "the port");
        close(gate[0]), close(gate[1]);
        run_on_its_cpu(number);
        version->node(number, port);
        exit(0);
    }
    return gate[1];
}

/* Measuring */

static double cpu_s(pid_t pid) {
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    struct timespec used;
    if (pid)
        need(clock_getcpuclockid(pid, &clock) == 0, "clock_getcpuclockid");
    need(clock_gettime(clock, &used) == 0, "clock_gettime");
    return used.tv_sec + used.tv_nsec * 1e-9;
}

struct reading { double at, controller, nodes, generator; uint64_t events[NODES_MAX]; };

static void read_all(struct reading *now) {
    memset(now, 0, sizeof *now);
    now->at = now_s();
    for (int number = 0; number < options.nodes; number++) {
        now->events[number] = atomic_load_explicit(&nodes[number].events, memory_order_relaxed);
        now->nodes += nodes[number].pid ? cpu_s(nodes[number].pid) : 0;
    }
    now->controller = cpu_s(0);
    now->generator = nodes[options.nodes].pid ? cpu_s(nodes[options.nodes].pid) : 0;
}

static void sleep_until(double at) {
    for (double left; (left = at - now_s()) > 0;)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (time_t)left) * 1e9)}, NULL);
}

static void print_counts(const struct reading *from, const struct reading *to) {
    for (int number = 0; number < options.nodes; number++)
        printf("%s%lu", number ? ", " : "[", (unsigned long)(to->events[number] - from->events[number]));
    printf("]");
}

static void print(const struct reading *readings, int last) {
    const struct reading *from = &readings[0], *to = &readings[last];
    uint64_t events = 0;
    for (int number = 0; number < options.nodes; number++)
        events += to->events[number] - from->events[number];
    double seconds = to->at - from->at, us = events ? 1e6 / events : 0;
    printf("{\"mode\": \"%s\", \"nodes\": %d, \"credits\": %d, ", options.mode, options.nodes, options.credits);
    printf("\"size\": %zu, \"pool\": %d, \"events\": %lu, ", options.size, options.pool, (unsigned long)events);
    printf("\"seconds\": %.3f, \"events_per_s\": %.1f, ", seconds, events / seconds);
    printf("\"gbit_per_s\": %.4f, ", events / seconds * options.size * 8e-9);
    printf("\"controller_us\": %.3f, ", (to->controller - from->controller) * us);
    printf("\"nodes_us\": %.3f, ", (to->nodes - from->nodes) * us);
    printf("\"generator_us\": %.3f, ", (to->generator - from->generator) * us);
    printf("\"no_token\": %lu, ", (unsigned long)no_token);
    printf("\"node_events\": "), print_counts(from, to), printf(", \"windows\": [");
    for (int window = 0; window < last; window++)
        printf("%s", window ? ", " : ""), print_counts(&readings[window], &readings[window + 1]);
    printf("]}\n");
}

static void measure(void) {
    int windows = options.seconds <= WINDOW_S ? 1 : (int)(options.seconds / WINDOW_S + 0.5);
    double each = options.seconds / windows;
    struct reading *readings = calloc(windows + 1, sizeof *readings);
    need(readings != NULL && windows <= WINDOWS_MAX, "--seconds");
    double begin = now_s() + options.warmup;
    for (int window = 0; window <= windows; window++) {
        sleep_until(begin + window * each);
        read_all(&readings[window]);
    }
    print(readings, windows);
}

/* Options */

static void usage(void) {
    fputs("usage: see the head of farm.c\n", stderr);
    exit(2);
}

static void read_cpus(char *text) {
    for (char *word = strtok(text, ","); word && options.cpu_count < CPUS_MAX; word = strtok(NULL, ","))
        options.cpus[options.cpu_count++] = atoi(word);
}

/* A word after each but the flags. */
enum kind { FLAG, INTEGER, BYTES, SECONDS, TEXT, LIST };

static const struct { const char *name; enum kind kind; void *at; } known[] = {
    {"nodes", INTEGER, &options.nodes}, {"credits", INTEGER, &options.credits}, {"size", BYTES, &options.size},
    {"pool", INTEGER, &options.pool}, {"token-data", BYTES, &options.token_data}, {"every", INTEGER, &options.every},
    {"seconds", SECONDS, &options.seconds}, {"warmup", SECONDS, &options.warmup},
    {"congestion", TEXT, &options.congestion}, {"buffer", INTEGER, &options.buffer}, {"cpus", LIST, NULL},
    {"listen", TEXT, &options.listen}, {"to", TEXT, &options.to}, {"number", INTEGER, &options.number},
    {"shards", INTEGER, &options.shards}, {"ahead", INTEGER, &options.ahead}, {"batch", INTEGER, &options.batch},
    {"room", INTEGER, &options.room}, {"threads", INTEGER, &options.threads},
    {"low-water", FLAG, &options.low_water}, {"sched-batch", FLAG, &options.sched_batch},
};
enum { KNOWN = sizeof known / sizeof *known };

static void read_options(int count, char **words) {
    struct option table[KNOWN + 1] = {{0}};
    for (int at = 0; at < KNOWN; at++)
        table[at] = (struct option){known[at].name, known[at].kind != FLAG, NULL, at};
    if (count < 2)
        usage();
    options.mode = words[1];
    for (int found; (found = getopt_long(count - 1, words + 1, "", table, NULL)) != -1;) {
        if (found == '?')
            usage();
        switch (known[found].kind) {
        case FLAG: *(int *)known[found].at = 1; break;
        case INTEGER: *(int *)known[found].at = atoi(optarg); break;
        case BYTES: *(size_t *)known[found].at = strtoul(optarg, NULL, 10); break;
        case SECONDS: *(double *)known[found].at = atof(optarg); break;
        case TEXT: *(const char **)known[found].at = optarg; break;
        case LIST: read_cpus(optarg); break;
        }
    }
    int farm = options.nodes > 0 && options.nodes < NODES_MAX && options.credits > 0;
    int shards = options.shards > 0 && options.batch > 0 && options.batch <= BATCH_MAX && options.room >= 0;
    if (!farm || !shards || !options.size || options.pool < 1 || options.seconds <= 0)
        usage();
}

int main(int count, char **words) {
    read_options(count, words);
    make_pool();
    if (strcmp(options.mode, "node") == 0) {
        if (!options.to)
            usage();
        is_node = 1;
        run_on_its_cpu(options.number);
        version_of("v2")->node(options.number, 0);
    }
    const struct version *version = version_of(options.mode);
    if (!version || (options.listen && strcmp(options.mode, "v2") != 0))
        usage();
    int gate = start_nodes(version), port = version->listen_at();
    for (int number = 0; number < options.nodes + version->has_generator; number++)
        need(write(gate, &port, sizeof port) == sizeof port, "gate");
    version->controller();
    measure();
    fflush(stdout);
    /* The threads are in the middle of things; the nodes end with this process. */
    _exit(0);
}
