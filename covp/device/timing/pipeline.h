/* The time of straight-line code in an in-order pipeline, by the rules of a timing model.
 *
 * An instruction issues when the ones before it have, its bytes have arrived and its operands are
 * ready. Every cycle until the end of the code has a cause, so that the causes add up to the total.
 */
#ifndef COVP_PIPELINE_H
#define COVP_PIPELINE_H

#include "fetch.h"

static const Rule *find_rule(const Timing *t, Instruction i) {
    static const Rule one_cycle = {.cycles = 1};
    for (uint64_t n = 0; n < t->rule_count; n++) {
        const Rule *r = &t->rules[n];
        if (r->bytes == i.bytes && (i.bits & r->mask) == r->match) return r;
    }
    return &one_cycle;
}

static inline uint32_t gathered(uint32_t bits, uint32_t mask) {
    uint32_t value = 0;
    for (int at = 31; at >= 0; at--)
        if (mask >> at & 1) value = value << 1 | (bits >> at & 1);
    return value;
}

/* The register of an operand, floats after 32 others; -1: none. */
static inline int32_t operand(const Timing *t, Instruction i, const Operand *o) {
    if (!o->mask) return -1;
    uint32_t number = gathered(i.bits, o->mask);
    if (__builtin_popcount(o->mask) == 3) number += t->short_registers;
    if (o->flags & OPERAND_ROTATED) number = number >> 1 | (number & 1) << 4;
    if (o->flags & OPERAND_FLOAT) return (int32_t)(32 + (number & 31));
    return number == t->zero_register ? -1 : (int32_t)(number & 31);
}

/* Code is entered at an address; `full`: fetches are ahead already. */
static void pipeline_enter(Pipeline *p, const Timing *t, uint32_t address, bool full) {
    static const Rule nothing = {.cycles = 1};
    memset(p, 0, sizeof *p);
    for (int r = 0; r < 64; r++) p->ready[r] = LONG_AGO;
    for (int n = 0; n < HOLDS; n++) p->holds[n] = (Hold){LONG_AGO, LONG_AGO, 0};
    p->issued_at = -1;
    p->recent[0] = p->recent[1] = LONG_AGO;
    p->lingers = LONG_AGO;
    for (int n = 0; n < UNITS; n++) p->unit_free[n] = LONG_AGO;
    p->floats_free = LONG_AGO;
    p->settled_at = full ? LONG_AGO : (int32_t)t->settles;
    p->before = &nothing;
    p->freed_until = full ? (address + 3) & ~3u : address & ~3u;
    if (!t->fetch_bytes) return;
    /* A jump requests its target two cycles before that can issue. The wait for fetches that are
     * under way belongs to the jump. */
    fetch_from(p, t, address, full ? LONG_AGO : JUMP_FETCH);
}

static inline void wait_for(Pipeline *p, int32_t *at, int32_t until, uint32_t cause) {
    if (until <= *at) return;
    p->spent.by[cause] += (uint32_t)(until - *at);
    *at = until;
}

/* The instruction issues `early` cycles after a register's operand is there; negative: before. */
static void need(Pipeline *p, int32_t *at, int32_t number, int32_t early) {
    if (number < 0) return;
    int32_t until = p->ready[number] + early;
    if (p->last_needed < until) p->last_needed = until;
    if (until <= *at) return;
    /* the cycle in which others have issued is counted already */
    if (p->issued && *at == p->now) ++*at;
    /* an operand that is there but needed earlier is a matter of branches: register jumps */
    wait_for(p, at, until, early > 0 && p->ready[number] <= *at ? CAUSE_BRANCH : p->why[number]);
}

