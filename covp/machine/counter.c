/* The native side of the virtual device: counts retired instructions and estimated cycles.
 *
 * Unicorn calls on_block before every translated block. A block is known by (address, size); it is
 * decoded once, from the bytes of the host buffer that the emulated memory lives in, and counted
 * from then on by three additions. Everything out of the ordinary (a new block, a marker, a stop
 * that was asked for) goes through on_rare_block, so that the common path stays short.
 *
 * Compiled for the host by covp/machine/counter.py, which mirrors `Machine` and `Rule` with ctypes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alignment.h"
#include "custom.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define LIKELY(x) __builtin_expect(!!(x), 1)

typedef struct uc_struct uc_engine;
typedef int (*emu_stop_fn)(uc_engine *uc);
typedef int (*reg_read_batch_fn)(uc_engine *uc, const int *ids, void **values, int count);
typedef int (*reg_read_fn)(uc_engine *uc, int id, void *value);
typedef int (*reg_write_fn)(uc_engine *uc, int id, const void *value);
typedef struct { uint64_t pc; uint16_t icount; uint16_t size; } UcTb;
typedef struct { uint64_t paddr; uint32_t perms; } UcTlbEntry;

enum { CHUNK_BITS = 18, CHUNK_BLOCKS = 1 << (CHUNK_BITS - 1), CHUNKS = 1 << (32 - CHUNK_BITS) };
enum { PAGE_BITS = 10, MAX_REGIONS = 16 };
enum { UC_MEM_FETCH = 18, UC_PROT_RW = 3, UC_PROT_RWX = 7 };

/* What a rule says about an instruction, beside its cycles. */
enum {
    RULE_SPECIAL = 1,   /* stop in front of it: it needs the host, or this core does not have it */
    RULE_LOAD = 2,      /* the next instruction, if it is RULE_MEMORY, takes a cycle less */
    RULE_MEMORY = 4,
    RULE_COUNTED = 8,   /* list: add the value of these low bits, not how many are set */
};

typedef struct {
    uint32_t bytes, mask, match;
    uint32_t list;  /* one more cycle for every set bit of these (register lists) */
    uint16_t cycles;
    uint16_t taken; /* extra cycles of a conditional branch that is taken */
    uint16_t flags;
    uint16_t unit;  /* neighbours with different units issue together; 0 issues alone */
} Rule;

enum { BLOCK_MARKER = 1, BLOCK_SPECIAL = 2, BLOCK_CHECKED = 4, BLOCK_BREAK = 8 };
/* Runs of a block in which alignment is checked: pointers that go wrong do so early. */
enum { CHECKED_RUNS = 4 };

typedef struct Block {
    uint64_t count;
    struct Block *other; /* the same address with another size */
    uint32_t address;
    uint16_t key;        /* the size, or 0 where the common path must not take it */
    uint16_t size;
    uint16_t instructions, cycles;
    uint8_t taken, flags;
    uint16_t custom;     /* custom instructions that it ends with */
} Block;

typedef struct { uint32_t start, end; const uint8_t *host; uint32_t writable; } Region;
typedef struct { uint64_t instructions, cycles; } Count;
typedef struct { uint32_t address, bucket; } Marker;

