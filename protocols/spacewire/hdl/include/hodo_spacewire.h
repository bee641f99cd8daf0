/* A SpaceWire link end for simulators of hardware, clocked to the bit: one call a clock step.
 *
 * Link with libhodo_spacewire_hdl.a. VHDL reaches the functions through VHPIDIRECT, SystemVerilog through DPI-C: see example/.
 * Every function may be called from any thread. An end that is not open is harmless: the call does nothing and returns
 * HODO_SPW_NO_END, or both levels low from hodo_spw_step.
 */
#ifndef HODO_SPACEWIRE_H
#define HODO_SPACEWIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No end is open under this number. */
#define HODO_SPW_NO_END (-2)
/* Nothing waits, or an argument is out of range. */
#define HODO_SPW_NONE (-1)

/* N-chars: 0 to 255 are data. */
#define HODO_SPW_EOP 256
#define HODO_SPW_EEP 257

/* Levels of the lines, as hodo_spw_step returns them. */
#define HODO_SPW_DATA 1
#define HODO_SPW_STROBE 2

/* Editions of ECSS-E-ST-50-12C. */
#define HODO_SPW_2008 0
#define HODO_SPW_REV1 1

/* States. */
#define HODO_SPW_ERROR_RESET 0
#define HODO_SPW_ERROR_WAIT 1
#define HODO_SPW_READY 2
#define HODO_SPW_STARTED 3
#define HODO_SPW_CONNECTING 4
#define HODO_SPW_RUN 5

/* Causes of a link going down. */
#define HODO_SPW_ERROR_DISCONNECT 1
#define HODO_SPW_ERROR_PARITY 2
#define HODO_SPW_ERROR_ESCAPE 3
#define HODO_SPW_ERROR_CREDIT 4
#define HODO_SPW_ERROR_SEQUENCE 5
#define HODO_SPW_ERROR_TIMEOUT 6
#define HODO_SPW_ERROR_DISABLED 7

/* Mistakes on request: a wrong parity bit; ESC, ESC; an FCT for which there is no room; an N-char once the credit is used up;
 * silence until the link has gone down. */
#define HODO_SPW_FAULT_PARITY 0
#define HODO_SPW_FAULT_ESCAPE 1
#define HODO_SPW_FAULT_FCT 2
#define HODO_SPW_FAULT_WITHOUT_CREDIT 3
#define HODO_SPW_FAULT_DISCONNECT 4

/* Counts. The errors are those in Run. */
#define HODO_SPW_SENT_NULLS 0
#define HODO_SPW_SENT_FCTS 1
#define HODO_SPW_SENT_DATA 2
#define HODO_SPW_SENT_EOPS 3
#define HODO_SPW_SENT_EEPS 4
#define HODO_SPW_SENT_TIME_CODES 5
#define HODO_SPW_RECEIVED_NULLS 6
#define HODO_SPW_RECEIVED_FCTS 7
#define HODO_SPW_RECEIVED_DATA 8
#define HODO_SPW_RECEIVED_EOPS 9
#define HODO_SPW_RECEIVED_EEPS 10
#define HODO_SPW_RECEIVED_TIME_CODES 11
#define HODO_SPW_DISCONNECTS 12
#define HODO_SPW_PARITY_ERRORS 13
#define HODO_SPW_ESCAPE_ERRORS 14
#define HODO_SPW_CREDIT_ERRORS 15
#define HODO_SPW_SEQUENCE_ERRORS 16
#define HODO_SPW_STARTS 17
/* N-chars to send that were discarded, and EEPs appended to what was being received, after the link went down. */
#define HODO_SPW_DISCARDED 18
#define HODO_SPW_APPENDED_EEPS 19
#define HODO_SPW_COUNTS 20

/* Opens an end in ErrorReset that starts by itself. step_ps: the clock's period in picoseconds. divider: steps for each bit in Run;
 * until Run the rate is 10 Mbit/s. buffer: N-chars that the receive buffer holds, 8 to 65535.
 * Returns a number over 0, or HODO_SPW_NONE. */
int32_t hodo_spw_open(int32_t step_ps, int32_t divider, int32_t edition, int32_t buffer);

/* Closes an end. Returns 1. */
int32_t hodo_spw_close(int32_t end);

/* Moves on by one clock step: takes the levels that arrive (0 is low, anything else high), returns those that leave. */
int32_t hodo_spw_step(int32_t end, int32_t data, int32_t strobe);

/* Queues an N-char to send. Returns 1, or 0 if there is no room now. */
int32_t hodo_spw_push(int32_t end, int32_t nchar);

/* Queues a packet and its EOP. Returns 1, or 0, with nothing queued, if there is no room for all of it now. */
int32_t hodo_spw_push_packet(int32_t end, const uint8_t *packet, size_t size);

/* Returns how many N-chars wait to be sent. */
int32_t hodo_spw_to_send(int32_t end);

/* Returns the next N-char that was received, or HODO_SPW_NONE. */
int32_t hodo_spw_pop(int32_t end);

/* Sends a time-code, 0 to 255, at the next boundary. One that still waits is replaced. Returns 1. */
int32_t hodo_spw_send_time_code(int32_t end, int32_t code);

/* Returns the next time-code that was received, or HODO_SPW_NONE. */
int32_t hodo_spw_pop_time_code(int32_t end);

/* Returns the state. */
int32_t hodo_spw_state(int32_t end);

/* Returns the N-chars that may be sent now. */
int32_t hodo_spw_credit(int32_t end);

/* Returns the cause of the next failure that was not asked for yet, or HODO_SPW_NONE. */
int32_t hodo_spw_pop_failure(int32_t end);

/* Enables or disables the link: disabled goes before link_start, which starts by itself, and auto_start, which waits for the far
 * end's NULL. 0 is no, anything else yes. Returns 1. */
int32_t hodo_spw_configure(int32_t end, int32_t disabled, int32_t link_start, int32_t auto_start);

/* Changes the steps for each bit in Run. Returns 1. */
int32_t hodo_spw_set_divider(int32_t end, int32_t divider);

/* Makes a mistake at the next boundary in Run. Returns 1. */
int32_t hodo_spw_inject(int32_t end, int32_t fault);

/* Sends a byte without an end whenever there is nothing else; a negative one stops that. Returns 1. */
int32_t hodo_spw_babble(int32_t end, int32_t byte);

/* Returns a count, or 2147483647 if it is larger. */
int32_t hodo_spw_count(int32_t end, int32_t which);

/* Writes the first n counts. Returns how many it wrote. */
int32_t hodo_spw_counts(int32_t end, uint64_t *counts, int32_t n);

#ifdef __cplusplus
}
#endif

#endif