/* When an instruction can issue, as far as its operands go; *dependent: on the one before it. */
static int32_t operands_ready(Pipeline *p, const Timing *t, const Rule *r, Instruction i, int32_t at,
                              bool *dependent) {
    p->last_needed = LONG_AGO;
    for (int n = 0; n < 4 && r->reads[n].mask; n++) {
        int32_t number = operand(t, i, &r->reads[n]);
        bool late = r->reads[n].flags & OPERAND_LATE;
        bool taken = r->flags & RULE_TAKES && !late && number >= 0 && p->forwarded >> number & 1;
        *dependent |= !late && number >= 0 && p->before_writes >> number & 1;
        need(p, &at, number, (late ? -r->late : r->early) - taken);
    }
    for (uint32_t rest = r->also_reads; rest; rest &= rest - 1) {
        int32_t number = __builtin_ctz(rest);
        need(p, &at, number, number == FLAGS_REGISTER ? -r->late : r->early);
    }
    for (int n = 0; n < 2 && t->flags & OVERWRITES_WAIT && !(r->flags & RULE_LOAD); n++)
        need(p, &at, operand(t, i, &r->writes[n]), 0);
    return at;
}

static inline void forward(Pipeline *p, int32_t number, bool forwards) {
    if (number < 0) return;
    p->forwarded = (p->forwarded & ~(1ull << number)) | (uint64_t)forwards << number;
}

static void write_register(Pipeline *p, const Timing *t, int32_t number, int32_t ready, const Rule *r) {
    if (number < 0) return;
    if (t->flags & OLDER_RESULTS && p->ready[number] > ready) ready = p->ready[number];
    p->ready[number] = ready;
    p->why[number] = r->cause == CAUSE_MULTIPLY ? CAUSE_MULTIPLY : CAUSE_OPERAND;
    p->before_writes |= 1ull << number;
    forward(p, number, r->flags & RULE_FORWARDS);
}

static void write_results(Pipeline *p, const Timing *t, const Rule *r, Instruction i, int32_t ready) {
    p->before_writes = 0;
    for (int n = 0; n < 2 && r->writes[n].mask; n++) {
        bool is_base = r->writes[n].flags & OPERAND_BASE;
        int32_t sooner = is_base ? r->latency + r->early : 0; /* it is there when addresses are */
        write_register(p, t, operand(t, i, &r->writes[n]), ready - sooner, r);
        if (is_base) forward(p, operand(t, i, &r->writes[n]), false);
    }
    for (uint32_t rest = r->also_writes; rest; rest &= rest - 1)
        write_register(p, t, __builtin_ctz(rest), ready, r);
}

static inline bool fits(const Pipeline *p, const Timing *t, const Rule *r, Instruction i) {
    if (t->flags & SHORT_PAIRS && (p->before_bytes != 2 || i.bytes != 2)) return false;
    return p->issued < t->width && !((p->before->flags | r->flags) & RULE_ALONE) &&
           r->flags & RULE_SECOND && p->used[r->unit] < t->slots[r->unit] &&
           (!r->shares || p->used[r->shares] < t->slots[r->shares]);
}

/* Accesses beyond one of a misaligned one: the other word, or aligned halfwords and bytes. */
static inline uint32_t further_accesses(const Timing *t, Instruction i) {
    static const uint8_t words[] = {0, 0, 1, 1}, parts[] = {0, 1, 1, 2};
    return (t->flags & ALIGNED_PARTS ? parts : words)[i.alignment];
}

/* Cycles until the next instruction can issue. */
static uint32_t own_cycles(const Pipeline *p, const Timing *t, const Rule *r, Instruction i,
                           bool dependent) {
    uint32_t listed = i.bits & r->list;
    uint32_t cycles = r->cycles;
    listed = r->flags & RULE_COUNTED ? gathered(i.bits, r->list)
                                     : (uint32_t)__builtin_popcount(listed);
    cycles += (listed + t->transfers - 1) / t->transfers;
    if (r->flags & RULE_LOAD && p->before->flags & RULE_STORE) cycles += t->after_store;
    if (t->flags & PIPELINED_ACCESSES && p->before->flags & RULE_LOAD && !dependent &&
        r->flags & (RULE_LOAD | RULE_STORE) && (i.memory == p->before_memory || !(t->flags & MEMORIES_APART)) && cycles)
        cycles--;
    return cycles;
}