typedef struct {
    /* Read and written by Python; mirrored in counter.py. */
    uint64_t instructions, cycles;
    uint64_t limit;       /* the common path counts below it; 0 asks for attention */
    uint64_t ceiling;     /* stop in front of the first block at or above it */
    uint64_t cycle_limit; /* of the next event in time: stop in front of a block at or above it */
    uint32_t fresh;       /* 1: the next block starts an emu_start; decode it again */
    uint32_t stopped;     /* 1: stopped in front of a block, which was not counted */
    uint32_t special;     /* 1: ... because of an instruction in it, at special_pc */
    uint32_t special_pc;
    uint32_t interrupt;   /* 1 + number of the exception that ended the run, or 0 */
    uint32_t access_type; /* uc_mem_type of the access that ended the run, or 0 */
    uint32_t access_address, access_size;
    uint32_t is_thumb;
    uint32_t bucket;
    uint32_t region_count;
    Region regions[MAX_REGIONS];
    uint32_t misaligned;  /* 1: `special` because of a misaligned access; see access_* */
    uint32_t register_count; /* to read in front of new blocks; 0: alignment is not checked */
    int register_ids[32];
    emu_stop_fn emu_stop;
    reg_read_batch_fn reg_read_batch;
    reg_read_fn reg_read;
    reg_write_fn reg_write;
    uint32_t xpsr;        /* Unicorn's number of the register that holds the IT state, or 0 */
    uint32_t breakpoint;  /* 1: `special` because of a breakpoint */
    uint32_t allowed;     /* a special instruction that may be carried out, by itself */
    uint32_t pending;     /* custom instructions that the running block ends with */
    const Rule *rules;
    uint64_t rule_count;
    uint32_t *registers;  /* the emulator's own x0..x31, or NULL where they were not found */
    uint64_t first_register; /* Unicorn's number of x0 */
    /* Only the native side. */
    Block **chunks;
    Block *last;
    uint64_t branch_cycles[2]; /* of the last block's branch: taken, and not: 0 */
    uint32_t fall_through;     /* where the last block leads when it is not taken */
    Block **all;          /* every block ever decoded, for the profile */
    uint64_t all_count, all_room;
    Marker *markers;
    uint64_t marker_count;
    uint32_t *breakpoints; /* sorted */
    uint64_t breakpoint_count;
    Count *buckets;
    uint64_t bucket_count;
    Count switched;       /* totals when the current bucket became current */
    uint8_t *code_pages;  /* a bit for every page that was fetched from */
    Custom *customs;      /* by number; number 0 is none */
    uint32_t custom_count;
} Machine;

/* So that the mirror in counter.py cannot drift. */
EXPORT uint64_t machine_shared_bytes(void) { return offsetof(Machine, chunks); }

EXPORT Machine *machine_new(void) {
    Machine *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->chunks = calloc(CHUNKS, sizeof *m->chunks);
    m->code_pages = calloc(1u << (32 - PAGE_BITS - 3), 1);
    if (!m->chunks || !m->code_pages) {
        free(m->chunks);
        free(m->code_pages);
        free(m);
        return NULL;
    }
    return m;
}

static bool in_chunk(const Machine *m, const Block *b) {
    const Block *chunk = m->chunks[b->address >> CHUNK_BITS];
    return b >= chunk && b < chunk + CHUNK_BLOCKS;
}

EXPORT void machine_free(Machine *m) {
    for (uint64_t i = 0; i < m->all_count; i++)
        if (!in_chunk(m, m->all[i])) free(m->all[i]);
    for (int i = 0; i < CHUNKS; i++) free(m->chunks[i]);
    free(m->chunks);
    free(m->code_pages);
    free(m->customs);
    free(m->all);
    free(m->markers);
    free(m->breakpoints);
    free(m->buckets);
    free(m);
}

static const uint8_t *host_bytes(const Machine *m, uint32_t address, uint32_t size) {
    for (uint32_t i = 0; i < m->region_count; i++) {
        const Region *r = &m->regions[i];
        if (address >= r->start && (uint64_t)address + size <= r->end)
            return r->host + (address - r->start);
    }
    return NULL;
}

static uint32_t half(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8; }

/* The number of the custom instruction that is patched out at p, or 0. */
static uint32_t custom_at(const Machine *m, const uint8_t *p, const uint8_t *end) {
    if (!m->custom_count || p + 4 > end) return 0;
    uint32_t bits;
    memcpy(&bits, p, sizeof bits); /* hosts are little-endian as the cores are */
    uint32_t number = patch_number(bits);
    return number < m->custom_count ? number : 0;
}

/* The instruction at p: its size, and its bits as the manuals write them (Arm: first half on top). */
static uint32_t fetch(const Machine *m, const uint8_t *p, const uint8_t *end, uint32_t *bits) {
    uint32_t number = custom_at(m, p, end);
    if (number) {
        *bits = m->customs[number].bits;
        return 4;
    }
    uint32_t first = half(p);
    bool wide = m->is_thumb ? first >= 0xe800 : (first & 3) == 3;
    *bits = first;
    if (!wide || p + 4 > end) return 2;
    *bits = m->is_thumb ? first << 16 | half(p + 2) : first | half(p + 2) << 16;
    return 4;
}

static const Rule *find_rule(const Machine *m, uint32_t bytes, uint32_t bits) {
    static const Rule one_cycle = {.cycles = 1};
    for (uint64_t i = 0; i < m->rule_count; i++) {
        const Rule *r = &m->rules[i];
        if (r->bytes == bytes && (bits & r->mask) == r->match) return r;
    }
    return &one_cycle;
}

