/* What the parts of floor share. */
#pragma once
#include "common.h"

extern int flags; /* MSG_DONTWAIT where we spin */

/* Answers as an IPbus board at a UDP port, until it is killed. */
void board(int port);

/* Passes the packets of an IPbus hub's clients on to one board, until it is killed. */
void forward(int port, int board_port, const char *how);

/* A hub's client with 60 full packets in flight, and so many clients that read a word at a time. */
void blocks(int port, int board_port, int reads, double seconds);
void crowd(int port, int board_port, int count, double seconds);
