/* The state of a pipeline, and its fetch ahead of the instructions that issue. */
#ifndef COVP_FETCH_H
#define COVP_FETCH_H

#include "model.h"

enum { RING = 8, HOLDS = 4, LEFT = 6, LONG_AGO = -(1 << 20), NEVER = 1 << 20, JUMP_FETCH = -2 };

/* Cycles in which no instruction goes on to the next stage. */
typedef struct { int32_t from, until, why; } Hold;

typedef struct {
    int32_t now;          /* cycle in which the latest instructions issued, or the next can */
    uint32_t issued;      /* instructions in this cycle so far */
    int32_t issued_at;    /* cycle in which the latest instruction issued */
    int32_t recent[2];    /* the same of the latest two since a jump */
    uint64_t ends;        /* how the code ends that is timed, where that is known */
    uint32_t reload;      /* cycles for which the instruction comes anew, see Timing.reloads */
    uint32_t used[UNITS];
    int32_t ready[64];    /* cycle in which a register can be used */
    uint8_t why[64];      /* what is waited for until then */
    Hold holds[HOLDS];
    uint32_t hold_count;
    int32_t passed_at;    /* cycle in which these do not hold the next one up */
    int32_t unit_free[UNITS]; /* first cycle in which a unit takes its next instruction */
    int32_t floats_free;  /* ... in which an instruction on floats issues */
    int32_t settled_at;   /* ... a custom one can issue */
    int32_t lingers;      /* cycle until which what stays in the decoder waits for its own result */
    const Rule *before;
    uint32_t before_bytes, before_memory;
    uint64_t before_writes; /* a bit for each register */
    uint64_t forwarded;   /* a bit for each register whose result RULE_TAKES uses a cycle sooner */
    int32_t last_needed;  /* cycle from which on the operands of the latest instruction were there */
    uint32_t moved;       /* added to the addresses of code after a predicted jump, which is fetched as if it came next */
    uint32_t fetch_at;    /* address that is fetched next */
    int32_t fetch_accepted, fetch_answered; /* of the latest one */
    int32_t freed[RING];  /* when the bytes of a fetch left the buffer */
    uint32_t freed_until; /* address */
    struct { int32_t at; uint32_t fetch; } left[LEFT]; /* when the latest instructions left the buffer; their last fetch */
    uint32_t left_count;  /* of all since a jump */
    uint32_t left_past;   /* address past the latest one; 0: what comes after a jump is there, too */
    uint32_t crossing;    /* instructions in a row that cross words */
    int32_t jump_at;      /* cycle in which the latest instruction would request its target */
    Spent spent;
} Pipeline;

/* The memory at an address, NULL: one without wait states. */
static inline const WaitStates *memory_at(const Timing *t, uint32_t address) {
    for (uint32_t n = 0; n < t->wait_count; n++)
        if (address >= t->waits[n].start && address < t->waits[n].end) return &t->waits[n];
    return NULL;
}

static inline uint32_t fetch_period(const Timing *t, uint32_t address) {
    const WaitStates *memory = memory_at(t, address);
    return memory ? 1 + memory->fetch : 1;
}

/* Fetches that are held before their instructions issue. */
static inline uint32_t fetches_ahead(const Timing *t, uint32_t address) {
    const WaitStates *memory = memory_at(t, address);
    return memory && memory->ahead && memory->ahead < t->fetch_ahead ? memory->ahead : t->fetch_ahead;
}

/* Fetches start at an address, with the first one accepted in cycle `at`. */
static inline void fetch_from(Pipeline *p, const Timing *t, uint32_t address, int32_t at) {
    p->fetch_at = p->freed_until = address & ~(t->fetch_bytes - 1);
    p->fetch_accepted = at - 1;
    p->fetch_answered = at;
    for (int n = 0; n < RING; n++) p->freed[n] = LONG_AGO;
    p->left_count = p->left_past = 0;
}