/* Estimated cycles of an instruction behind another one. */
static uint32_t cost(const Rule *rule, uint32_t bits, const Rule *before) {
    uint32_t listed = bits & rule->list;
    uint32_t cycles = rule->cycles;
    cycles += rule->flags & RULE_COUNTED ? listed : (uint32_t)__builtin_popcount(listed);
    if (!before || !cycles) return cycles;
    bool pipelined = (before->flags & RULE_LOAD) && (rule->flags & RULE_MEMORY);
    bool paired = before->unit && rule->unit && before->unit != rule->unit;
    return cycles - (pipelined || paired);
}

static uint16_t common_key(const Block *b) { return b->flags || b->custom ? 0 : b->size; }

/* Fill in what b's bytes say. True when that differs from what was there. */
static bool decode(Machine *m, Block *b) {
    Block was = *b;
    const uint8_t *start = host_bytes(m, b->address, b->size);
    b->instructions = b->cycles = b->taken = 0;
    b->custom = 0;
    b->flags &= BLOCK_MARKER | BLOCK_BREAK;
    if (start) {
        const uint8_t *end = start + b->size;
        const Rule *before = NULL;
        uint32_t bits, size;
        for (const uint8_t *p = start; p + 2 <= end; p += size) {
            size = fetch(m, p, end, &bits);
            const Rule *rule = find_rule(m, size, bits);
            uint32_t cycles = cost(rule, bits, before);
            /* A pair is two instructions, not a chain. */
            before = cycles < rule->cycles && rule->unit ? NULL : rule;
            if (rule->flags & RULE_SPECIAL) b->flags |= BLOCK_SPECIAL;
            b->taken = (uint8_t)rule->taken;
            b->custom = custom_at(m, p, end) ? (uint16_t)(b->custom + 1) : 0;
            b->instructions++;
            b->cycles = (uint16_t)(b->cycles + cycles);
        }
    }
    if (m->register_count && b->count < CHECKED_RUNS) b->flags |= BLOCK_CHECKED;
    b->key = common_key(b);
    return was.instructions != b->instructions || was.cycles != b->cycles;
}

static void remember(Machine *m, Block *b) {
    if (m->all_count == m->all_room) {
        uint64_t room = m->all_room ? 2 * m->all_room : 1024;
        Block **all = realloc(m->all, room * sizeof *all);
        if (!all) abort();
        m->all = all;
        m->all_room = room;
    }
    m->all[m->all_count++] = b;
}

static bool is_marked(const Machine *m, uint32_t address, uint32_t *bucket) {
    for (uint64_t low = 0, high = m->marker_count; low < high;) {
        uint64_t middle = (low + high) / 2;
        if (m->markers[middle].address == address) {
            *bucket = m->markers[middle].bucket;
            return true;
        }
        if (m->markers[middle].address < address) low = middle + 1;
        else high = middle;
    }
    return false;
}

/* Whether there is a breakpoint in start <= address < end; *at tells the first. */
static bool has_breakpoint(const Machine *m, uint32_t start, uint32_t end, uint32_t *at) {
    for (uint64_t i = 0; i < m->breakpoint_count; i++) {
        *at = m->breakpoints[i];
        if (*at >= start) return *at < end;
    }
    return false;
}

static Block *find(Machine *m, uint32_t address, uint32_t size, bool make) {
    Block **chunk = &m->chunks[address >> CHUNK_BITS];
    if (!*chunk) {
        if (!make) return NULL;
        *chunk = calloc(CHUNK_BLOCKS, sizeof(Block));
        if (!*chunk) abort();
    }
    Block *first = *chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1);
    for (Block *b = first; b; b = b->other)
        if (b->size == size) return b;
    if (!make) return NULL;
    Block *b = first;
    if (first->size) {
        b = calloc(1, sizeof *b);
        if (!b) abort();
        b->other = first->other;
        first->other = b;
    }
    b->address = address;
    b->size = (uint16_t)size;
    uint32_t bucket, at;
    if (is_marked(m, address, &bucket)) b->flags = BLOCK_MARKER;
    if (has_breakpoint(m, address, address + size, &at)) b->flags |= BLOCK_BREAK;
    decode(m, b);
    remember(m, b);
    return b;
}

