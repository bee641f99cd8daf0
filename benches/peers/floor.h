/* What the parts of floor share. */
#pragma once
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdint.h>

extern int flags; /* MSG_DONTWAIT where we spin */

void need(int ok, const char *what);
struct sockaddr_in place(int port);

/* Answers as an IPbus board at a UDP port, until it is killed. */
void board(int port);
