/* Edges: how often the core went from the end of a block to an address.
 *
 * A block that ends with a direct branch leads to one of two addresses, and its counts say how often
 * to each. The others (returns, jumps to registers) count their targets, with `tracing` on, before
 * the next block: those with few in their version, the rest in a hash table.
 */
#ifndef COVP_EDGES_H
#define COVP_EDGES_H

#include "blocks.h"
#include "branches.h"

static FarEdge *far_slot(FarEdge *table, uint64_t room, const Version *from, uint32_t to) {
    uint64_t hash = ((uintptr_t)from ^ (uint64_t)to << 20) * 0x9e3779b97f4a7c15u;
    for (uint64_t i = hash >> 32;; i++) {
        FarEdge *edge = &table[i & (room - 1)];
        if (!edge->from || (edge->from == from && edge->to == to)) return edge;
    }
}

static bool grow_far_edges(Machine *m) {
    uint64_t room = m->far_room ? 2 * m->far_room : 256;
    FarEdge *table = zeroed(m, room, sizeof *table);
    if (!table) return false;
    for (uint64_t i = 0; i < m->far_room; i++) {
        FarEdge *edge = &m->far_edges[i];
        if (edge->from) *far_slot(table, room, edge->from, edge->to) = *edge;
    }
    free(m->far_edges);
    m->far_edges = table;
    m->far_room = room;
    return true;
}

static uint64_t *far_edge(Machine *m, const Version *from, uint32_t to) {
    if (2 * m->far_count >= m->far_room && !grow_far_edges(m)) return &m->outside.left[0];
    FarEdge *edge = far_slot(m->far_edges, m->far_room, from, to);
    if (!edge->from) {
        *edge = (FarEdge){from, to, 0};
        m->far_count++;
    }
    return &edge->count;
}

static uint64_t *new_edge(Machine *m, Version *from, uint32_t to) {
    for (int i = 0; i < NEAR_EDGES; i++) {
        if (!from->left[i]) from->to[i] = to;
        if (from->to[i] == to) return &from->left[i];
    }
    return far_edge(m, from, to);
}

/* The core goes to an address; if the last block counts its targets, count this one. */
static inline void count_edge(Machine *m, uint32_t to) {
    if (!(m->last->after & AFTER_EDGE)) return;
    Version *from = m->last->version;
    /* Arithmetic, no branches: the host would mispredict them as often as the emulated ones. */
    unsigned first = from->to[0] != to;
    unsigned near = first + (first & (from->to[1] != to));
    if (LIKELY(from->to[near] == to && from->left[near])) from->left[near]++;
    else ++*new_edge(m, from, to);
}

typedef struct {
    uint64_t runs[ENTRIES], jumped[ENTRIES], ended[ENTRIES], away[ENTRIES];
    uint64_t before[BEFORE]; /* their ways, see blocks.h; 0: not known */
    BlockTime time;
    uint32_t address, size, instructions;
    uint32_t target; /* of the direct branch at its end, or NOWHERE: it counts its targets */
    uint64_t ends;
    int64_t turned;
} BlockCount;

/* Every version of every block, into out (room for that many); returns how many there are. */
EXPORT uint64_t machine_blocks(const Machine *m, BlockCount *out, uint64_t room) {
    for (uint64_t n = 0; n < m->all_count && n < room; n++) {
        const Block *b = m->all[n];
        const Version *v = b->version;
        out[n] = (BlockCount){.time = v->time, .address = b->address,
                              .size = b->size, .instructions = b->instructions,
                              .ends = v->ends, .target = target_of(m, b), .turned = v->turned};
        memcpy(out[n].before, v->before, sizeof v->before);
        for (uint32_t entry = 0; entry < ENTRIES; entry++) {
            out[n].runs[entry] = b->runs[entry].count;
            out[n].jumped[entry] = b->runs[entry].jumped;
            bool is_last = b == m->last && entry == last_entry(m);
            out[n].ended[entry] = v->ended[entry] + is_last;
            out[n].away[entry] = v->away[entry] + (is_last && m->fall_through != m->pc);
        }
    }
    return m->all_count;
}

/* The instructions of a block by its place among all; there are as many as the block says. */
EXPORT void machine_code(const Machine *m, uint64_t index, Instruction *out) {
    const Block *b = m->all[index];
    memcpy(out, b->version->code, b->instructions * sizeof *out);
}

typedef struct { uint64_t from, to, count; } EdgeCount;

static void put_edge(EdgeCount *out, uint64_t room, uint64_t *used, FarEdge edge) {
    if (!edge.from || !edge.count) return;
    if (*used < room) out[*used] = (EdgeCount){edge.from->index, edge.to, edge.count};
    ++*used;
}

/* The edges that were counted, by the places of their blocks among all; as machine_blocks. */
EXPORT uint64_t machine_edges(const Machine *m, EdgeCount *out, uint64_t room) {
    uint64_t used = 0;
    for (uint64_t i = 0; i < m->all_count; i++) {
        const Version *from = m->all[i]->version;
        for (int n = 0; n < NEAR_EDGES; n++)
            put_edge(out, room, &used, (FarEdge){from, from->to[n], from->left[n]});
    }
    for (uint64_t i = 0; i < m->far_room; i++) put_edge(out, room, &used, m->far_edges[i]);
    return used;
}

/* Count edges from now on, or no more. */
EXPORT void machine_trace_edges(Machine *m, int on) {
    m->tracing = on != 0;
    machine_decode_all(m);
}

#endif