/* The bytes may have changed: what was counted so far keeps its old meaning in the profile. */
static void decode_again(Machine *m, Block *b) {
    Block was = *b;
    if (!decode(m, b) || !was.count) return;
    Block *old = malloc(sizeof *old);
    if (!old) abort();
    *old = was;
    b->count = 0;
    remember(m, old);
}

static void switch_bucket(Machine *m, uint32_t bucket) {
    if (m->bucket < m->bucket_count) {
        m->buckets[m->bucket].instructions += m->instructions - m->switched.instructions;
        m->buckets[m->bucket].cycles += m->cycles - m->switched.cycles;
    }
    m->switched = (Count){m->instructions, m->cycles};
    m->bucket = bucket;
}

static inline void count(Machine *m, Block *b, uint32_t address, uint32_t size) {
    m->instructions += b->instructions;
    /* A table, no branch: the host would mispredict it as often as the emulated one. */
    m->cycles += b->cycles + m->branch_cycles[m->fall_through == address];
    m->fall_through = address + size;
    m->branch_cycles[0] = b->taken;
    b->count++;
    m->last = b;
}

/* The first instruction of a block to stop in front of. */
static uint32_t special_address(const Machine *m, const Block *b) {
    const uint8_t *start = host_bytes(m, b->address, b->size);
    uint32_t bits, size, at;
    for (const uint8_t *p = start; start && p < start + b->size; p += size) {
        uint32_t pc = b->address + (uint32_t)(p - start);
        size = fetch(m, p, start + b->size, &bits);
        if (find_rule(m, size, bits)->flags & RULE_SPECIAL) return pc;
        if (has_breakpoint(m, pc, pc + 1, &at)) return pc;
    }
    return b->address;
}

static void stop_in_front(Machine *m, uc_engine *uc) {
    m->stopped = 1;
    m->limit = 0;
    m->emu_stop(uc);
}

/* Whether the block is about to access misaligned memory; access_* and special_pc tell where. */
static bool finds_misaligned(Machine *m, uc_engine *uc, Block *b) {
    Registers registers = {.known = ~0u};
    uint64_t raw[32] = {0};
    void *values[32];
    const uint8_t *start = host_bytes(m, b->address, b->size);
    if (b->count + 1 >= CHECKED_RUNS) {
        b->flags &= (uint8_t)~BLOCK_CHECKED;
        b->key = common_key(b);
    }
    for (uint32_t i = 0; i < m->register_count; i++) values[i] = &raw[i];
    if (!start || m->reg_read_batch(uc, m->register_ids, values, (int)m->register_count))
        return false;
    for (uint32_t i = 0; i < m->register_count; i++) registers.value[i] = (uint32_t)raw[i];
    uint32_t bits, size;
    for (const uint8_t *p = start; p < start + b->size; p += size) {
        Access access = {0, 0};
        uint32_t pc = b->address + (uint32_t)(p - start);
        size = fetch(m, p, start + b->size, &bits);
        if (m->is_thumb ? follow_thumb(&registers, bits, size == 4, &access)
                        : follow_riscv(&registers, pc, bits, size == 4, &access)) {
            m->special_pc = pc;
            m->access_address = access.address;
            m->access_size = access.size;
            return true;
        }
    }
    return false;
}

static void on_rare_block(Machine *m, uc_engine *uc, uint32_t address, uint32_t size) {
    bool fresh = m->fresh;
    if (fresh) {
        m->fresh = 0;
        m->limit = m->ceiling;
    }
    if (m->instructions >= m->limit || m->cycles >= m->cycle_limit) {
        stop_in_front(m, uc);
        return;
    }
    Block *b = find(m, address, size, true);
    if (fresh) decode_again(m, b);
    if ((b->flags & (BLOCK_SPECIAL | BLOCK_BREAK)) && address != m->allowed) {
        uint32_t at;
        m->special = 1;
        m->special_pc = special_address(m, b);
        m->breakpoint = has_breakpoint(m, m->special_pc, m->special_pc + 1, &at);
        stop_in_front(m, uc);
        return;
    }
    if ((b->flags & BLOCK_CHECKED) && finds_misaligned(m, uc, b)) {
        m->special = m->misaligned = 1;
        stop_in_front(m, uc);
        return;
    }
    uint32_t bucket;
    if ((b->flags & BLOCK_MARKER) && is_marked(m, address, &bucket)) switch_bucket(m, bucket);
    count(m, b, address, size);
    m->pending = b->custom;
}

