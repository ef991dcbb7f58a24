/* The state of the instruction counter: what is known of code, and what was counted.
 *
 * The first part of `Machine`, and the small structures, are mirrored with ctypes by counter.py.
 */
#ifndef COVP_COUNTER_STATE_H
#define COVP_COUNTER_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../timing/pipeline.h"
#include "cache_lines.h"
#include "custom.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
enum { LACKS_RESERVE = 1, HAS_LOST = 2 };
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define SELDOM __attribute__((noinline))

typedef struct uc_struct uc_engine;
typedef int (*emu_stop_fn)(uc_engine *uc);
typedef int (*reg_read_fn)(uc_engine *uc, int id, void *value);
typedef int (*hook_add_fn)(uc_engine *uc, size_t *handle, int type, void *callback, void *user,
                           uint64_t begin, uint64_t end, ...);
typedef int (*reg_write_fn)(uc_engine *uc, int id, const void *value);
typedef int (*context_alloc_fn)(uc_engine *uc, void **context);
typedef int (*context_fn)(uc_engine *uc, void *context);
typedef int (*context_free_fn)(void *context);
typedef int (*emu_start_fn)(uc_engine *uc, uint64_t pc, uint64_t stop, uint64_t timeout, size_t count);

enum { CHUNK_BITS = 17, CHUNK_BLOCKS = 1 << (CHUNK_BITS - 1), CHUNKS = 1 << (32 - CHUNK_BITS) };
enum { PAGE_BITS = 10 };

/* Instructions that the emulator leaves to the host, or that it takes for ordinary ones. */
typedef struct { uint32_t bytes, mask, match, is_special; } Special;

enum {
    BLOCK_MARKER = 1,
    BLOCK_SPECIAL = 2,
    BLOCK_NEW = 4,     /* what its accesses meet is learnt in its next run */
    BLOCK_BREAK = 8,
    BLOCK_STOP = 16,
    BLOCK_LEARNT = 32, /* ... was learnt: it is to be translated again */
};

typedef struct Version Version;
enum { NOWHERE = 1 }; /* an address where no code is */

enum { UNKNOWN_WAY = ENTRIES, WAYS }; /* it was not gone so far */

/* Runs of a block that was entered in one way. */
typedef struct {
    uint64_t count;
    uint64_t jumped;    /* how often the next block was not the one directly after it */
    uint32_t cycles;
    uint32_t leads_to;  /* where it jumped last, if that has a past */
    uint16_t branch[2]; /* cycles of the branch at its end: taken, not taken */
    uint16_t key;       /* 1 + size of the block; 0 where the common path must not take it, or no block is */
    uint8_t leads;      /* how the block at `leads_to` is entered */
    uint8_t follows;    /* how the block directly after it is entered, or UNKNOWN_WAY */
} EntryRuns;

/* Straight-line code that the emulator translated as a whole. */
typedef struct Block {
    Version *version;
    uint32_t address;
    uint32_t next;       /* the address past its end; NOWHERE after a jump */
    uint16_t size;
    uint16_t instructions;
    uint16_t after;      /* custom instructions that it ends with, and AFTER_EDGE, AFTER_NEXT, AFTER_BRANCH */
    uint8_t flags;
    EntryRuns runs[WAYS]; /* the last one has no key */
} Block;

static inline uint64_t runs_of(const Block *b) {
    uint64_t runs = 0;
    for (int entry = 0; entry < ENTRIES; entry++) runs += b->runs[entry].count;
    return runs;
}

/* Count where the core goes after the block; its branch leads to the next instruction in any case, or to a
 * lower address, which may be predicted; it has met something that was not expected.
 */
enum { AFTER_EDGE = 0x8000, AFTER_NEXT = 0x4000, AFTER_BRANCH = 0x2000, AFTER_MET = 0x10000 };
enum { NEAR_EDGES = 3 };

/* What an instruction meets, and how often in a run; see memories.h. */
typedef struct { uint8_t met, times; } Met;

typedef struct { uint64_t runs, jumped, ended; } RunCount;
typedef struct { int64_t runs, taken, ended; } RunCut;

