/* A libibverbs whose devices are in this file: `old0` of a driver from before the extended calls, and `new0` with memory that
 * is paged in on demand, device memory and timestamps, which the kernel's software device has not. Messages between two queue
 * pairs are carried out when they are posted. Whatever an application does wrong ends the program; each call that a test may
 * want to see is a line of the file LOG. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#undef ibv_query_port
#undef ibv_reg_mr

enum { MANY = 64, DEPTH = 4096, DM_SIZE = 65536 };

struct queue {
    struct ibv_cq_ex ex;
    struct ibv_wc wc[DEPTH];
    unsigned head, tail, events, acknowledged;
    int is_armed, is_polling, pairs;
};

struct pair {
    struct ibv_qp qp;
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    struct { uint64_t id; struct ibv_sge sge[4]; int count; } receives[DEPTH];
    unsigned head, tail;
};

struct events { struct ibv_comp_channel channel; int to; };
struct memory { struct ibv_dm dm; char bytes[DM_SIZE]; size_t length; };
struct region { struct ibv_mr mr; unsigned access; struct memory *dm; };

static struct ibv_device devices[2] = { { .name = "old0" }, { .name = "new0" } };
static struct pair *pairs[MANY];
static struct region *regions[MANY];
static int domains, queues, contexts, async_pipe[2];

#define LOGGED(...) do { FILE *log = fopen(LOG, "a"); fprintf(log, __VA_ARGS__); fclose(log); } while (0)

int ibv_fork_init(void) { return 0; }

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = calloc(3, sizeof *list);
    list[0] = &devices[0];
    list[1] = &devices[1];
    *count = 2;
    return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }
const char *ibv_event_type_str(enum ibv_event_type event) { return event == IBV_EVENT_CQ_ERR ? "CQ error" : "port active"; }

/* Memory that an entry names, or null if no region has it. */
static void *reach(uint32_t key, uint64_t address, uint64_t length, unsigned right)
{
    for (int i = 0; i < MANY; i++) {
        struct region *region = regions[i];
        if (!region || region->mr.lkey != key || (region->access & right) != right)
            continue;
        uint64_t first = region->dm ? 0 : (uintptr_t)region->mr.addr;
        if (address < first || address - first + length > region->mr.length)
            return NULL;
        return region->dm ? region->dm->bytes + address : (void *)(uintptr_t)address;
    }
    return NULL;
}

static void complete(struct queue *queue, struct ibv_wc wc)
{
    assert(queue->tail - queue->head < (unsigned)queue->ex.cqe && "the completion queue overflows");
    queue->wc[queue->tail++ % DEPTH] = wc;
    if (queue->is_armed) {
        void *pointer = queue;
        queue->is_armed = 0;
        assert(write(((struct events *)queue->ex.channel)->to, &pointer, sizeof pointer) == sizeof pointer);
    }
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct pair *pair = (struct pair *)qp;
    (void)bad;
    if (pair->tail - pair->head == pair->cap.max_recv_wr)
        return ENOMEM;
    assert(!wr->next && wr->num_sge <= (int)pair->cap.max_recv_sge && wr->num_sge <= 4);
    pair->receives[pair->tail % DEPTH].id = wr->wr_id;
    pair->receives[pair->tail % DEPTH].count = wr->num_sge;
    memcpy(pair->receives[pair->tail++ % DEPTH].sge, wr->sg_list, wr->num_sge * sizeof *wr->sg_list);
    return 0;
}

/* Gathers the payload of a request. Returns its length, or -1. */
static long gather(struct ibv_send_wr *wr, char *to)
{
    long length = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        struct ibv_sge *sge = &wr->sg_list[i];
        int is_inline = wr->send_flags & IBV_SEND_INLINE;
        void *from = is_inline ? (void *)(uintptr_t)sge->addr : reach(sge->lkey, sge->addr, sge->length, 0);
        if (!from)
            return -1;
        memcpy(to + length, from, sge->length);
        length += sge->length;
    }
    return length;
}