static uint32_t read_register(const Machine *m, uc_engine *uc, uint32_t number) {
    if (LIKELY(m->registers != NULL)) return m->registers[number];
    uint64_t value = 0;
    m->reg_read(uc, (int)(m->first_register + number), &value);
    return (uint32_t)value;
}

static void carry_out(Machine *m, uc_engine *uc, Custom *c) {
    if (!c->function) return;
    uint32_t a = read_register(m, uc, c->rs1), b = read_register(m, uc, c->rs2);
    uint64_t result = c->function(a, b, c->state);
    c->uses++;
    if (!c->rd) return;
    if (LIKELY(m->registers != NULL)) m->registers[c->rd] = (uint32_t)result;
    else m->reg_write(uc, (int)(m->first_register + c->rd), &result);
}

/* The core has arrived at an address: carry out the custom instructions in front of it, unless the
 * block that they end was left earlier.
 */
static void carry_out_pending(Machine *m, uc_engine *uc, uint32_t address) {
    uint32_t count = m->pending;
    m->pending = 0;
    if (address != m->fall_through) return;
    const uint8_t *p = host_bytes(m, address - 4 * count, 4 * count);
    if (!p) return;
    Custom *customs = m->customs;
    const uint32_t *registers = m->registers;
    for (; count > 1 && registers; count--, p += 4) {
        /* all but the last write no register */
        Custom *c = &customs[custom_at(m, p, p + 4)];
        if (!LIKELY(c->function && !c->rd)) break;
        c->function(registers[c->rs1], registers[c->rs2], c->state);
        c->uses++;
    }
    for (; count; count--, p += 4) carry_out(m, uc, &customs[custom_at(m, p, p + 4)]);
}

EXPORT void on_block(uc_engine *uc, uint64_t address64, uint32_t size, void *user) {
    Machine *m = user;
    uint32_t address = (uint32_t)address64;
    if (m->pending) carry_out_pending(m, uc, address);
    Block *chunk = m->chunks[address >> CHUNK_BITS];
    if (LIKELY(chunk != NULL)) {
        Block *b = chunk + ((address & ((1u << CHUNK_BITS) - 1)) >> 1);
        bool room = m->instructions < m->limit && m->cycles < m->cycle_limit;
        if (LIKELY(b->key == size && room)) {
            count(m, b, address, size);
            return;
        }
        if (LIKELY(b->custom && !b->flags && b->size == size && room)) {
            count(m, b, address, size);
            m->pending = b->custom;
            return;
        }
    }
    on_rare_block(m, uc, address, size);
}

EXPORT void on_new_edge(uc_engine *uc, UcTb *current, UcTb *previous, void *user) {
    (void)uc;
    (void)previous;
    Machine *m = user;
    Block *b = find(m, (uint32_t)current->pc, current->size, false);
    if (b) decode_again(m, b);
}

/* The IT bits of xPSR: 26-25 and 15-10. */
enum { IT_BITS = 0x0600fc00 };

/* Before a fill Unicorn restores the state of the accessing instruction, with the IT bits as they are
 * in the middle of an IT block, and goes on without taking them back: the next block of code would
 * then run under a condition that is not its own. Inside a block they are 0, always.
 */
static void clear_it_bits(Machine *m, uc_engine *uc) {
    uint64_t value = 0;
    if (m->reg_read(uc, (int)m->xpsr, &value) || !(value & IT_BITS)) return;
    value &= ~(uint64_t)IT_BITS;
    m->reg_write(uc, (int)m->xpsr, &value);
}

/* Only pages that were fetched from are executable: stores to all others take the fast path. */
EXPORT bool on_tlb_fill(uc_engine *uc, uint64_t address, int type, UcTlbEntry *entry, void *user) {
    Machine *m = user;
    if (m->xpsr && type != UC_MEM_FETCH) clear_it_bits(m, uc);
    uint32_t page = (uint32_t)address >> PAGE_BITS;
    uint8_t bit = (uint8_t)(1u << (page & 7));
    if (type == UC_MEM_FETCH) m->code_pages[page >> 3] |= bit;
    entry->paddr = address & ~(uint64_t)((1 << PAGE_BITS) - 1);
    entry->perms = m->code_pages[page >> 3] & bit ? UC_PROT_RWX : UC_PROT_RW;
    return true;
}

EXPORT bool on_invalid_access(uc_engine *uc, int type, uint64_t address, int size, int64_t value,
                              void *user) {
    (void)uc;
    (void)value;
    Machine *m = user;
    m->access_type = (uint32_t)type;
    m->access_address = (uint32_t)address;
    m->access_size = (uint32_t)size;
    return false;
}

