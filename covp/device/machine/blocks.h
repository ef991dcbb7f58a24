/* The table of blocks: found by address and size, decoded once, and again where code changes. */
#ifndef COVP_BLOCKS_H
#define COVP_BLOCKS_H

#include "branches.h"
#include "breakpoints.h"
#include "buckets.h"
#include "counter_state.h"
#include "decode.h"
#include "memories.h"

static bool in_chunk(const Machine *m, const Block *b) {
    const Block *chunk = m->chunks[b->address >> CHUNK_BITS];
    return b >= chunk && b < chunk + CHUNK_BLOCKS;
}

/* Whether the common path may take a block. */
static void set_key(const Machine *m, Block *b) {
    bool plain = !b->flags && !b->after && !m->cache_count && !m->shadow && !m->timeline;
    for (uint32_t n = 0; n < ENTRIES; n++) b->runs[n].key = plain ? (uint16_t)(b->size + 1) : 0;
}

/* Whether b ends with a direct branch. */
static bool ends_direct(const Machine *m, const Block *b) {
    uint32_t target;
    return b->instructions && direct_branch(m, b->version->code[b->instructions - 1], 0, &target);
}

/* The code of a block. */
static Code code_of(const Block *b) {
    return (Code){b->version->code, b->instructions, b->address, NULL};
}

/* The address of an instruction of a block. */
static uint32_t pc_of(const Block *b, uint32_t index) {
    uint32_t pc = b->address;
    for (uint32_t n = 0; n < index && n < b->instructions; n++) pc += b->version->code[n].bytes;
    return pc;
}

/* The place in a block of the instruction at an address, or after all of them. */
static uint32_t place_of(const Block *b, uint32_t address) {
    uint32_t n = 0;
    for (uint32_t at = b->address; n < b->instructions && at < address;) at += b->version->code[n++].bytes;
    return n;
}

/* The instruction at a place of a block. */
static Instruction instruction_at(const Block *b, uint32_t place) {
    return place < b->instructions ? b->version->code[place] : (Instruction){.bytes = 2};
}

/* The target of the direct branch at b's end, or NOWHERE. */
static uint32_t target_of(const Machine *m, const Block *b) {
    uint32_t target = NOWHERE;
    if (b->instructions) {
        Instruction last = b->version->code[b->instructions - 1];
        direct_branch(m, last, b->address + b->size - last.bytes, &target);
    }
    return target;
}

/* -- pasts: the way to the end of a block that was entered in some way is a number ------------------- */

static Block *end_of(const Machine *m, uint64_t way) { return m->all[(way - 1) / ENTRIES]; }

/* The way to the start of that block; 0: a jump. */
static uint64_t way_before(const Machine *m, uint64_t way) {
    uint32_t entry = (uint32_t)((way - 1) % ENTRIES);
    return entry == JUMPED ? 0 : end_of(m, way)->version->before[entry - FALLEN];
}

/* Whether a block that ran before an address jumped there. */
static bool jumps_to(const Block *b, uint32_t address) {
    return b->version->ends & ENDS_JUMPING || b->address + b->size != address;
}

/* The code that ran before a block that is entered in some way, as far as it counts. */
static History history(const Machine *m, const Block *b, uint32_t entry) {
    Code found[DEPTH];
    History h = {.count = 0};
    uint32_t count = 0, jumps = 0;
    for (uint64_t way = b->version->before[entry - FALLEN]; way && count < DEPTH; way = way_before(m, way)) {
        uint32_t to = b->address;
        b = end_of(m, way);
        jumps += jumps_to(b, to);
        if (jumps > 1) break;
        found[count++] = code_of(b);
    }
    while (count) h.code[h.count++] = found[--count];
    return h;
}