/* A block's content at one time; code that changes gives the block another version. */
struct Version {
    struct Block *other; /* the same address with another size */
    Instruction *code;
    uint64_t index;      /* in `all` */
    uint64_t ended[ENTRIES]; /* how often nothing followed it */
    uint64_t away[ENTRIES];  /* ... and the core was elsewhere than past its end */
    BlockTime time;
    uint64_t settled_runs;     /* see causes.h */
    RunCount settled[ENTRIES]; /* how much of its counts is in `spending` */
    uint32_t function;   /* that it belongs to; 0: none */
    uint64_t before[BEFORE]; /* the way to the end of the code that it follows, by entry; 0: none; see blocks.h */
    uint64_t ends;       /* see model.h */
    int64_t turned;      /* how much more often its branch was taken than is counted as a jump: it was predicted */
    Met *expected;       /* what its instructions are expected to meet */
    uint64_t run;        /* `instructions` in the run in which that is learnt; 0: not yet */
    RunCut cut[ENTRIES]; /* how much of its counts is in segments */
    uint64_t left[NEAR_EDGES]; /* how often the core went from it ... */
    uint32_t to[NEAR_EDGES];   /* ... to these addresses */
};

/* Runs of an instruction with operands of some sizes, in a block that was entered in some way. */
typedef struct {
    const Version *version;
    uint32_t before;     /* 1 + the place of what the core met otherwise on its way here, or 0 */
    uint16_t place;      /* of the instruction */
    uint8_t entry, kind, first;
    int16_t second;
    int32_t own, cycles; /* that it takes more by its rule, and its block */
    uint64_t count, cut; /* runs; how many of them are in segments */
} Varied;

/* A store of the instruction with this number of all that run. */
typedef struct { uint64_t at; uint32_t address, size; } Stored;

/* What an instruction of the block at an address meets, so often in a run; 0 times: nothing is known. Another
 * instruction may take its place.
 */
typedef struct { uint32_t block, bits; uint16_t place; uint8_t met, times; } Learnt;

/* An edge that found no room in its version. */
typedef struct { const Version *from; uint32_t to; uint64_t count; } FarEdge;

typedef struct { uint32_t start, end; const uint8_t *host; uint32_t writable; uint8_t *dirty; } Region;

/* In place of a block's size: an access of the bytes in the lower bits, by the instruction above them. */
enum { IS_ACCESS = (int)(1u << 31), IS_STORE = 1 << 30, INDEX_SHIFT = 8, INDEX_MASK = 0xffff };
typedef struct { uint64_t instructions, cycles; } Count;
typedef struct { uint32_t address, bucket; } Marker;

/* Causes of cycles in which no code runs. */
enum { CAUSE_WAITED = CAUSES, CAUSE_EXCEPTIONS, ALL_CAUSES };

/* Instructions, and cycles by cause. */
typedef struct { uint64_t instructions, by[ALL_CAUSES]; } Spending;

enum { MOST_KEPT = 512 };
/* A byte of memory as it was. */
typedef struct { uint32_t address; uint8_t byte; } KeptByte;

/* Bytes: loaded, stored, and of the instructions that ran. */
typedef struct { uint64_t read, written, fetched; } Moved;