/* The first cycle from `at` on in which instructions go on; *why: what held them up last. */
static int32_t free_cycle(const Pipeline *p, int32_t at, uint32_t *why) {
    if (at == p->passed_at) return at;
    for (uint32_t n = 0; n < HOLDS; n++) {
        const Hold *h = &p->holds[(p->hold_count + n) % HOLDS];
        if (at < h->from || at > h->until) continue;
        at = h->until + 1;
        *why = (uint32_t)h->why;
    }
    return at;
}

static int32_t wait_for_holds(Pipeline *p, int32_t at) {
    uint32_t why = CAUSE_ISSUE;
    int32_t free = free_cycle(p, at, &why);
    wait_for(p, &at, free, why);
    return at;
}

static void hold(Pipeline *p, int32_t from, uint32_t cycles, int32_t why) {
    if (cycles) p->holds[p->hold_count++ % HOLDS] = (Hold){from, from + (int32_t)cycles - 1, why};
}

/* When bytes that arrive for cycle `there` are decoded; in or after cycle `room` there is room for them. */
static int32_t when_free(const Pipeline *p, const Timing *t, int32_t there, int32_t room, uint32_t *why) {
    if (there <= room) return room;
    if (there <= p->lingers) there = p->lingers + 1;
    return t->flags & EXECUTES_LATER ? free_cycle(p, there - 1, why) + 1 : there;
}

static int32_t fetch_decoded(Pipeline *p, const Timing *t, uint32_t address, int32_t room) {
    uint32_t why = CAUSE_ISSUE;
    return when_free(p, t, arrival(p, t, address + t->fetch_bytes), room, &why);
}

/* When an instruction is decoded. A fetch leaves the buffer in the cycle before, when its first bytes do
 * (what is left of it is kept beside) or its last.
 */
static int32_t decoded(Pipeline *p, const Timing *t, uint32_t address, uint32_t bytes, int32_t at) {
    uint32_t size = t->fetch_bytes, first = address & ~(size - 1), why = CAUSE_ISSUE;
    bool later = t->flags & EXECUTES_LATER, is_rest = p->freed_until > first;
    int32_t there = later ? p->issued_at + 1 : at;
    if (is_rest) first = p->freed_until;
    if (t->flags & PAIRS_FETCHES && is_rest && address + bytes == first)
        there = fetch_decoded(p, t, first, there);
    for (; first < address + bytes; first += size) {
        there = fetch_decoded(p, t, first, there);
        if (t->flags & KEEPS_FETCHES && first + size > address + bytes) break;
        p->freed[first / size % RING] = there - 1;
        if (later && first + size < address + bytes) there = free_cycle(p, there, &why) + 1;
    }
    p->freed_until = first;
    leave_buffer(p, t, address + bytes, there - 1);
    if (p->issued && at == p->now && there > at) at++;
    wait_for(p, &at, there, CAUSE_FETCH);
    return at;
}

/* Without a fetch ahead an instruction waits for each word that the one before it did not need; that may have
 * requested the one after it long before it was done, unless it used the memory itself.
 */
static int32_t fetched(Pipeline *p, const Timing *t, uint32_t address, uint32_t bytes, int32_t at) {
    bool requested = t->requests && p->freed_until == address && !(p->before->flags & (RULE_LOAD | RULE_STORE));
    int32_t ahead = requested ? at - p->issued_at - (int32_t)t->requests : 0;
    if (ahead < 0) ahead = 0;
    for (; p->freed_until < address + bytes; p->freed_until += 4, ahead = 0)
        wait_for(p, &at, at + (int32_t)fetch_period(t, p->freed_until - p->moved) - 1 - ahead, CAUSE_FETCH);
    p->fetch_at = address + bytes;
    return at;
}

/* Then a branch waits for the word after it before it jumps, if the next instruction needs one. Where that has
 * to wait, the core takes it for the target's: if that is in the middle of a word, and the second half of this
 * one looks like a long instruction, the target is fetched twice.
 */
static uint32_t requested_word(const Pipeline *p, const Timing *t, uint64_t ends) {
    bool needs = !(p->fetch_at & 2) || ends & ENDS_AT_SPLIT;
    if (!t->requests || !p->before->taken || !needs) return 0;
    uint32_t period = fetch_period(t, p->freed_until - p->moved), words = ends & ENDS_TO_SPLIT ? 2 : 1;
    bool again = period > 1 && ends & ENDS_MISTAKEN;
    return period - 1 + (again ? 1 + words * period : 0);
}