EXPORT void on_exception(uc_engine *uc, uint32_t number, void *user) {
    Machine *m = user;
    m->interrupt = number + 1;
    m->emu_stop(uc);
}

EXPORT bool on_invalid_instruction(uc_engine *uc, void *user) {
    (void)uc;
    (void)user;
    return false;
}

/* The last block was left at pc: take back what it did not do. */
EXPORT void machine_left_at(Machine *m, uint32_t pc) {
    Block *b = m->last;
    if (!b || pc < b->address || pc >= b->address + b->size) return;
    b->count--;
    m->instructions -= b->instructions;
    m->cycles -= b->cycles;
    m->last = NULL;
    m->branch_cycles[0] = 0;
    if (pc == b->address) return;
    Block *done = find(m, b->address, pc - b->address, true);
    m->instructions += done->instructions;
    m->cycles += done->cycles;
    done->count++;
}

/* Totals in front of the instruction at pc in the block that is running. */
EXPORT void machine_now(Machine *m, uint32_t pc, Count *now) {
    *now = (Count){m->instructions, m->cycles};
    Block *b = m->last;
    if (!b || pc < b->address || pc >= b->address + b->size) return;
    now->instructions -= b->instructions;
    now->cycles -= b->cycles;
    if (pc == b->address) return;
    const Block *done = find(m, b->address, pc - b->address, true);
    now->instructions += done->instructions;
    now->cycles += done->cycles;
}

/* Where the block that is running starts; 0 before the first one. */
EXPORT uint32_t machine_block(const Machine *m) { return m->last ? m->last->address : 0; }

/* Whether an address lies in the block that ran last. */
EXPORT int machine_ran_last(const Machine *m, uint32_t address) {
    const Block *b = m->last;
    return b && address >= b->address && address < b->address + b->size;
}

/* The bits of the instruction at an address, 0 outside the memory. */
EXPORT uint32_t machine_opcode(const Machine *m, uint32_t address) {
    const uint8_t *p = host_bytes(m, address, 2);
    uint32_t bits = 0;
    if (p) fetch(m, p, host_bytes(m, address, 4) ? p + 4 : p + 2, &bits);
    return bits;
}

/* Count one instruction that the host carried out. */
EXPORT void machine_count_one(Machine *m, uint32_t address, uint32_t size) {
    Block *b = find(m, address, size, true);
    m->last = NULL;
    m->branch_cycles[0] = 0;
    count(m, b, address, size);
    m->last = NULL;
    m->branch_cycles[0] = 0;
}

/* markers sorted by address; buckets start at zero and bucket 0 is current. */
EXPORT int machine_set_markers(Machine *m, const Marker *markers, uint64_t count_, uint64_t buckets) {
    Marker *copy = malloc((count_ + 1) * sizeof *copy);
    Count *zero = calloc(buckets + 1, sizeof *zero);
    if (!copy || !zero) {
        free(copy);
        free(zero);
        return 0;
    }
    memcpy(copy, markers, count_ * sizeof *copy);
    free(m->markers);
    free(m->buckets);
    m->markers = copy;
    m->marker_count = count_;
    m->buckets = zero;
    m->bucket_count = buckets;
    m->bucket = 0;
    m->switched = (Count){m->instructions, m->cycles};
    for (uint64_t i = 0; i < m->all_count; i++) {
        Block *b = m->all[i];
        uint32_t bucket;
        b->flags &= (uint8_t)~BLOCK_MARKER;
        if (is_marked(m, b->address, &bucket)) b->flags |= BLOCK_MARKER;
        b->key = common_key(b);
    }
    return 1;
}

/* Replaces all breakpoints; the addresses are sorted. */
EXPORT int machine_set_breakpoints(Machine *m, const uint32_t *addresses, uint64_t count_) {
    uint32_t *copy = malloc((count_ + 1) * sizeof *copy);
    if (!copy) return 0;
    memcpy(copy, addresses, count_ * sizeof *copy);
    free(m->breakpoints);
    m->breakpoints = copy;
    m->breakpoint_count = count_;
    for (uint64_t i = 0; i < m->all_count; i++) {
        Block *b = m->all[i];
        uint32_t at;
        b->flags &= (uint8_t)~BLOCK_BREAK;
        if (has_breakpoint(m, b->address, b->address + b->size, &at)) b->flags |= BLOCK_BREAK;
        b->key = common_key(b);
    }
    return 1;
}

