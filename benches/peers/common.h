/* What the programs in C share. */
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Ends the program with the system's reason where something is not as it must be. */
static inline void need(int ok, const char *what) {
    if (ok)
        return;
    perror(what);
    exit(1);
}

static inline double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/* The calling thread, on these processors: 0, or 0,1. */
static inline void run_on(const char *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (; cpu; cpu = strchr(cpu, ',') ? strchr(cpu, ',') + 1 : NULL)
        CPU_SET(atoi(cpu), &set);
    need(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

/* A port of 127.0.0.1. */
static inline struct sockaddr_in place(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static inline void without_delay(int fd) {
    need(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0, "TCP_NODELAY");
}

/* A listener at a port of 127.0.0.1 that the system chooses, and where it is. */
static inline int listen_anywhere(int backlog, struct sockaddr_in *at) {
    socklen_t length = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *at = place(0);
    need(bind(fd, (void *)at, sizeof *at) == 0 && listen(fd, backlog) == 0, "listen");
    need(getsockname(fd, (void *)at, &length) == 0, "getsockname");
    return fd;
}

/* A connection to it. */
static inline int join(struct sockaddr_in at) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    need(connect(fd, (void *)&at, sizeof at) == 0, "connect");
    without_delay(fd);
    return fd;
}