static inline void issued(Pipeline *p, int32_t at) {
    p->recent[1] = p->recent[0];
    p->recent[0] = p->issued_at = at;
}

static inline void open_cycle(Pipeline *p) {
    p->issued = 0;
    memset(p->used, 0, sizeof p->used);
}

/* All stages stand still for some cycles from one on: what was to be waited for until later is later. */
static void stand_still(Pipeline *p, const Timing *t, int32_t from, uint32_t cycles) {
    for (int n = 0; n < 64 && t->flags & STANDS_STILL; n++)
        if (p->ready[n] > from) p->ready[n] += (int32_t)cycles;
}

/* The instruction issues; the next one cannot in this cycle. Returns when its result is there, but for
 * its latency.
 */
static int32_t execute(Pipeline *p, const Timing *t, const Rule *r, int32_t decoded_at,
                       uint32_t cycles, uint32_t waits) {
    bool later = t->flags & EXECUTES_LATER, decoded = r->flags & RULE_DECODED;
    uint32_t why = CAUSE_ISSUE;
    int32_t at = p->now, next = at + (int32_t)cycles;
    if (decoded && cycles) {
        next = decoded_at + (int32_t)cycles > at + 1 ? decoded_at + (int32_t)cycles : at + 1;
    } else if (later && cycles) {
        bool access = r->flags & (RULE_LOAD | RULE_STORE); /* waits for those before it */
        next = at + 1;
        hold(p, access ? free_cycle(p, next, &why) : next, cycles - 1, r->cause);
    }
    if (r->cause == CAUSE_MULTIPLY && cycles > 1) stand_still(p, t, at + 1, cycles - 1);
    wait_for(p, &p->now, next - (next > at), r->cause);
    if (t->flags & DATA_STALLS) wait_for(p, &p->now, p->now + (int32_t)waits, CAUSE_DATA);
    int32_t done = later ? free_cycle(p, at + 1, &why) : p->now;
    p->now += next > at;
    open_cycle(p);
    if (t->flags & DATA_HOLDS && !(t->flags & STORES_PASS && r->flags & RULE_STORE)) {
        hold(p, done + 1, waits, CAUSE_DATA);
        stand_still(p, t, done + 1, waits);
    }
    return done + !later + (t->flags & DATA_STALLS ? 0 : (int32_t)waits);
}

/* Whether an instruction uses the result of the one before it. */
static inline bool depends(const Timing *t, Instruction first, Instruction second) {
    Pipeline p = {.now = 0};
    bool dependent = false;
    write_results(&p, t, find_rule(t, first), first, 0);
    operands_ready(&p, t, find_rule(t, second), second, 0, &dependent);
    return dependent;
}

/* When the results are there that an instruction could use itself: nothing else is decoded before that. */
static int32_t own_results(const Pipeline *p, const Timing *t, const Rule *r, Instruction i) {
    int32_t until = LONG_AGO;
    for (int n = 0; n < 4 && r->reads[n].mask; n++) {
        int32_t number = operand(t, i, &r->reads[n]);
        if (number >= 0 && p->before_writes >> number & 1 && until < p->ready[number] + r->early)
            until = p->ready[number] + r->early;
    }
    for (uint32_t rest = r->also_reads & (uint32_t)p->before_writes; rest; rest &= rest - 1)
        until = p->ready[__builtin_ctz(rest)] + r->early;
    return until;
}

/* In some memories the fetches of many instructions in a row that cross words come too late, once. */
static int32_t cross_words(Pipeline *p, const Timing *t, Instruction i, uint32_t address, int32_t at) {
    p->crossing = i.bytes == 4 && address & 2 ? p->crossing + 1 : 0;
    const WaitStates *memory = p->crossing ? memory_at(t, address - p->moved) : NULL;
    if (memory && p->crossing == memory->crossing) wait_for(p, &at, at + 1, CAUSE_FETCH);
    return at;
}

