/* An IPbus 2.0 board as a host sees one: a memory of 4 MiB, 16 reply buffers, and one system call a datagram each way.
 *
 * It follows the protocol's rule for lost packets (IPbus 2.0, section 5): a control packet with a number is carried out
 * only if the number is the next one; a resend request brings a kept reply; a status request the 16 words of status.
 */
#include "floor.h"

enum { BUFFERS = 16, WORDS = 368, MTU = 4 * WORDS, MEMORY = 1 << 20 };
enum { READ, WRITE, READ_FIFO, WRITE_FIFO, RMW_BITS, RMW_SUM };
enum { CONTROL, STATUS, RESEND };

static uint32_t memory[MEMORY];
static struct { uint32_t header, words[2 * WORDS]; size_t count; } kept[BUFFERS];
static uint32_t next_id = 1;

static uint32_t *at(uint32_t address) { return &memory[address % MEMORY]; }

/* Carries out the transactions of a packet in the host's byte order; returns the words of the reply. */
static size_t carry_out(const uint32_t *request, size_t count, uint32_t *reply) {
    size_t from = 1, to = 1;
    reply[0] = request[0];
    while (from + 1 < count && to < 2 * WORDS) {
        uint32_t header = request[from++], words = header >> 8 & 0xFF, type = header >> 4 & 0xF, address = request[from++];
        reply[to++] = header & ~0xFu;
        for (uint32_t index = 0; index < words && (type == READ || type == READ_FIFO); index++)
            reply[to++] = *at(type == READ ? address + index : address);
        for (uint32_t index = 0; index < words && (type == WRITE || type == WRITE_FIFO); index++)
            *at(type == WRITE ? address + index : address) = request[from++];
        if (type == RMW_BITS || type == RMW_SUM) {
            uint32_t before = *at(address);
            *at(address) = type == RMW_SUM ? before + request[from] : (before & request[from]) | request[from + 1];
            from += type == RMW_SUM ? 1 : 2;
            reply[to++] = before;
        }
    }
    return to;
}

static size_t status(uint32_t *reply) {
    memset(reply, 0, 64);
    reply[0] = 0x200000F1, reply[1] = MTU, reply[2] = BUFFERS, reply[3] = 0x200000F0 | next_id << 8;
    return 16;
}

/* The words to be sent back, in `reply`; none for a packet that a board ignores. */
static size_t answer(const uint32_t *request, size_t count, uint32_t *reply) {
    uint32_t type = request[0] & 0xF, id = request[0] >> 8 & 0xFFFF;
    if (type == STATUS)
        return status(reply);
    if (type == CONTROL && id == 0)
        return carry_out(request, count, reply);
    uint32_t slot = id % BUFFERS;
    if (type == CONTROL) {
        if (id != next_id)
            return 0;
        next_id = id == 0xFFFF ? 1 : id + 1;
        kept[slot].header = id;
        kept[slot].count = carry_out(request, count, kept[slot].words);
    } else if (type != RESEND || kept[slot].header != id) {
        return 0;
    }
    memcpy(reply, kept[slot].words, 4 * kept[slot].count);
    return kept[slot].count;
}

void board(int port) {
    static uint32_t request[16384], reply[16384];
    struct sockaddr_in here = place(port), from;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    need(bind(fd, (void *)&here, sizeof here) == 0, "bind");
    for (;;) {
        socklen_t length = sizeof from;
        ssize_t came = recvfrom(fd, request, sizeof request, flags, (void *)&from, &length);
        if (came < 4 || came > MTU || came % 4)
            continue;
        size_t count = came / 4;
        int swapped = (request[0] >> 4 & 0xF) != 0xF || request[0] >> 28 != 2;
        for (size_t index = 0; swapped && index < count; index++)
            request[index] = ntohl(request[index]);
        count = answer(request, count, reply);
        for (size_t index = 0; swapped && index < count; index++)
            reply[index] = htonl(reply[index]);
        if (count)
            need(sendto(fd, reply, 4 * count, 0, (void *)&from, length) == (ssize_t)(4 * count), "sendto");
    }
}