typedef struct Machine {
    /* Read and written by Python; mirrored in counter.py. */
    uint64_t instructions, cycles;
    uint64_t limit;       /* the common path counts below it; 0 asks for attention */
    uint64_t ceiling;     /* stop before the first block at or above it */
    uint64_t cycle_limit; /* of the next event in time: stop before a block at or above it */
    uint32_t fresh;       /* 1: the next block starts an emu_start; decode it again */
    uint32_t stopped;     /* 1: stopped before a block, which was not counted */
    uint32_t special;     /* 1: ... because of an instruction in it, at special_pc */
    uint32_t special_pc;
    uint32_t interrupt;   /* 1 + number of the exception that ended the run, or 0 */
    uint32_t given_up;    /* 1: the run ended at the access of access_*; see given_up.h */
    uint32_t access_address, access_size; /* of the latest access that was looked at; 0 bytes: none */
    uint32_t is_thumb;
    uint32_t bucket;
    uint32_t region_count;
    Region regions[MAX_REGIONS];
    uint32_t misaligned;  /* 1: a misaligned access, which is a fault, ended the run; see access_* */
    uint32_t all_aligned; /* 1: every misaligned access of this core is a fault */
    emu_stop_fn emu_stop;
    reg_read_fn reg_read;
    reg_write_fn reg_write;
    uint32_t xpsr;        /* Unicorn's number of the register that holds the IT state, or 0 */
    uint32_t breakpoint;  /* 1: `special` because of a breakpoint */
    uint32_t allowed;     /* a special instruction that may be executed, by itself */
    uint32_t pending;     /* what the running block has to be followed by: its `after` */
    const Timing *timing;
    const Special *specials;
    uint64_t special_count;
    uint32_t *registers;  /* the emulator's own x0..x31, or NULL where they were not found */
    uint64_t first_register; /* Unicorn's number of x0 */
    uint64_t tracing;     /* 1: edges are counted; set by machine_trace_edges */
    hook_add_fn hook_add;
    uint32_t retranslate; /* 1: `stopped` because the block at retranslate_pc has to be */
    uint32_t retranslate_pc;
    uint32_t tells_memories; /* 1: the time of accesses depends on which memory they meet */
    int64_t extra[CAUSES];     /* cycles beside those of the blocks */
    uint64_t traffic[MAX_REGIONS][2]; /* bytes read and written, while accesses are looked at */
    int64_t memory_cycles;    /* of `extra`, those that depend on addresses */
    Cache *caches;
    uint64_t cache_count;
    uint64_t looks_at_accesses; /* 1: translated code calls before each of them */
    uint64_t store_window; /* where stores to the flash with a controller go; see tlb.h */
    uint32_t flash_start, flash_bytes; /* that flash; 0 bytes: there is none */
    emu_start_fn emu_start;
    uint32_t pc_register; /* Unicorn's number of it */
    uint32_t wait_bytes;  /* of a WFI */
    uint32_t pc;          /* where the latest run ended, even */
    uint32_t plain_end;   /* 1: it came to its stop, and nothing else has to be looked at */
    uint32_t explains;    /* 1: what cycles passed with is kept by bucket */
    uint32_t honours_stop; /* 1: the run ends before `stop_at` */
    uint32_t counts_accesses; /* 1: loads and stores are counted, with their bytes and waits */
    struct Shadow *shadow; /* memory is checked; see shadow.h. NULL: it is not */
    context_alloc_fn context_alloc;
    context_fn context_save, context_restore; /* NULL where calls are inlined */
    context_free_fn context_free;
    uint32_t lacks_memory; /* why nothing ran, or what ran does not count: see reserve.h */
    /* Only the native side. */
    bool starts;               /* a program: there was no run of it yet */
    bool lost;                 /* counts, as there was no memory for them */
    Block **chunks;
    uint64_t block_start;      /* cycle in which the block started, where there are caches */
    Block *last;               /* the block that runs, or `nowhere` */
    uint32_t targets[MOST_TARGETS]; /* addresses past the branches whose targets are known, the latest first */
    uint32_t target_count;
    uint32_t fall_through;     /* where the last block leads when it is not taken; 1: nowhere */
    uint32_t carries;          /* 1: blocks may end with a jump to what has a past */
    EntryRuns *latest;         /* of the last block: of how it was entered */
    uint64_t past;             /* of `nowhere`: the way to where the code goes on; 0: unknown */
    Block nowhere;
    Version outside;           /* of `nowhere` */
    FarEdge *far_edges;        /* a hash table */
    uint64_t far_count, far_room;
    Varied *varied;            /* in the order of their first runs, ... */
    uint32_t *varied_slots;    /* ... and a hash table of their places, plus 1 */
    uint64_t varied_count, varied_room;
    uint64_t met_run;          /* `instructions` in the first run of what is learnt ... */
    uint32_t met_place;        /* ... of the instruction at this place, ... */
    uint32_t met_words;        /* ... of which so many words were seen */
    bool is_learning;          /* the block that runs met something for the first time, and is not timed with it */
    uint32_t path;             /* 1 + the place in `varied` of how the core came here, or 0 */
    Stored stored[2];          /* the latest ones; see accesses.h */
    uint32_t unmet;            /* 1: the load is only done again where its cache holds the line */
    Learnt *learnt;            /* a hash table; see memories.h */
    uint64_t learnt_count, learnt_room;
    Block **all;          /* every version of a block, for the profile */
    uint64_t all_count, all_room;
    Marker *markers;
    uint64_t marker_count;
    uint32_t stop_at;      /* see machine_set_stop */
    uint32_t *breakpoints; /* sorted */
    uint64_t breakpoint_count;
    Count *buckets;
    uint64_t bucket_count;
    Spending *spending;   /* for each bucket by function */
    Moved *moved;         /* for each bucket by region */
    uint64_t settled_traffic[MAX_REGIONS][2]; /* how much of `traffic` is in it */
    Marker *function_marks; /* where functions begin and end; see machine_set_functions */
    uint64_t function_mark_count, function_count;
    Count switched;       /* totals when the current bucket became current */
    uint8_t *code_pages;  /* a bit for every page that was fetched from */
    uint32_t *watched;    /* addresses of instructions that a hook looks at */
    uint64_t watched_count;
    Custom *customs;      /* by number; number 0 is none */
    uint32_t custom_count;
    uc_engine *engine;    /* whose calls are inlined, or NULL */
    const char *processor; /* of it */
    uint8_t *slow_accesses; /* of each page, modulo 256 */
    const uint32_t *load_hooks, *store_hooks; /* how many there are; NULL: not known */
    uint64_t idle[ALL_CAUSES - CAUSES]; /* cycles in which no code ran */
    struct Segments *segments; /* see segments.h; NULL: none are kept */
    struct Timeline *timeline; /* see timeline.h; NULL: nothing is logged */
    KeptByte kept[MOST_KEPT]; /* what the access, and what follows if it is given up, store over, ... */
    uint32_t kept_count;
    void *context;        /* ... and the registers before it, ... */
    bool has_context;     /* ... if it is in an IT block */
    struct Machine *other_machine;
} Machine;