static void issue(Pipeline *p, const Timing *t, Instruction i, uint32_t address, int32_t more) {
    const Rule *r = find_rule(t, i);
    bool dependent = false;
    int32_t at = p->now + (p->issued && !fits(p, t, r, i));
    at = t->fetch_bytes ? decoded(p, t, address, i.bytes, at) : fetched(p, t, address, i.bytes, at);
    if (t->split && i.bytes == 4 && address & 2)
        wait_for(p, &at, at + (int32_t)t->split, CAUSE_FETCH);
    at = cross_words(p, t, i, address, at);
    int32_t decoded_at = operands_ready(p, t, r, i, at, &dependent);
    bool accesses = r->flags & (RULE_LOAD | RULE_STORE);
    uint32_t waits = accesses ? t->data_waits + i.cycles : 0;
    wait_for(p, &decoded_at, p->unit_free[r->unit], accesses ? CAUSE_DATA : r->cause);
    if (r->flags & RULE_ON_FLOATS) wait_for(p, &decoded_at, p->floats_free, CAUSE_OPERAND);
    at = wait_for_holds(p, decoded_at);
    wait_for(p, &at, at + (int32_t)p->reload, CAUSE_DATA);
    if (r->cause == CAUSE_CUSTOM) wait_for(p, &at, p->settled_at, CAUSE_CUSTOM);
    if (t->period[r->unit])
        p->unit_free[r->unit] = at + (int32_t)(t->period[r->unit] + waits);
    uint32_t cycles = own_cycles(p, t, r, i, dependent);
    cycles = (uint32_t)((int32_t)cycles + more);
    if (t->misaligned) cycles += further_accesses(t, i) * (t->misaligned + t->data_waits + i.cycles);
    if (i.is_custom) cycles += i.cycles - 1u;
    else if (!accesses) cycles += i.cycles; /* of several registers: no access of the rules */
    if (!p->issued || at > p->now) {
        open_cycle(p);
        p->spent.by[CAUSE_ISSUE] += cycles > 0;
    }
    issued(p, p->now = at);
    p->issued++;
    p->used[r->unit]++;
    if (r->shares) p->used[r->shares]++;
    if (r->busy) p->floats_free = at + 1 + r->busy;
    int32_t begins = r->flags & RULE_DECODED ? decoded_at : at;
    p->jump_at = begins + (int32_t)cycles + r->taken + JUMP_FETCH;
    int32_t ready = at + (int32_t)cycles;
    ready += (int32_t)waits;
    if (cycles != 1 || p->issued >= t->width) ready = execute(p, t, r, decoded_at, cycles, waits);
    if (r->settles) p->settled_at = ready + r->settles;
    bool sooner = r->flags & RULE_SOONER && p->last_needed < at;
    write_results(p, t, r, i, ready + r->latency - sooner);
    if (t->flags & LINGERS) p->lingers = own_results(p, t, r, i);
    p->before = r;
    p->before_bytes = i.bytes;
    p->before_memory = i.memory;
    p->passed_at = r->flags & RULE_PASSES ? at + 1 : LONG_AGO;
}

/* Whether it jumps to where a register says. */
static inline bool is_late_jump(const Rule *r) {
    return r->flags & RULE_JUMPS && (r->reads[0].mask || r->also_reads);
}

/* Whether an instruction waits in the decoder, or another one in half a word before it, when a branch goes on
 * elsewhere, which takes so many cycles.
 */
static bool redirects_late(const Pipeline *p, const Timing *t, uint64_t ends, uint32_t cycles) {
    if (!(t->flags & LATE_REDIRECTS)) return false;
    Instruction next = {.bits = (uint32_t)(ends >> ENDS_NEXT_SHIFT)};
    next.bytes = (next.bits & 3) == 3 ? 4 : 2;
    const Rule *r = find_rule(t, next);
    if (cycles < 3) { /* decided in the next stage already: the next instruction is in the decoder */
        Pipeline ahead = *p;
        bool dependent = false;
        return operands_ready(&ahead, t, r, next, p->issued_at + 1, &dependent) > p->issued_at + 1;
    }
    if (t->fetch_bytes && ends & ENDS_HALF_LATER) return true;
    if (r->flags & RULE_JUMPS) return false;
    uint32_t issuing = r->cycles + (r->flags & RULE_COUNTED ? gathered(next.bits, r->list) : 0);
    bool lasts = r->cause == CAUSE_ISSUE && issuing > 1;
    bool waits = p->unit_free[r->unit] > p->issued_at + 1; /* for the unit, where it executes */
    return (ends & ENDS_DEPENDENT && r->latency) || lasts || waits;
}