/* How many blocks two ways to an address have in common up to their end; DEPTH: all that count. */
static uint32_t in_common(const Machine *m, uint64_t one, uint64_t other, uint32_t to) {
    uint32_t count = 0, jumps = 0;
    for (; one && other && end_of(m, one) == end_of(m, other) && count < DEPTH; count++) {
        const Block *b = end_of(m, one);
        jumps += jumps_to(b, to);
        if (jumps > 1) return DEPTH;
        to = b->address;
        one = way_before(m, one);
        other = way_before(m, other);
    }
    return one || other ? count : DEPTH;
}

/* Whether a long instruction starts in the middle of a word; or it looks like that. */
static bool splits(const Machine *m, uint32_t address) {
    const uint8_t *p = address & 2 ? host_bytes(m, address, 2) : NULL;
    return p && (m->is_thumb ? half(p) >= 0xe800 : (half(p) & 3) == 3);
}

static const Rule *rule_at(const Machine *m, const Block *b, uint32_t place) {
    return find_rule(m->timing, b->version->code[place]);
}

/* Whether loads and stores may wait. Segments may be timed with any memory. */
static bool may_wait(const Machine *m) {
    bool waits = m->segments;
    for (uint32_t n = 0; n < m->timing->wait_count; n++) waits |= m->timing->waits[n].data > 0;
    return waits;
}

/* Whether what ran just before b's jump may still execute when that is done. */
static bool outlasts_jump(const Machine *m, const Block *b) {
    if (!(m->timing->flags & EXECUTES_LATER) && !m->segments) return false;
    for (uint32_t n = 2; n <= 3 && n <= b->instructions; n++) {
        const Rule *r = rule_at(m, b, b->instructions - n);
        bool accesses = r->flags & (RULE_LOAD | RULE_STORE);
        if (r->cause == CAUSE_MULTIPLY || (accesses && may_wait(m))) return true;
    }
    return false;
}

/* Whether the n-th instruction from an address on leaves a short one in its word. */
static bool leaves_half(const Machine *m, uint32_t address, int n) {
    for (; n > 0; n--) {
        const uint8_t *p = host_bytes(m, address, 2);
        if (!p) return false;
        address += (half(p) & 3) == 3 ? 4 : 2;
        if (n == 1) return address & 2 && host_bytes(m, address, 2) && !splits(m, address);
    }
    return false;
}

/* Of the code at an address and at the target of the branch before it what may be there when that goes on
 * elsewhere. RISC-V alone.
 */
static uint64_t ends_before(const Machine *m, uint32_t past, uint32_t target) {
    const uint8_t *p = host_bytes(m, past, 8);
    if (m->is_thumb || !p) return 0;
    Instruction first = fetch(m, p, p + 8), second = fetch(m, p + first.bytes, p + 8);
    if (first.is_custom || second.is_custom) return 0;
    uint64_t ends = (uint64_t)(first.bits & 0x7fffffff) << ENDS_NEXT_SHIFT; /* Python's are signed */
    if (depends(m->timing, first, second)) ends |= ENDS_DEPENDENT;
    if (leaves_half(m, past, 1)) ends |= ENDS_HALF_NEXT;
    uint32_t next = NOWHERE;
    bool jumps = direct_branch(m, first, past, &next) &&
                 (next < past || find_rule(m->timing, first)->flags & RULE_JUMPS);
    bool at_target = !leaves_half(m, past, 2) && !splits(m, next) && leaves_half(m, next, 1);
    if (jumps ? at_target : leaves_half(m, past, 3)) ends |= ENDS_HALF_LATER;
    int there = 2 - splits(m, target) - (ends & ENDS_HALF_NEXT ? 1 : 0);
    if (target != NOWHERE && leaves_half(m, target, there)) ends |= ENDS_HALF_TARGET;
    return ends;
}

/* How b's code ends. */
static uint64_t ends_of(const Machine *m, const Block *b) {
    uint32_t target = target_of(m, b), past = b->address + b->size;
    uint64_t ends = ends_before(m, past, target);
    if (splits(m, past)) ends |= ENDS_AT_SPLIT;
    if (outlasts_jump(m, b)) ends |= ENDS_CARRYING;
    if (b->instructions && rule_at(m, b, b->instructions - 1)->flags & RULE_JUMPS) ends |= ENDS_JUMPING;
    if (target == NOWHERE) return ends;
    if (target < past) ends |= ENDS_BACKWARD;
    if (target & 2 && !(past & 2) && splits(m, past + 2)) ends |= ENDS_MISTAKEN;
    if (splits(m, target)) ends |= ENDS_TO_SPLIT;
    return ends;
}