static inline const Region *region_of(const Machine *m, uint32_t address) {
    for (uint32_t n = 0; n < m->region_count; n++)
        if (address >= m->regions[n].start && address < m->regions[n].end) return &m->regions[n];
    return NULL;
}

static inline const uint8_t *host_bytes(const Machine *m, uint32_t address, uint32_t size) {
    for (uint32_t i = 0; i < m->region_count; i++) {
        const Region *r = &m->regions[i];
        if (address >= r->start && (uint64_t)address + size <= r->end)
            return r->host + (address - r->start);
    }
    return NULL;
}

/* Nothing has run that a branch could lead from; the code goes on at `next`. */
static inline void forget_last(Machine *m, uint32_t next) {
    m->last = &m->nowhere;
    m->latest = m->nowhere.runs;
    m->past = m->path = 0;
    m->fall_through = next;
    *m->latest = (EntryRuns){.follows = FALLEN};
}

/* The way to the end of a block that was entered in some way; see blocks.h. */
static inline uint64_t way_through(const Block *b, uint32_t entry) {
    return 1 + b->version->index * ENTRIES + entry;
}

/* How the last block was entered. */
static inline uint32_t last_entry(const Machine *m) { return (uint32_t)(m->latest - m->last->runs); }

/* The way to the end of the block that ran last; 0: unknown. */
static inline uint64_t way_of_last(const Machine *m) {
    return m->last == &m->nowhere ? m->past : way_through(m->last, last_entry(m));
}

/* The code goes on at `next` after a way, of which nothing is to be counted any more. */
static inline void go_on_after(Machine *m, uint64_t way, uint32_t next) {
    forget_last(m, next);
    m->past = way;
    if (way) m->latest->follows = UNKNOWN_WAY;
}

/* Nothing follows the block that ran last, which led to `at`; the code goes on at `next`. */
static inline void end_last(Machine *m, uint32_t at, uint32_t next) {
    bool falls = m->fall_through == at && at == next;
    m->last->version->ended[last_entry(m)]++;
    m->last->version->away[last_entry(m)] += m->fall_through != at;
    go_on_after(m, falls ? way_of_last(m) : 0, next);
}

static inline bool lies_in(const Block *b, uint32_t address) {
    return address >= b->address && address < b->address + b->size;
}

#endif