/* Whether the instruction before code's end goes on elsewhere when it is decoded, or in the stage after that. */
static inline bool is_predicted(const Timing *t, const Rule *r, uint64_t ends) {
    if (r->flags & RULE_JUMPS) return !is_late_jump(r) || r->cycles < 4;
    return r->mispredicted && t->flags & PREDICTS_BACKWARD && ends & ENDS_BACKWARD;
}

/* Whether the instruction after one of a block leaves a short one in its word. */
static inline bool next_leaves_half(const Code *block, uint32_t n, uint32_t address, uint64_t ends) {
    if (n + 1 >= block->count) return ends & ENDS_HALF_NEXT;
    uint32_t after = address + block->code[n].bytes + block->code[n + 1].bytes;
    return after & 2 && (n + 2 < block->count ? block->code[n + 2].bytes == 2 : !(ends & ENDS_AT_SPLIT));
}

/* A load may collide in the cache with a store just before it: it is done again when it should be over, and all
 * after it. A cycle later if one of these waits in the decoder then.
 */
static uint32_t reload(const Pipeline *p, const Timing *t, const Code *block, uint32_t n, uint32_t address) {
    const Instruction *code = &block->code[n];
    uint32_t stored = code->stored, start = address;
    if (!t->reloads || !stored) return 0;
    Pipeline ahead = *p;
    ahead.reload = 0;
    issue(&ahead, t, block->code[n], address, 0);
    int32_t at = ahead.issued_at;
    if (at - p->recent[stored - 1] > 2) return 0;
    while (ahead.issued_at <= at + 2 && n + 1 < block->count && !(ahead.before->flags & RULE_JUMPS)) {
        address += block->code[n++].bytes;
        issue(&ahead, t, block->code[n], address, 0);
    }
    bool crosses = t->fetch_bytes && start & 2 && code->bytes == 4;
    if (n + 1 == block->count && ahead.issued_at == at + 1 && !is_predicted(t, ahead.before, p->ends))
        return t->reloads + crosses + redirects_late(p, t, p->ends, 3);
    bool is_late = ahead.issued_at > at + 3 ||
                   (ahead.issued_at > at + 2 && next_leaves_half(block, n, address, p->ends));
    return t->reloads + crosses + (t->flags & LATE_REDIRECTS && is_late);
}

/* Returns the address past its end. */
static uint32_t pipeline_run(Pipeline *p, const Timing *t, const Code *block) {
    uint32_t address = block->address + p->moved;
    for (uint32_t n = 0; n < block->count; address += block->code[n++].bytes) {
        p->reload = reload(p, t, block, n, address);
        issue(p, t, block->code[n], address, block->more ? block->more[n] : 0);
    }
    return address;
}

/* Further cycles of an instruction whose operands have so many bits, or fewer (negative); of a shift `second`
 * is the number of places.
 */
static inline int32_t operand_cycles(const OperandCycles *o, int first, int second) {
    if (o->is_shift) return o->constant + o->amount * second;
    if (o->is_zero_special && !second) return o->zero_divisor;
    int quotient = first >= second ? first - second + 1 : 0;
    int steps = o->quotient_step ? (quotient + o->quotient_step - 1) / o->quotient_step : 0;
    return o->constant + o->divisor_zeros * (32 - second) + o->dividend_bits * first +
           o->quotient_bits * quotient + (quotient ? o->quotient : 0) + steps;
}

static inline uint32_t total(const Spent *s) {
    uint32_t sum = 0;
    for (int n = 0; n < CAUSES; n++) sum += s->by[n];
    return sum;
}