/* An instruction whose last bytes came with the fetch of an address leaves the buffer. */
static inline void leave_buffer(Pipeline *p, const Timing *t, uint32_t past, int32_t at) {
    if (!(t->flags & COUNTS_BUFFERED)) return;
    p->left[p->left_count % LEFT].at = at;
    p->left[p->left_count++ % LEFT].fetch = (past - 1) & ~(t->fetch_bytes - 1);
    p->left_past = past;
}

/* Those after a jump never do, but for the first one after a branch. What is not known of them is long. */
static void stay_in_buffer(Pipeline *p, const Timing *t) {
    uint32_t bits = (uint32_t)(p->ends >> ENDS_NEXT_SHIFT);
    bool is_short = bits && (bits & 3) != 3;
    if (!(t->flags & COUNTS_BUFFERED) || !p->left_past) return;
    leave_buffer(p, t, p->left_past + (is_short ? 2 : 4), p->issued_at);
    leave_buffer(p, t, p->left_past + (p->ends & ENDS_HALF_NEXT ? 2 : 4), NEVER);
    leave_buffer(p, t, p->left_past + 4, NEVER);
    p->left_past = 0;
}

/* The first cycle after a fetch was accepted in which no instruction waits in the buffer, or one and no fetch is
 * under way. What comes and leaves in a cycle is counted in the next one.
 */
static int32_t request_by_count(const Pipeline *p, const Timing *t) {
    uint32_t latest = p->fetch_at - t->fetch_bytes, known = p->left_count < LEFT ? p->left_count : LEFT;
    int32_t least = p->fetch_accepted + 1, request = NEVER;
    for (uint32_t n = 0; n < known + 2; n++) {
        /* it changes with what leaves and with the answer alone */
        int32_t at = n < known ? p->left[n].at + 1 : n == known ? p->fetch_answered + 1 : least;
        if (at < least || at >= request) continue;
        uint32_t waiting = 0;
        bool answered = p->fetch_answered < at;
        for (uint32_t k = 0; k < known; k++)
            waiting += p->left[k].at >= at && (int32_t)(p->left[k].fetch - latest) < answered;
        if (!waiting || (waiting == 1 && answered)) request = at;
    }
    return request;
}

/* When the next fetch is requested: when few enough wait for their instructions. */
static inline int32_t fetch_request(const Pipeline *p, const Timing *t) {
    if (t->flags & COUNTS_BUFFERED) return request_by_count(p, t);
    uint32_t oldest = p->fetch_at - fetches_ahead(t, p->fetch_at - p->moved) * t->fetch_bytes;
    bool is_held = (int32_t)(oldest - p->freed_until) >= 0;
    int32_t freed = is_held ? NEVER : p->freed[oldest / t->fetch_bytes % RING];
    return 1 + (freed > p->fetch_accepted ? freed : p->fetch_accepted);
}

/* The memory serves one fetch at a time, and takes the next one in the cycle of its answer. */
static inline void fetch_next(Pipeline *p, const Timing *t, int32_t request) {
    p->fetch_accepted = request > p->fetch_answered ? request : p->fetch_answered;
    p->fetch_answered = p->fetch_accepted + (int32_t)fetch_period(t, p->fetch_at - p->moved);
    p->fetch_at += t->fetch_bytes;
}

/* The first cycle in which an instruction that ends at `end` can issue. */
static int32_t arrival(Pipeline *p, const Timing *t, uint32_t end) {
    while (p->fetch_at < end) fetch_next(p, t, fetch_request(p, t));
    return p->fetch_answered + 1;
}

/* Cycles that the fetch of a jump's target, requested in cycle `jump`, waits for those before it. */
static uint32_t fetch_busy(Pipeline *p, const Timing *t, int32_t jump) {
    if (!t->fetch_bytes || p->fetch_answered == LONG_AGO) return 0;
    stay_in_buffer(p, t);
    for (int n = 0; n < RING; n++) {
        int32_t request = fetch_request(p, t);
        int32_t accepted = request > p->fetch_answered ? request : p->fetch_answered;
        if ((t->flags & FETCH_COMMITS ? request : accepted) >= jump) break;
        fetch_next(p, t, request);
    }
    return p->fetch_answered > jump ? (uint32_t)(p->fetch_answered - jump) : 0;
}

#endif