/* What b's code costs. */
static void time_code(Machine *m, Block *b) {
    Version *v = b->version;
    Code block = code_of(b);
    History before[BEFORE];
    for (uint32_t n = 0; n < BEFORE; n++) before[n] = history(m, b, FALLEN + n);
    v->ends = ends_of(m, b);
    b->next = v->ends & ENDS_JUMPING ? NOWHERE : b->address + b->size;
    if (v->ends & ENDS_CARRYING) m->carries = 1;
    time_block(m->timing, &block, before, v->ends, &v->time);
    for (int n = 0; n < ENTRIES; n++) {
        const EntryTime *time = &v->time.entry[n];
        EntryRuns *runs = &b->runs[n];
        runs->cycles = total(&time->own);
        runs->branch[0] = (uint16_t)total(&time->taken);
        runs->branch[1] = (uint16_t)total(&time->untaken);
    }
}

static void free_version(Version *version) {
    if (version) {
        free(version->code);
        free(version->expected);
    }
    free(version);
}

/* A version for code of so many bytes; NULL: there is no memory for it. */
static Version *new_version(Machine *m, uint32_t bytes) {
    Version *version = zeroed(m, 1, sizeof *version);
    if (!version) return NULL;
    version->code = zeroed(m, bytes / 2 + 1u, sizeof *version->code);
    if (times_memories(m)) version->expected = zeroed(m, bytes / 2 + 1u, sizeof *version->expected);
    if (version->code && (version->expected || !times_memories(m))) return version;
    free_version(version);
    return NULL;
}

/* Decode b's bytes into b and a new version of it. */
static void decode(Machine *m, Block *b, Version *version) {
    const uint8_t *start = host_bytes(m, b->address, b->size), *end = start + b->size;
    version->function = function_at(m, b->address);
    b->version = version;
    b->instructions = 0;
    b->after = 0;
    b->flags &= BLOCK_MARKER | BLOCK_BREAK | BLOCK_LEARNT;
    if (version->expected) b->flags |= BLOCK_NEW;
    for (const uint8_t *p = start; start && p + 2 <= end;) {
        Instruction i = fetch(m, p, end);
        if (is_special(m, p, end, i)) b->flags |= BLOCK_SPECIAL;
        b->after = i.is_custom ? (uint16_t)(b->after + 1) : 0;
        if (version->expected && !i.is_custom) {
            Met expected = version->expected[b->instructions] = expected_at(m, b->address, b->instructions, i.bits);
            set_met(m, &i, expected);
        }
        version->code[b->instructions++] = i;
        p += i.bytes;
    }
    time_code(m, b);
    if (m->tracing && !ends_direct(m, b)) b->after |= AFTER_EDGE;
    if (!m->is_thumb && b->next != NOWHERE && b->next == target_of(m, b)) b->after |= AFTER_NEXT;
    if (m->timing->targets && b->version->ends & ENDS_BACKWARD && b->next != NOWHERE) b->after |= AFTER_BRANCH;
}

static bool same_code(const Block *a, const Block *b) {
    return a->instructions == b->instructions &&
           !memcmp(a->version->code, b->version->code, b->instructions * sizeof(Instruction));
}

/* Whether two versions of a block have to be told apart. */
static bool differ(const Block *a, const Block *b) {
    const Version *one = a->version, *other = b->version;
    return !same_code(a, b) || one->ends != other->ends || memcmp(&one->time, &other->time, sizeof one->time);
}

/* Room for another version; false: there is no memory for it. */
static bool can_remember(Machine *m) {
    if (m->all_count < m->all_room) return true;
    uint64_t room = m->all_room ? 2 * m->all_room : 1024;
    Block **all = grown(m, m->all, room * sizeof *all);
    if (!all) return false;
    m->all = all;
    m->all_room = room;
    return true;
}