/* Cycles until the flags are there that decide a branch. */
static uint32_t flags_late(const Pipeline *p) {
    int32_t late = p->ready[FLAGS_REGISTER] - p->issued_at;
    return p->before->also_reads >> FLAGS_REGISTER & 1 && late > 0 ? (uint32_t)late : 0;
}

/* A taken branch: cycles that pass beyond the end of the code until an ideal jump would begin to fetch,
 * which is how entries by a jump are timed. Negative: that it waits for others hides its fetch.
 */
static int32_t time_jump(Pipeline *p, const Timing *t, int32_t end, uint64_t ends, Spent *out) {
    uint32_t undecided = flags_late(p), why = CAUSE_BRANCH;
    p->jump_at += (int32_t)undecided;
    if (!t->fetch_bytes) {
        out->by[CAUSE_BRANCH] = p->before->taken + undecided;
        out->by[CAUSE_FETCH] = requested_word(p, t, ends);
        return (int32_t)(out->by[CAUSE_BRANCH] + out->by[CAUSE_FETCH]);
    }
    uint32_t busy = fetch_busy(p, t, p->jump_at);
    int32_t start = p->jump_at - JUMP_FETCH, first = start + (int32_t)busy;
    int32_t fetch = (int32_t)fetch_period(t, p->fetch_at - p->moved) - 1;
    int32_t there = when_free(p, t, first + fetch, p->issued_at + 1, &why);
    if (t->flags & EXECUTES_LATER && !(ends & ENDS_CARRYING)) there = free_cycle(p, there, &why);
    int32_t late = there - fetch - end;
    out->by[CAUSE_BRANCH] = start > end ? (uint32_t)(start - end) : 0;
    int32_t rest = late - (int32_t)out->by[CAUSE_BRANCH];
    if (rest > 0) out->by[rest > (int32_t)busy ? why : CAUSE_FETCH] += (uint32_t)rest;
    return late;
}

/* Cycles of the code that only pass where its branch is not taken. */
static void only_untaken(EntryTime *out, uint32_t cycles) {
    for (int n = CAUSES - 1; n >= 0 && cycles; n--) {
        uint32_t some = out->own.by[n] < cycles ? out->own.by[n] : cycles;
        out->own.by[n] -= some;
        out->untaken.by[n] += some;
        cycles -= some;
    }
}

/* The time of the branch that the code ended with. */
static void time_branch(Pipeline *p, const Timing *t, uint64_t ends, EntryTime *out) {
    const Rule *r = p->before;
    bool predicted = t->flags & PREDICTS_BACKWARD && ends & ENDS_BACKWARD;
    bool keeps_halves = t->flags & LATE_REDIRECTS && t->fetch_bytes;
    bool is_half = keeps_halves && ends & ENDS_HALF_NEXT;
    uint32_t stages = r->flags & RULE_JUMPS ? r->cycles - 1u : r->mispredicted;
    bool is_late = redirects_late(p, t, ends, stages);
    int32_t end = p->now + (p->issued > 0);
    out->taken = out->untaken = (Spent){{0}};
    if (t->flags & PREDICTS_BACKWARD && r->mispredicted) {
        out->taken.by[CAUSE_BRANCH] = predicted ? r->taken + is_half : r->mispredicted + is_late;
        out->untaken.by[CAUSE_BRANCH] = predicted ? r->mispredicted : 0;
        if (predicted && keeps_halves && ends & ENDS_HALF_TARGET) out->untaken.by[CAUSE_BRANCH]++;
        if (predicted && t->fetch_bytes && ends & ENDS_AT_SPLIT) out->untaken.by[CAUSE_FETCH]++;
        return;
    }
    int32_t late = time_jump(p, t, end, ends, &out->taken);
    if (r->flags & RULE_JUMPS) out->taken.by[CAUSE_BRANCH] += is_late_jump(r) ? is_late : is_half;
    if (ends & ENDS_AT_SPLIT && r->taken) out->taken.by[CAUSE_FETCH] += t->split; /* it was under way */
    if (late < 0) only_untaken(out, (uint32_t)-late);
}

