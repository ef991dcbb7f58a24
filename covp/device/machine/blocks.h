/* The table of blocks: found by address and size, decoded once, and again where code changes. */
#ifndef COVP_BLOCKS_H
#define COVP_BLOCKS_H

#include "branches.h"
#include "breakpoints.h"
#include "buckets.h"
#include "counter_state.h"
#include "decode.h"
#include "memories.h"

enum { LONGEST = 512 }; /* bytes of a block, to look for what others follow */

static bool in_chunk(const Machine *m, const Block *b) {
    const Block *chunk = m->chunks[b->address >> CHUNK_BITS];
    return b >= chunk && b < chunk + CHUNK_BLOCKS;
}

static uint16_t common_key(const Machine *m, const Block *b) {
    bool plain = !b->flags && !b->after && !m->cache_count && !m->shadow;
    return !plain || m->timeline ? 0 : (uint16_t)(b->size + 1);
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

/* The code that ran up to the end of a block, known by 1 + its place in `all`, when that was first met. */
static History history(const Machine *m, uint64_t last) {
    Code found[DEPTH];
    History h = {.count = 0};
    uint32_t count = 0;
    while (last && count < DEPTH) {
        const Version *v = m->all[last - 1]->version;
        found[count++] = code_of(m->all[last - 1]);
        last = v->first == JUMPED ? 0 : v->before[v->first - FALLEN];
    }
    while (count) h.code[h.count++] = found[--count];
    return h;
}

/* Whether a long instruction starts in the middle of a word; or it looks like that. */
static bool splits(const Machine *m, uint32_t address) {
    const uint8_t *p = address & 2 ? host_bytes(m, address, 2) : NULL;
    return p && (m->is_thumb ? half(p) >= 0xe800 : (half(p) & 3) == 3);
}

/* How b's code ends. */
static uint32_t ends_of(const Machine *m, const Block *b) {
    uint32_t target = target_of(m, b), past = b->address + b->size, ends = 0;
    if (splits(m, past)) ends |= ENDS_AT_SPLIT;
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
    for (uint32_t n = 0; n < BEFORE; n++) before[n] = history(m, v->before[n]);
    bool jumps = false;
    if (b->instructions) {
        Instruction last = v->code[b->instructions - 1];
        jumps = !last.is_custom && find_rule(m->timing, last)->flags & RULE_JUMPS;
    }
    b->next = jumps ? NOWHERE : b->address + b->size;
    v->ends = ends_of(m, b);
    time_block(m->timing, &block, before, v->ends, &v->time);
    for (int n = 0; n < ENTRIES; n++) {
        const EntryTime *time = &v->time.entry[n];
        b->cycles[n] = total(&time->own);
        b->branch[n][0] = (uint16_t)total(&time->taken);
        b->branch[n][1] = (uint16_t)total(&time->untaken);
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

/* Decode b's bytes into b and a new version of it, which follows what `was` did. */
static void decode(Machine *m, Block *b, Version *version, const Version *was) {
    const uint8_t *start = host_bytes(m, b->address, b->size), *end = start + b->size;
    memcpy(version->before, was->before, sizeof version->before);
    version->first = was->first;
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
            Met expected = version->expected[b->instructions] = expected_at(m, b->address, b->instructions);
            for (uint32_t n = 0; n < expected.times; n++) set_met(m, &i, expected.met);
        }
        version->code[b->instructions++] = i;
        p += i.bytes;
    }
    time_code(m, b);
    if (m->tracing && !ends_direct(m, b)) b->after |= AFTER_EDGE;
}

static bool same_code(const Block *a, const Block *b) {
    return a->instructions == b->instructions &&
           !memcmp(a->version->code, b->version->code, b->instructions * sizeof(Instruction));
}

/* Whether two versions of a block have to be told apart; those of a trace may be timed in another way. */
static bool differ(const Machine *m, const Block *a, const Block *b) {
    const Version *one = a->version, *other = b->version;
    return !same_code(a, b) || memcmp(&one->time, &other->time, sizeof one->time) ||
           ((m->tracing || m->segments) && memcmp(one->before, other->before, sizeof one->before));
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
    b->key = common_key(m, b);
}

/* The block that ran last, where code at an address follows it: its `before`. */
static uint64_t runs_into(const Machine *m, uint32_t address) {
    const Block *last = m->last;
    bool follows = last != &m->nowhere && last->next == address; /* not where it jumps there */
    return follows ? last->version->index + 1 : 0;
}

static Block *block_at(const Machine *m, uint32_t address) {
    Block *chunk = m->chunks[address >> CHUNK_BITS];
    Block *b = chunk ? chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1) : NULL;
    return b && b->size ? b : NULL;
}

/* A block that was not entered so yet follows the one at a place in `all`, minus 1. */
static void follow(Machine *m, Block *b, uint32_t entry, uint64_t before) {
    uint64_t *known = &b->version->before[entry - FALLEN];
    if (*known || !before || b->runs[entry]) return;
    *known = before;
    time_code(m, b);
}