static void remember(Machine *m, Block *b) {
    b->version->index = m->all_count;
    m->all[m->all_count++] = b;
}

/* Whether b's code reaches the stop. Also where b runs into it without a branch, as the emulator leaves an
 * illegal instruction out of the size of the block that it is in.
 */
static void mark_stop(const Machine *m, Block *b) {
    bool runs_in = b->next == m->stop_at && !ends_direct(m, b);
    bool reaches = lies_in(b, m->stop_at) || runs_in;
    b->flags = (uint8_t)(reaches ? b->flags | BLOCK_STOP : b->flags & ~BLOCK_STOP);
}

static void set_flags(Machine *m, Block *b) {
    mark_stop(m, b);
    set_key(m, b);
}

static Block *block_at(const Machine *m, uint32_t address) {
    Block *chunk = m->chunks[address >> CHUNK_BITS];
    Block *b = chunk ? chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1) : NULL;
    return b && b->size ? b : NULL;
}

/* Of b is not known how what comes after it is entered. */
static void forget_follows(Block *b) {
    for (uint32_t n = 0; n < ENTRIES; n++) {
        b->runs[n].follows = UNKNOWN_WAY;
        b->runs[n].leads_to = NOWHERE;
    }
}

/* The block of so many bytes at an address. NULL: there is none, or no memory to make it. */
static Block *find(Machine *m, uint32_t address, uint32_t size, bool make) {
    Block **chunk = &m->chunks[address >> CHUNK_BITS];
    if (!*chunk) {
        if (make) *chunk = zeroed(m, CHUNK_BLOCKS, sizeof(Block));
        if (!*chunk) return NULL;
    }
    Block *first = *chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1);
    for (Block *b = first; b && b->size; b = b->version->other)
        if (b->size == size) return b;
    if (!make || !can_remember(m)) return NULL;
    Version *version = new_version(m, size);
    Block *b = !version ? NULL : first->size ? zeroed(m, 1, sizeof *b) : first;
    if (!b) {
        free_version(version);
        return NULL;
    }
    b->address = address;
    b->size = (uint16_t)size;
    uint32_t bucket, at;
    if (is_marked(m, address, &bucket)) b->flags = BLOCK_MARKER;
    if (has_breakpoint(m, address, address + size, &at)) b->flags |= BLOCK_BREAK;
    if (b != first) memcpy(version->before, first->version->before, sizeof version->before);
    decode(m, b, version);
    set_flags(m, b);
    forget_follows(b);
    if (b != first) {
        b->version->other = first->version->other;
        first->version->other = b;
    }
    remember(m, b);
    return b;
}

/* Whether code on a way has changed since. */
static bool has_changed(Machine *m, uint64_t way) {
    for (uint32_t n = 0; way && n < DEPTH; n++, way = way_before(m, way)) {
        const Block *b = end_of(m, way);
        if (find(m, b->address, b->size, false) != b) return true;
    }
    return false;
}

/* Whether code that b follows has. */
static bool follows_changed(Machine *m, const Block *b) {
    for (uint32_t n = 0; n < BEFORE; n++)
        if (has_changed(m, b->version->before[n])) return true;
    return false;
}

/* Whether decoding b again would change nothing. */
static bool is_current(Machine *m, const Block *b) {
    const uint8_t *p = host_bytes(m, b->address, b->size), *end = p + b->size;
    for (uint32_t n = 0; p && n < b->instructions; p += b->version->code[n++].bytes) {
        Instruction is = fetch(m, p, end), was = b->version->code[n];
        if (is.bits != was.bits || is.is_custom || was.is_custom) return false;
    }
    return p && !follows_changed(m, b);
}