static enum ibv_wc_status deliver(struct pair *far, struct ibv_send_wr *wr, char *bytes, long length)
{
    struct ibv_wc wc = { .qp_num = far->qp.qp_num, .opcode = IBV_WC_RECV, .byte_len = length };
    assert(far->head != far->tail && "no receive is posted");
    wc.wr_id = far->receives[far->head % DEPTH].id;
    if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
        wc.wc_flags = IBV_WC_WITH_IMM;
        wc.imm_data = wr->imm_data;
    } else if (wr->opcode == IBV_WR_SEND_WITH_INV) {
        wc.wc_flags = IBV_WC_WITH_INV;
        wc.invalidated_rkey = wr->invalidate_rkey;
    }
    long done = 0;
    for (int i = 0; i < far->receives[far->head % DEPTH].count && done < length; i++) {
        struct ibv_sge *sge = &far->receives[far->head % DEPTH].sge[i];
        long part = sge->length < length - done ? sge->length : length - done;
        void *to = reach(sge->lkey, sge->addr, part, IBV_ACCESS_LOCAL_WRITE);
        if (!to)
            return IBV_WC_REM_OP_ERR;
        memcpy(to, bytes + done, part);
        done += part;
    }
    far->head++;
    complete((struct queue *)far->qp.recv_cq, wc);
    return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    static char bytes[DM_SIZE];
    struct pair *pair = (struct pair *)qp, *far = NULL;
    struct ibv_wc wc = { .wr_id = wr->wr_id, .qp_num = qp->qp_num, .vendor_err = 77 };
    (void)bad;
    assert(pair->attr.qp_state == IBV_QPS_RTS && !wr->next && wr->num_sge <= (int)pair->cap.max_send_sge);
    if (wr->wr_id == 0xDEAD) {
        static struct ibv_async_event event = { .event_type = IBV_EVENT_CQ_ERR };
        event.element.cq = qp->send_cq;
        assert(write(async_pipe[1], &event, sizeof event) == sizeof event);
        return 0;
    }
    for (int i = 0; i < MANY; i++)
        if (pairs[i] && pairs[i]->qp.qp_num == pair->attr.dest_qp_num)
            far = pairs[i];
    long length = gather(wr, bytes);
    void *place = NULL;
    if (length < 0) {
        wc.status = IBV_WC_LOC_PROT_ERR;
    } else if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_READ) {
        unsigned right = wr->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
        place = reach(wr->wr.rdma.rkey - 1000, wr->wr.rdma.remote_addr, length, right);
        wc.status = place ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
        wc.opcode = wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
    } else {
        wc.status = deliver(far, wr, bytes, length);
        /* As the kernel's software device does. */
        wc.wc_flags = wr->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0;
    }
    if (place && wr->opcode == IBV_WR_RDMA_WRITE)
        memcpy(place, bytes, length);
    else if (place)
        memcpy(reach(wr->sg_list->lkey, wr->sg_list->addr, length, IBV_ACCESS_LOCAL_WRITE), place, length);
    wc.byte_len = length;
    if (wc.status || wr->send_flags & IBV_SEND_SIGNALED)
        complete((struct queue *)qp->send_cq, wc);
    return 0;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
    struct queue *queue = (struct queue *)cq;
    int found = 0;
    while (found < count && queue->head != queue->tail)
        wc[found++] = queue->wc[queue->head++ % DEPTH];
    return found;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
    assert(cq->channel && !solicited);
    ((struct queue *)cq)->is_armed = 1;
    return 0;
}

static struct ibv_wc *at(struct ibv_cq_ex *ex)
{
    struct queue *queue = (struct queue *)ex;
    assert(queue->is_polling);
    return &queue->wc[(queue->head - 1) % DEPTH];
}

static int next_poll(struct ibv_cq_ex *ex)
{
    struct queue *queue = (struct queue *)ex;
    assert(queue->is_polling);
    if (queue->head == queue->tail)
        return ENOENT;
    queue->head++;
    ex->wr_id = at(ex)->wr_id;
    ex->status = at(ex)->status;
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct queue *queue = (struct queue *)ex;
    assert(!queue->is_polling && !attr->comp_mask);
    queue->is_polling = 1;
    int answer = next_poll(ex);
    if (answer)
        queue->is_polling = 0;
    return answer;
}