/* Another program starts: bucket 0, and no branch leads from what ran before. */
EXPORT void machine_start(Machine *m) {
    switch_bucket(m, 0);
    m->last = NULL;
    m->branch_cycles[0] = 0;
}

EXPORT uint64_t machine_buckets(Machine *m, Count *out) {
    switch_bucket(m, m->bucket);
    memcpy(out, m->buckets, m->bucket_count * sizeof *out);
    return m->bucket_count;
}

typedef struct { uint64_t count; uint32_t address, size, instructions, cycles; } BlockCount;

/* Blocks that ran, into out (room for that many); returns how many there are. */
EXPORT uint64_t machine_blocks(const Machine *m, BlockCount *out, uint64_t room) {
    uint64_t used = 0;
    for (uint64_t i = 0; i < m->all_count; i++) {
        const Block *b = m->all[i];
        if (!b->count) continue;
        if (used < room)
            out[used] = (BlockCount){b->count, b->address, b->size, b->instructions, b->cycles};
        used++;
    }
    return used;
}

/* The current bucket, and the total of cycles at which it had spent none. */
EXPORT uint32_t machine_phase(const Machine *m, uint64_t *origin) {
    uint64_t spent = m->bucket < m->bucket_count ? m->buckets[m->bucket].cycles : 0;
    *origin = m->switched.cycles - spent;
    return m->bucket;
}

/* All that a snapshot holds of the counts but the buckets. */
typedef struct { Count total, switched; uint64_t branch_cycles; uint32_t fall_through, bucket; } Progress;

EXPORT void machine_save(const Machine *m, Progress *to, Count *buckets) {
    *to = (Progress){{m->instructions, m->cycles}, m->switched, m->branch_cycles[0],
                     m->fall_through, m->bucket};
    memcpy(buckets, m->buckets, m->bucket_count * sizeof *buckets);
}

/* The markers must be those of the snapshot. */
EXPORT void machine_load(Machine *m, const Progress *from, const Count *buckets) {
    m->instructions = from->total.instructions;
    m->cycles = from->total.cycles;
    m->switched = from->switched;
    m->branch_cycles[0] = from->branch_cycles;
    m->fall_through = from->fall_through;
    m->bucket = from->bucket;
    m->last = NULL;
    memcpy(m->buckets, buckets, m->bucket_count * sizeof *buckets);
}

/* A run has ended at pc. */
EXPORT void machine_settle(Machine *m, uc_engine *uc, uint32_t pc) {
    if (m->pending) carry_out_pending(m, uc, pc);
}

/* What the bits do from now on; a NULL function: nothing, they are refused by a rule. Returns the
 * number that stands for them in memory, or 0 where there are no more.
 */
EXPORT uint32_t machine_set_custom(Machine *m, uint32_t bits, CustomFunction function,
                                   CfuState *state) {
    uint32_t number = 1;
    while (number < m->custom_count && m->customs[number].bits != bits) number++;
    if (number >= m->custom_count) {
        if (number == PATCH_NUMBERS) return 0;
        Custom *customs = realloc(m->customs, (number + 1) * sizeof *customs);
        if (!customs) return 0;
        if (number == 1) customs[0] = (Custom){0};
        m->customs = customs;
        m->custom_count = number + 1;
    }
    m->customs[number] = (Custom){0, function, state, bits, bits >> 7 & 31, bits >> 15 & 31,
                                  bits >> 20 & 31};
    return number;
}

EXPORT uint64_t machine_custom_uses(const Machine *m, uint32_t number) {
    return m->customs[number].uses;
}

EXPORT void machine_set_custom_uses(Machine *m, uint32_t number, uint64_t uses) {
    m->customs[number].uses = uses;
}

/* The bits that replace a custom instruction in memory; ``quiet`` where another one is behind it. */
EXPORT uint32_t machine_patch(uint32_t number, int quiet) {
    return quiet ? quiet_of(number) : patch_of(number);
}

/* The rules have changed. */
EXPORT void machine_decode_all(Machine *m) {
    uint64_t known = m->all_count;
    for (uint64_t i = 0; i < known; i++) {
        Block *b = m->all[i];
        if (find(m, b->address, b->size, false) == b) decode_again(m, b);
    }
}