/* The bytes may have changed: what was counted so far belongs to what they were. `anew`: so do the ways to b. */
static void renew(Machine *m, Block *b, bool anew) {
    Block was = *b, *old = zeroed(m, 1, sizeof *old);
    Version *version = old && can_remember(m) ? new_version(m, b->size) : NULL;
    if (!version) {
        free(old);
        return;
    }
    if (!anew) memcpy(version->before, was.version->before, sizeof version->before);
    decode(m, b, version);
    if (!anew && !differ(&was, b)) {
        free_version(b->version);
        b->version = was.version;
        b->flags = was.flags;
        set_flags(m, b);
        free(old);
        return;
    }
    b->version->other = was.version->other;
    if (runs_of(&was) || m->tracing || m->far_count || m->varied_count) {
        *old = was;
        m->all[was.version->index] = old;
        if (m->last == b) {
            m->latest = old->runs + last_entry(m);
            m->last = old;
        }
        for (uint32_t n = 0; n < ENTRIES; n++) b->runs[n].count = b->runs[n].jumped = 0;
        remember(m, b);
    } else {
        b->version->index = was.version->index;
        free_version(was.version);
        free(old);
    }
    set_flags(m, b);
    forget_follows(b);
}

/* All ways to the blocks at an address are to be found anew. */
static void forget_ways(Machine *m, uint32_t address) {
    for (Block *b = block_at(m, address); b; b = b->version->other) renew(m, b, true);
    for (uint64_t n = 0; n < m->all_count; n++) forget_follows(m->all[n]);
    if (m->fall_through == address) m->latest->follows = way_of_last(m) ? UNKNOWN_WAY : FALLEN;
}

static void decode_again(Machine *m, Block *b) {
    if (follows_changed(m, b)) forget_ways(m, b->address);
    else renew(m, b, false);
}

/* Whether no block at b's address was entered in a way so far. */
static bool is_unused(const Machine *m, const Block *b, uint32_t entry) {
    bool is_used = b->version->before[entry - FALLEN];
    for (b = block_at(m, b->address); b; b = b->version->other) is_used |= b->runs[entry].count > 0;
    return !is_used;
}

/* How b is entered after a way; where nothing is left for it as after the most similar one, or by a jump. */
static uint32_t entry_after(Machine *m, Block *b, uint64_t way) {
    uint32_t found = JUMPED, unused = UNKNOWN_WAY;
    int best = -1;
    for (uint32_t n = FALLEN; n < ENTRIES; n++) {
        uint64_t known = b->version->before[n - FALLEN];
        int common = known ? (int)in_common(m, known, way, b->address) : -1;
        if (common > best) best = common, found = n;
        if (unused == UNKNOWN_WAY && is_unused(m, b, n)) unused = n;
    }
    if (best == DEPTH || unused == UNKNOWN_WAY) return found;
    for (Block *same = block_at(m, b->address); same; same = same->version->other) {
        same->version->before[unused - FALLEN] = way;
        time_code(m, same);
    }
    return unused;
}

/* How b is entered, after the code that ran last. */
static uint32_t known_entry(Machine *m, Block *b, uint32_t entry) {
    if (LIKELY(entry != UNKNOWN_WAY)) return entry;
    if (b->version->before[BEFORE - 1] && follows_changed(m, b)) forget_ways(m, b->address);
    EntryRuns *from = m->latest;
    entry = entry_after(m, b, way_of_last(m));
    if (m->fall_through == b->address) from->follows = (uint8_t)entry;
    else from->leads_to = b->address, from->leads = (uint8_t)entry;
    return entry;
}

/* As `find` makes it, of the bytes that are there now. */
static Block *find_current(Machine *m, uint32_t address, uint32_t size) {
    Block *b = find(m, address, size, true);
    if (b && !is_current(m, b)) decode_again(m, b);
    return b;
}

/* Custom instructions have changed. */
EXPORT void machine_decode_all(Machine *m) {
    uint64_t known = m->all_count;
    for (uint64_t i = 0; i < known; i++) {
        Block *b = m->all[i];
        if (find(m, b->address, b->size, false) == b) decode_again(m, b);
    }
}

#endif