static void end_poll(struct ibv_cq_ex *ex)
{
    assert(((struct queue *)ex)->is_polling);
    ((struct queue *)ex)->is_polling = 0;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex) { assert(!ex->status); return at(ex)->opcode; }
static uint32_t read_vendor_err(struct ibv_cq_ex *ex) { assert(ex->status); return at(ex)->vendor_err; }
static uint32_t read_byte_len(struct ibv_cq_ex *ex) { return at(ex)->byte_len; }
static __be32 read_imm_data(struct ibv_cq_ex *ex) { return at(ex)->imm_data; }
static uint32_t read_qp_num(struct ibv_cq_ex *ex) { return at(ex)->qp_num; }
static unsigned read_wc_flags(struct ibv_cq_ex *ex) { return at(ex)->wc_flags; }
static uint64_t read_completion_ts(struct ibv_cq_ex *ex) { return 1000 + ((struct queue *)ex)->head; }

static struct ibv_cq *new_queue(struct ibv_context *context, int entries, struct ibv_comp_channel *channel)
{
    struct queue *queue = calloc(1, sizeof *queue);
    queue->ex.context = context;
    queue->ex.cqe = entries;
    queue->ex.channel = channel;
    if (channel)
        channel->refcnt++;
    queues++;
    return (struct ibv_cq *)queue;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *user, struct ibv_comp_channel *channel, int vector)
{
    assert(!user && !vector);
    LOGGED("create_cq %d%s\n", entries, channel ? " with events" : "");
    return new_queue(context, entries, channel);
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *wish)
{
    LOGGED("create_cq_ex %u%s fields %#llx\n", wish->cqe, wish->channel ? " with events" : "", (long long)wish->wc_flags);
    struct ibv_cq_ex *ex = (struct ibv_cq_ex *)new_queue(context, wish->cqe, wish->channel);
    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_byte_len = read_byte_len;
    ex->read_imm_data = read_imm_data;
    ex->read_qp_num = read_qp_num;
    ex->read_wc_flags = read_wc_flags;
    ex->read_completion_ts = read_completion_ts;
    return ex;
}

int ibv_resize_cq(struct ibv_cq *cq, int entries)
{
    LOGGED("resize_cq %d\n", entries);
    cq->cqe = entries;
    return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct queue *queue = (struct queue *)cq;
    assert(!queue->pairs && queue->events == queue->acknowledged && !queue->is_polling);
    if (cq->channel)
        cq->channel->refcnt--;
    queues--;
    free(queue);
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct events *events = calloc(1, sizeof *events);
    int fds[2];
    assert(pipe(fds) == 0);
    events->channel = (struct ibv_comp_channel){ .context = context, .fd = fds[0] };
    events->to = fds[1];
    return &events->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    assert(channel->refcnt == 0);
    close(channel->fd);
    close(((struct events *)channel)->to);
    free(channel);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user)
{
    if (read(channel->fd, cq, sizeof *cq) != sizeof *cq)
        return -1;
    *user = NULL;
    ((struct queue *)*cq)->events++;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count) { ((struct queue *)cq)->acknowledged += count; }

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return read(context->async_fd, event, sizeof *event) == sizeof *event ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event) { LOGGED("ack_async_event %d\n", event->event_type); }

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    pd->context = context;
    domains++;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    for (int i = 0; i < MANY; i++)
        assert((!regions[i] || regions[i]->mr.pd != pd) && (!pairs[i] || pairs[i]->qp.pd != pd));
    domains--;
    free(pd);
    return 0;
}