/* The time of a block, which is entered in a pipeline's present state. */
static void time_entry(Pipeline *p, const Timing *t, const Code *block, uint64_t ends,
                       EntryTime *out) {
    Spent start = p->spent;
    p->ends = ends;
    pipeline_run(p, t, block);
    for (int n = 0; n < CAUSES; n++) out->own.by[n] = p->spent.by[n] - start.by[n];
    time_branch(p, t, ends, out);
}

/* The code at an address comes after that up to another one: its fetch goes on there. */
static void go_on_at(Pipeline *p, const Timing *t, uint32_t past, uint32_t address) {
    uint32_t unit = t->fetch_bytes ? t->fetch_bytes : 4;
    p->moved = ((past - 1) & ~(unit - 1)) + unit + (address & (unit - 1)) - address;
}

/* Code runs, and leads to other code. Returns the cycles until a jump there, if it is one. */
static int32_t pipeline_lead(Pipeline *p, const Timing *t, const Code *code, const Code *to) {
    p->ends = 0;
    uint32_t past = pipeline_run(p, t, code);
    bool jumps = p->before->flags & RULE_JUMPS;
    if (past - p->moved == to->address && !jumps) return 0;
    if (t->targets && !jumps) {
        go_on_at(p, t, past, to->address);
        return 0;
    }
    Spent ignored = {{0}}, spent = p->spent;
    int32_t end = p->now + (p->issued > 0), fetch = p->jump_at + (int32_t)fetch_busy(p, t, p->jump_at);
    int32_t late = time_jump(p, t, end, ENDS_CARRYING, &ignored);
    if (!(t->flags & EXECUTES_LATER)) {
        pipeline_enter(p, t, to->address, false);
        p->spent = spent;
        return late;
    }
    p->now = end + late;
    open_cycle(p);
    p->freed_until = to->address & ~3u;
    if (t->fetch_bytes) fetch_from(p, t, to->address, fetch);
    return late;
}

/* A block is entered: by a jump where `before` is NULL, else after that; empty: after unknown code. */
static void pipeline_follow(Pipeline *p, const Timing *t, const Code *block, const History *before) {
    uint32_t count = before ? before->count : 0;
    pipeline_enter(p, t, count ? before->code[0].address : block->address, before && !count);
    for (const Code *code = before ? before->code : NULL; count; code++)
        pipeline_lead(p, t, code, --count ? code + 1 : block);
}

/* The time of a block. `before`: what it follows when nothing is taken, for each such entry; empty where
 * that is not known. `ends`: how it ends.
 */
static void time_block(const Timing *t, const Code *block, const History *before, uint64_t ends,
                       BlockTime *out) {
    Pipeline p;
    memset(out, 0, sizeof *out);
    for (uint32_t n = 0; n < ENTRIES; n++) {
        if (n > FALLEN && !before[n - FALLEN].count) continue; /* none so far */
        pipeline_follow(&p, t, block, n == JUMPED ? NULL : &before[n - FALLEN]);
        time_entry(&p, t, block, ends, &out->entry[n]);
    }
}

/* Blocks that run one after the other, and the branch at the end of the last one. */
typedef struct {
    const Code *blocks;
    uint32_t count;
    uint64_t ends;
    bool jumps;
} Path;

/* The time of a path that is entered by a jump where `before` is NULL, else after that. */
static int32_t time_path(const Timing *t, const Path *path, const History *before) {
    const Code *last = &path->blocks[path->count - 1];
    Pipeline p;
    EntryTime out;
    pipeline_follow(&p, t, path->blocks, before);
    int32_t cycles = 0;
    for (const Code *block = path->blocks; block < last; block++) {
        uint32_t start = total(&p.spent);
        int32_t jump = pipeline_lead(&p, t, block, block + 1);
        cycles += (int32_t)(total(&p.spent) - start) + jump;
    }
    time_entry(&p, t, last, path->ends, &out);
    return cycles + (int32_t)(total(&out.own) + total(path->jumps ? &out.taken : &out.untaken));
}

#endif
