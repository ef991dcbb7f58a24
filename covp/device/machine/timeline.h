/* A run in time: where the core entered another function or another bucket.
 *
 * The log is bounded. When it is full, the shortest calls are left out: their cycles are then in the mark of
 * the caller, as `short_cycles`, and in a sum for each function, so that nothing is lost but the times.
 */
#ifndef COVP_TIMELINE_H
#define COVP_TIMELINE_H

#include "counter_state.h"

enum { MARK_BUCKET, MARK_CALL, MARK_RETURN };
enum { FEWEST_MARKS = 64, BUCKET_MARKS = 1 << 14, SHORTEST_CALL = 16 };
enum { LONGEST_SHORT_CALL = 1 << 30, LONGEST_CHAIN = 8 };

/* From here on the core is in a bucket; or in a function, entered at its first address or elsewhere. */
typedef struct {
    uint64_t cycle, instructions;
    uint64_t short_cycles; /* up to the next mark, in calls that were left out ... */
    uint64_t short_calls;  /* ... and how many those were */
    uint32_t kind, number; /* of the bucket, or function */
    uint32_t address, unused;
} TimelineMark;

typedef struct { uint64_t cycles, calls; } ShortCalls;

typedef struct Timeline {
    TimelineMark *marks;
    uint64_t count, room;  /* there is room for some more of buckets */
    uint64_t shortest;     /* calls of fewer cycles were left out */
    uint64_t lost;         /* marks for which there was no room ... */
    uint64_t lost_at;      /* ... and the cycle of the first */
    uint32_t function;     /* the current one */
    uint32_t function_count;
    bool is_full;
    bool has_outside;      /* bucket 0 is no part of the program */
    ShortCalls *by_function;
} Timeline;

static bool starts_function(const Machine *m, uint32_t address) {
    uint64_t low = 0;
    for (uint64_t high = m->function_mark_count; low < high;) {
        uint64_t middle = (low + high) / 2;
        if (m->function_marks[middle].address == address) return m->function_marks[middle].bucket;
        if (m->function_marks[middle].address < address) low = middle + 1;
        else high = middle;
    }
    return false;
}

/* How many marks before one of a return are of the call that ends there, and of those that it became by
 * jumping to other functions; 0: it took too long, or is not known.
 */
static uint64_t short_call(const Timeline *t, uint64_t marks, const TimelineMark *back) {
    for (uint64_t n = 1; back->kind == MARK_RETURN && n < marks && n <= LONGEST_CHAIN; n++) {
        const TimelineMark *call = &t->marks[marks - n], *caller = call - 1;
        if (call->kind != MARK_CALL) return 0;
        if (caller->kind != MARK_BUCKET && caller->number == back->number)
            return back->cycle - call->cycle < t->shortest ? n : 0;
    }
    return 0;
}

/* `count` calls from the one after `caller` on have no marks: the last one ends at `back`. */
static void leave_out(Timeline *t, TimelineMark *caller, uint64_t count, const TimelineMark *back) {
    for (uint64_t n = 1; n <= count; n++) {
        const TimelineMark *call = caller + n, *end = n < count ? call + 1 : back;
        ShortCalls *sum = &t->by_function[call->number < t->function_count ? call->number : 0];
        sum->cycles += end->cycle - call->cycle - call->short_cycles;
        sum->calls++;
        caller->short_calls += 1 + call->short_calls;
    }
    caller->short_cycles += back->cycle - caller[1].cycle + back->short_cycles;
    caller->short_calls += back->short_calls;
}

/* Leave out calls of fewer cycles than `shortest`, but those outside of the program. */
static void leave_short_out(Timeline *t) {
    uint64_t kept = 0;
    bool inside = !t->has_outside;
    for (uint64_t i = 0; i < t->count; i++) {
        TimelineMark mark = t->marks[i];
        if (mark.kind == MARK_BUCKET) inside = mark.number || !t->has_outside;
        uint64_t calls = inside ? short_call(t, kept, &mark) : 0;
        if (calls) {
            kept -= calls;
            leave_out(t, &t->marks[kept - 1], calls, &mark);
        } else {
            t->marks[kept++] = mark;
        }
    }
    t->count = kept;
}

/* Leave out no more than needed; where that is of little use the log is full for good. */
static void make_room(Timeline *t) {
    if (!t->shortest) t->shortest = SHORTEST_CALL;
    leave_short_out(t);
    while (t->count > t->room / 4 * 3 && t->shortest < LONGEST_SHORT_CALL) {
        t->shortest *= 2;
        leave_short_out(t);
    }
    t->is_full = t->count > t->room / 16 * 15;
}

static void add_mark(Machine *m, uint32_t kind, uint32_t number, uint32_t address, uint64_t cycle) {
    Timeline *t = m->timeline;
    if (t->count >= t->room && !t->is_full) make_room(t);
    if (t->count >= t->room + (kind == MARK_BUCKET ? BUCKET_MARKS : 0)) {
        if (!t->lost++) t->lost_at = cycle;
        return;
    }
    t->marks[t->count++] = (TimelineMark){.cycle = cycle, .instructions = m->instructions,
                                          .kind = kind, .number = number, .address = address};
}

static inline void log_function(Machine *m, uint32_t function, uint32_t address, uint64_t cycle) {
    if (m->timeline->function == function) return;
    m->timeline->function = function;
    bool is_call = address != NOWHERE && starts_function(m, address);
    add_mark(m, is_call ? MARK_CALL : MARK_RETURN, function, address, cycle);
}

/* A block is about to run; what the branch to it takes belongs to the block before. */
static inline void log_block(Machine *m, const Block *b, uint32_t address) {
    bool jumped = m->fall_through != address;
    log_function(m, b->version->function, address, m->cycles + m->latest->branch[!jumped]);
}

static inline void log_bucket(Machine *m, uint32_t bucket) {
    if (bucket != m->bucket) add_mark(m, MARK_BUCKET, bucket, NOWHERE, m->cycles);
}

static void forget_timeline(Machine *m) {
    if (!m->timeline) return;
    free(m->timeline->marks);
    free(m->timeline->by_function);
    free(m->timeline);
    m->timeline = NULL;
}

/* Log from now on at most so many marks; 0: no memory. */
static int begin_timeline(Machine *m, uint64_t room) {
    forget_timeline(m);
    Timeline *t = calloc(1, sizeof *t);
    if (!t) return 0;
    m->timeline = t;
    t->room = room < FEWEST_MARKS ? FEWEST_MARKS : room;
    t->function_count = (uint32_t)m->function_count;
    t->has_outside = m->bucket_count > 1;
    t->function = UINT32_MAX; /* none yet */
    t->marks = calloc(t->room + BUCKET_MARKS, sizeof *t->marks);
    t->by_function = calloc(t->function_count, sizeof *t->by_function);
    if (t->marks && t->by_function) return 1;
    forget_timeline(m);
    return 0;
}

typedef struct { uint64_t count, shortest, lost, lost_at; } TimelineSize;

/* The marks so far, and the calls that were left out by function; NULL: their number alone. */
EXPORT void machine_timeline(const Machine *m, TimelineSize *size, TimelineMark *marks,
                             ShortCalls *left_out) {
    const Timeline *t = m->timeline;
    *size = (TimelineSize){t->count, t->shortest, t->lost, t->lost_at};
    if (!marks) return;
    memcpy(marks, t->marks, t->count * sizeof *marks);
    memcpy(left_out, t->by_function, t->function_count * sizeof *left_out);
}

#endif