static struct ibv_mr *new_region(struct ibv_pd *pd, void *address, size_t length, unsigned access, struct memory *dm)
{
    static uint32_t key = 100;
    for (int i = 0; i < MANY; i++) {
        if (regions[i])
            continue;
        regions[i] = calloc(1, sizeof *regions[i]);
        regions[i]->mr = (struct ibv_mr){ pd->context, pd, address, length, 0, key, key + 1000 };
        regions[i]->access = access;
        regions[i]->dm = dm;
        key++;
        return &regions[i]->mr;
    }
    errno = ENOMEM;
    return NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    LOGGED("reg_mr%s access %#x\n", length == SIZE_MAX && !address ? " whole" : "", access);
    return new_region(pd, address, length, access, NULL);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    for (int i = 0; i < MANY; i++)
        if (regions[i] && &regions[i]->mr == mr)
            regions[i] = NULL;
    LOGGED("dereg_mr\n");
    free(mr);
    return 0;
}

static int to_dm(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
    struct memory *memory = (struct memory *)dm;
    if (offset % 4 || length % 4 || offset + length > memory->length)
        return EFAULT;
    memcpy(memory->bytes + offset, from, length);
    return 0;
}

static int from_dm(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
    struct memory *memory = (struct memory *)dm;
    if (offset % 4 || length % 4 || offset + length > memory->length)
        return EFAULT;
    memcpy(to, memory->bytes + offset, length);
    return 0;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *wish)
{
    struct memory *memory = calloc(1, sizeof *memory);
    LOGGED("alloc_dm %zu\n", wish->length);
    memory->dm = (struct ibv_dm){ .context = context, .memcpy_to_dm = to_dm, .memcpy_from_dm = from_dm };
    memory->length = wish->length;
    /* As an adapter leaves it. */
    memset(memory->bytes, 0xEE, sizeof memory->bytes);
    return &memory->dm;
}

static int free_dm(struct ibv_dm *dm)
{
    for (int i = 0; i < MANY; i++)
        assert(!regions[i] || regions[i]->dm != (struct memory *)dm);
    LOGGED("free_dm\n");
    free(dm);
    return 0;
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
    assert(!offset && length <= ((struct memory *)dm)->length);
    LOGGED("reg_dm_mr access %#x\n", access);
    return new_region(pd, NULL, length, access, (struct memory *)dm);
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list, uint32_t count)
{
    LOGGED("advise_mr %d flags %u, %u of %u bytes\n", advice, flags, count, list->length);
    return pd && reach(list->lkey, list->addr, list->length, IBV_ACCESS_ON_DEMAND) ? 0 : EINVAL;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    strcpy(attr->fw_ver, context->device->name);
    attr->max_qp = MANY;
    attr->max_qp_wr = 1024;
    attr->max_sge = 4;
    attr->max_cqe = DEPTH;
    attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
    attr->phys_port_cnt = 1;
    return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    assert(!input && size == sizeof *attr);
    memset(attr, 0, size);
    ibv_query_device(context, &attr->orig_attr);
    attr->orig_attr.atomic_cap = IBV_ATOMIC_HCA;
    attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    attr->odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE;
    attr->completion_timestamp_mask = UINT64_MAX >> 16;
    attr->hca_core_clock = 156250;
    attr->max_dm_size = DM_SIZE;
    return 0;
}

static int fill_port(uint8_t number, struct ibv_port_attr *attr, uint8_t link_layer)
{
    if (number != 1)
        return EINVAL;
    attr->state = IBV_PORT_ACTIVE;
    attr->max_mtu = attr->active_mtu = IBV_MTU_4096;
    attr->gid_tbl_len = 4;
    attr->lid = link_layer == IBV_LINK_LAYER_INFINIBAND ? 7 : 0;
    attr->active_width = 2;
    attr->active_speed = 32;
    attr->link_layer = link_layer;
    return 0;
}

/* The old driver is on InfiniBand, and knows nothing of what stands behind its structure. */
int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    (void)context;
    return fill_port(number, (struct ibv_port_attr *)attr, IBV_LINK_LAYER_INFINIBAND);
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t size)
{
    assert(context && size == sizeof *attr);
    return fill_port(number, attr, IBV_LINK_LAYER_ETHERNET);
}