/* Whether the memory of a block holds something else by now. */
static bool has_changed(const Machine *m, const Block *b) {
    const uint8_t *p = host_bytes(m, b->address, b->size), *end = p + b->size;
    for (uint32_t n = 0; p && n < b->instructions; p += b->version->code[n++].bytes)
        if (fetch(m, p, end).bits != b->version->code[n].bits) return true;
    return false;
}

/* The next longer block that ends at an address, of those of at least `bytes`. */
static const Block *leading(const Machine *m, uint32_t address, uint32_t bytes) {
    for (; bytes <= LONGEST && bytes <= address; bytes += 2)
        for (const Block *b = block_at(m, address - bytes); b; b = b->version->other)
            if (b->size == bytes && b->next == address && !has_changed(m, b)) return b;
    return NULL;
}

/* How an address was entered, and what the blocks before it are. */
static Version arrival_at(const Machine *m, uint32_t address) {
    Version v = {.first = JUMPED};
    uint64_t last = runs_into(m, address);
    if (last) {
        v.first = m->follows;
        v.before[v.first - FALLEN] = last;
    }
    for (const Block *b = leading(m, address, 2); b; b = leading(m, address, b->size + 2u))
        if (!v.before[b->follows - FALLEN]) v.before[b->follows - FALLEN] = b->version->index + 1;
    return v;
}

/* A new block: code after it is entered from it in a way of its own, as long as there are some. */
static void lead(Machine *m, Block *b) {
    uint32_t used = 0;
    b->follows = FALLEN;
    if (b->next == NOWHERE) return;
    for (const Block *other = leading(m, b->next, 2); other; other = leading(m, b->next, other->size + 2u))
        used |= other == b ? 0 : 1u << other->follows;
    while (b->follows < ENTRIES - 1 && used >> b->follows & 1) b->follows++;
    for (Block *next = block_at(m, b->next); next; next = next->version->other)
        follow(m, next, b->follows, b->version->index + 1);
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
    Version arrived = arrival_at(m, address), *version = new_version(m, size);
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
    decode(m, b, version, &arrived);
    set_flags(m, b);
    if (b != first) {
        b->version->other = first->version->other;
        first->version->other = b;
    }
    remember(m, b);
    lead(m, b);
    return b;
}

/* Whether code that b follows has changed since. */
static bool follows_changed(Machine *m, const Block *b) {
    for (uint32_t n = 0; n < BEFORE; n++) {
        uint64_t place = b->version->before[n];
        const Block *before = place ? m->all[place - 1] : NULL;
        if (before && find(m, before->address, before->size, false) != before) return true;
    }
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

/* The bytes may have changed: what was counted so far belongs to what they were. `arrived`: how b is entered;
 * NULL: as it was, or as it is now if it has changed. Whether b or what it follows is another one now.
 */
static bool renew(Machine *m, Block *b, const Version *arrived) {
    Block was = *b, *old = zeroed(m, 1, sizeof *old);
    Version *version = old && can_remember(m) ? new_version(m, b->size) : NULL;
    if (!version) {
        free(old);
        return false;
    }
    decode(m, b, version, was.version);
    bool changed = !same_code(&was, b);
    Version now;
    if (!arrived && (changed || follows_changed(m, b))) {
        now = arrival_at(m, b->address);
        arrived = &now;
    }
    if (arrived) {
        memcpy(version->before, arrived->before, sizeof version->before);
        version->first = arrived->first;
        time_code(m, b);
    }
    if (!differ(m, &was, b)) {
        bool follows = memcmp(was.version->before, b->version->before, sizeof was.version->before);
        memcpy(was.version->before, b->version->before, sizeof was.version->before);
        was.version->first = b->version->first;
        free_version(b->version);
        b->version = was.version;
        b->flags = was.flags;
        set_flags(m, b);
        free(old);
        return follows;
    }
    b->version->other = was.version->other;
    if (runs_of(&was) || m->tracing || m->far_count || m->varied_count) {
        *old = was;
        m->all[was.version->index] = old;
        if (m->last == b) m->last = old;
        memset(b->runs, 0, sizeof b->runs);
        memset(b->jumped, 0, sizeof b->jumped);
        remember(m, b);
    } else {
        b->version->index = was.version->index;
        free_version(was.version);
        free(old);
    }
    set_flags(m, b);
    if (changed) lead(m, b);
    return true;
}

/* Renew what falls out of a block that was known by `last`, see `history`, so many blocks far. */
static void renew_after(Machine *m, const Block *b, uint64_t last, uint32_t depth) {
    Block *next = b->next == NOWHERE ? NULL : block_at(m, b->next);
    for (; next && depth; next = next->version->other) {
        uint64_t known = next->version->index + 1;
        Version arrived = *next->version;
        if (arrived.before[b->follows - FALLEN] != last) continue;
        arrived.before[b->follows - FALLEN] = b->version->index + 1;
        renew(m, next, &arrived);
        renew_after(m, next, known, depth - 1);
    }
}

/* The same, and what that means for the blocks that run after it. */
static void decode_again(Machine *m, Block *b) {
    uint64_t last = b->version->index + 1;
    if (renew(m, b, NULL)) renew_after(m, b, last, DEPTH);
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
