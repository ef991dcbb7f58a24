/* The table of blocks: found by address and size, decoded once, and again where code changes. */
#ifndef COVP_BLOCKS_H
#define COVP_BLOCKS_H

#include "branches.h"
#include "breakpoints.h"
#include "buckets.h"
#include "counter_state.h"
#include "decode.h"

/* Runs of a block in which alignment is checked: pointers that go wrong do so early. */
enum { CHECKED_RUNS = 4 };

static void *must(void *memory) {
    if (!memory) abort();
    return memory;
}

static bool in_chunk(const Machine *m, const Block *b) {
    const Block *chunk = m->chunks[b->address >> CHUNK_BITS];
    return b >= chunk && b < chunk + CHUNK_BLOCKS;
}

static uint16_t common_key(const Block *b) {
    return b->flags || b->after ? 0 : (uint16_t)(b->size + 1);
}

/* Whether b ends with a direct branch. */
static bool ends_direct(const Machine *m, const Block *b) {
    uint32_t target;
    return b->instructions && direct_branch(m, b->version->code[b->instructions - 1], 0, &target);
}

/* The code of a block. */
static Code code_of(const Block *b) {
    return (Code){b->version->code, b->instructions, b->address};
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

/* What b's code costs. */
static void time_code(Machine *m, Block *b) {
    Version *v = b->version;
    Code block = code_of(b), before = v->before ? code_of(m->all[v->before - 1]) : block;
    uint32_t target = target_of(m, b);
    bool jumps = false;
    if (b->instructions) {
        Instruction last = v->code[b->instructions - 1];
        jumps = !last.is_custom && find_rule(m->timing, last)->flags & RULE_JUMPS;
    }
    b->next = jumps ? NOWHERE : b->address + b->size;
    bool backward = target != NOWHERE && target < b->address + b->size;
    time_block(m->timing, &block, v->before ? &before : NULL, backward, &v->time);
    for (int n = 0; n < ENTRIES; n++) {
        const EntryTime *time = &v->time.entry[n];
        b->cycles[n] = total(&time->own);
        b->branch[n][0] = (uint16_t)total(&time->taken);
        b->branch[n][1] = (uint16_t)total(&time->untaken);
    }
}

/* Decode b's bytes into b and a new version of it, which follows `before`. */
static void decode(Machine *m, Block *b, uint64_t before) {
    const uint8_t *start = host_bytes(m, b->address, b->size), *end = start + b->size;
    Version *version = must(calloc(1, sizeof *version));
    version->code = must(calloc(b->size / 2 + 1u, sizeof *version->code));
    version->before = before;
    version->function = function_at(m, b->address);
    b->version = version;
    b->instructions = 0;
    b->after = 0;
    b->flags &= BLOCK_MARKER | BLOCK_BREAK;
    for (const uint8_t *p = start; start && p + 2 <= end;) {
        Instruction i = fetch(m, p, end);
        if (is_special(m, p, end, i)) b->flags |= BLOCK_SPECIAL;
        b->after = i.is_custom ? (uint16_t)(b->after + 1) : 0;
        version->code[b->instructions++] = i;
        p += i.bytes;
    }
    time_code(m, b);
    if (m->tracing && !ends_direct(m, b)) b->after |= AFTER_EDGE;
}

static bool differ(const Block *a, const Block *b) {
    return a->instructions != b->instructions ||
           memcmp(&a->version->time, &b->version->time, sizeof a->version->time) ||
           memcmp(a->version->code, b->version->code, b->instructions * sizeof(Instruction));
}

static void free_version(Version *version) {
    free(version->code);
    free(version);
}

static void remember(Machine *m, Block *b) {
    if (m->all_count == m->all_room) {
        uint64_t room = m->all_room ? 2 * m->all_room : 1024;
        m->all = must(realloc(m->all, room * sizeof *m->all));
        m->all_room = room;
    }
    b->version->index = m->all_count;
    m->all[m->all_count++] = b;
}

static void set_flags(Machine *m, Block *b) {
    if (m->register_count && runs_of(b) < CHECKED_RUNS) b->flags |= BLOCK_CHECKED;
    b->key = common_key(b);
}

/* The block that ran last, where code at an address follows it: its `before`. */
static uint64_t runs_into(const Machine *m, uint32_t address) {
    const Block *last = m->last;
    bool follows = last != &m->nowhere && last->address + last->size == address;
    return follows ? last->version->index + 1 : 0;
}

static Block *find(Machine *m, uint32_t address, uint32_t size, bool make) {
    Block **chunk = &m->chunks[address >> CHUNK_BITS];
    if (!*chunk) {
        if (!make) return NULL;
        *chunk = must(calloc(CHUNK_BLOCKS, sizeof(Block)));
    }
    Block *first = *chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1);
    for (Block *b = first; b && b->size; b = b->version->other)
        if (b->size == size) return b;
    if (!make) return NULL;
    Block *b = first->size ? must(calloc(1, sizeof *b)) : first;
    b->address = address;
    b->size = (uint16_t)size;
    uint32_t bucket, at;
    if (is_marked(m, address, &bucket)) b->flags = BLOCK_MARKER;
    if (has_breakpoint(m, address, address + size, &at)) b->flags |= BLOCK_BREAK;
    decode(m, b, runs_into(m, address));
    set_flags(m, b);
    if (b != first) {
        b->version->other = first->version->other;
        first->version->other = b;
    }
    remember(m, b);
    return b;
}

/* The bytes may have changed: what was counted so far belongs to what they were. */
static void decode_again(Machine *m, Block *b) {
    Block was = *b;
    decode(m, b, was.version->before);
    if (!differ(&was, b)) {
        free_version(b->version);
        b->version = was.version;
        set_flags(m, b);
        return;
    }
    b->version->other = was.version->other;
    if (runs_of(&was) || m->tracing || m->far_count) {
        Block *old = must(malloc(sizeof *old));
        *old = was;
        m->all[was.version->index] = old;
        if (m->last == b) m->last = old;
        b->settled_runs = 0;
        memset(b->runs, 0, sizeof b->runs);
        memset(b->jumped, 0, sizeof b->jumped);
        remember(m, b);
    } else {
        b->settled_runs = 0;
        b->version->index = was.version->index;
        free_version(was.version);
    }
    set_flags(m, b);
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