/* Link-local, an address of RoCE version 1, the same of version 2, empty. */
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
                      size_t size)
{
    assert(context && port == 1 && !flags && size == sizeof *entry);
    if (index > 2)
        return index == 3 ? ENODATA : EINVAL;
    memset(entry, 0, sizeof *entry);
    entry->gid_type = index == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    if (index == 0)
        memcpy(entry->gid.raw, (uint8_t[16]){ 0xfe, 0x80, [15] = 1 }, 16);
    else
        memcpy(entry->gid.raw, (uint8_t[16]){ [10] = 0xff, 0xff, 10, 9, 0, 1 }, 16);
    return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    int answer = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof entry);
    *gid = entry.gid;
    return answer;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *wish)
{
    static uint32_t number = 0x11;
    struct pair *pair = calloc(1, sizeof *pair);
    assert(wish->qp_type == IBV_QPT_RC && !wish->srq && !wish->sq_sig_all);
    wish->cap.max_inline_data = (wish->cap.max_inline_data + 63) / 64 * 64;
    pair->cap = wish->cap;
    pair->qp = (struct ibv_qp){ .context = pd->context, .pd = pd, .send_cq = wish->send_cq, .recv_cq = wish->recv_cq };
    pair->qp.qp_num = number++;
    ((struct queue *)wish->send_cq)->pairs++;
    for (int i = 0; i < MANY; i++)
        if (!pairs[i]) {
            pairs[i] = pair;
            return &pair->qp;
        }
    return NULL;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    static const int needed[] = {
        [IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
        [IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC
            | IBV_QP_MIN_RNR_TIMER,
        [IBV_QPS_RTS] = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
        [IBV_QPS_ERR] = 0,
    };
    struct pair *pair = (struct pair *)qp;
    struct ibv_ah_attr *ah = &attr->ah_attr;
    assert(mask == (needed[attr->qp_state] | IBV_QP_STATE));
    if (attr->qp_state == IBV_QPS_INIT)
        LOGGED("init port %d access %#x\n", attr->port_num, attr->qp_access_flags);
    if (attr->qp_state == IBV_QPS_RTR)
        LOGGED("rtr mtu %d psn %x reads %d timer %d port %d sl %d lid %d global %d sgid %d hops %d last %d\n", attr->path_mtu,
               attr->rq_psn, attr->max_dest_rd_atomic, attr->min_rnr_timer, ah->port_num, ah->sl, ah->dlid, ah->is_global,
               ah->grh.sgid_index, ah->grh.hop_limit, ah->grh.dgid.raw[15]);
    if (attr->qp_state == IBV_QPS_RTS)
        LOGGED("rts psn %x timeout %d retries %d rnr %d reads %d\n", attr->sq_psn, attr->timeout, attr->retry_cnt,
               attr->rnr_retry, attr->max_rd_atomic);
    if (attr->qp_state == IBV_QPS_RTR)
        pair->attr = *attr;
    pair->attr.qp_state = attr->qp_state;
    return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *initial)
{
    assert(mask & IBV_QP_CAP);
    *attr = ((struct pair *)qp)->attr;
    attr->cap = initial->cap = ((struct pair *)qp)->cap;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    for (int i = 0; i < MANY; i++)
        if (pairs[i] && &pairs[i]->qp == qp)
            pairs[i] = NULL;
    ((struct queue *)qp->send_cq)->pairs--;
    free(qp);
    return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    int is_new = device == &devices[1];
    struct verbs_context *whole = calloc(1, sizeof *whole);
    struct ibv_context *context = &whole->context;
    if (!contexts++)
        assert(pipe(async_pipe) == 0);
    context->device = device;
    context->async_fd = async_pipe[0];
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    whole->query_device_ex = query_device_ex;
    whole->query_port = query_port;
    whole->create_cq_ex = create_cq_ex;
    whole->alloc_dm = alloc_dm;
    whole->free_dm = free_dm;
    whole->reg_dm_mr = reg_dm_mr;
    whole->advise_mr = advise_mr;
    whole->sz = sizeof *whole;
    context->abi_compat = is_new ? __VERBS_ABI_IS_EXTENDED : NULL;
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    contexts--;
    assert(contexts > 0 || (domains == 0 && queues == 0));
    LOGGED("close_device\n");
    free((char *)context - offsetof(struct verbs_context, context));
    return 0;
}
