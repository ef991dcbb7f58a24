/* A timing model, and the times of code that come of it; mirrored with ctypes by native.py. */
#ifndef COVP_TIMING_MODEL_H
#define COVP_TIMING_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Why a cycle passed. */
enum {
    CAUSE_ISSUE,    /* an instruction issued */
    CAUSE_OPERAND,  /* waiting for the result of a load, or another that comes late */
    CAUSE_BRANCH,   /* jumps and taken branches */
    CAUSE_MULTIPLY, /* further cycles of multiplications and divisions */
    CAUSE_ACCESS,   /* further cycles of loads and stores, whatever the memory */
    CAUSE_CUSTOM,   /* further cycles of custom instructions */
    CAUSE_FETCH,    /* waiting for instructions */
    CAUSE_DATA,     /* waiting for data memory */
    CAUSE_CACHE,    /* waiting for what a cache does not hold */
    CAUSES
};

/* Properties of a rule's instructions. */
enum {
    RULE_LOAD = 1,
    RULE_STORE = 2,
    RULE_COUNTED = 4,    /* list: add the value of these bits, not how many are set */
    RULE_ALONE = 8,      /* does not issue together with another one */
    RULE_JUMPS = 32,     /* leads elsewhere always */
    RULE_DECODED = 16,   /* done when it is decoded, while the one before it still executes */
    RULE_SECOND = 64,    /* may issue after another one in the same cycle */
    RULE_SOONER = 128,   /* done a cycle sooner where its operands were there a cycle before it issues */
    RULE_FORWARDS = 256, /* RULE_TAKES uses its result a cycle sooner than others */
    RULE_TAKES = 512,
    RULE_PASSES = 1024,    /* leaves even while others are held up, so that the next one can follow */
    RULE_ON_FLOATS = 2048, /* waits for Rule.busy of others */
};

/* Properties of a pipeline. */
enum {
    PIPELINED_ACCESSES = 1, /* an access directly after an independent load takes a cycle less */
    OVERWRITES_WAIT = 2,    /* but by loads a result that is overwritten is waited for as if it were read */
    PREDICTS_BACKWARD = 4,  /* branches to lower addresses are predicted as taken */
    FETCH_COMMITS = 16,     /* a fetch that was requested is done, even if a jump comes before it */
    EXECUTES_LATER = 8,     /* decoded in a stage before: the next one is decoded meanwhile */
    KEEPS_FETCHES = 128,    /* a fetch is held until its last bytes are decoded */
    PAIRS_FETCHES = 512,    /* the second half of a fetch is decoded when the next one has come */
    LINGERS = 1024,      /* an instruction stays in the decoder until another one comes; see Pipeline.lingers */
    LATE_REDIRECTS = 2048,  /* a branch that goes on elsewhere waits until nothing waits in the decoder */
    STANDS_STILL = 4096,    /* what waits for an operand waits anew after a multiplication, division or load */
    STORES_PASS = 8192,     /* waits of stores hold up the next access alone */
    OLDER_RESULTS = 16384,  /* a result that is overwritten is waited for as well by what reads the register */
    DATA_HOLDS = 32,        /* a wait of data memory holds up the instruction after the access */
    DATA_STALLS = 64,       /* ... or the access itself; else only the use of the data */
    SHORT_PAIRS = 256,      /* only instructions of two bytes issue in the same cycle */
    MEMORIES_APART = 65536, /* ... of the same memory; else of any */
    COUNTS_BUFFERED = 131072, /* fetches are requested by how many instructions wait in the buffer */
    TARGETS_LATER = 262144, /* the target of a branch in the word that a jump leads to is not known */
    ALIGNED_PARTS = 32768,  /* a misaligned access is made of aligned ones */
};

/* Arm's condition flags, as the number of a register; branches need them `late`. */
enum { FLAGS_REGISTER = 16 };

/* Properties of an operand. */
enum {
    OPERAND_FLOAT = 1,
    OPERAND_ROTATED = 2, /* the lowest bit of its number is the highest */
    OPERAND_LATE = 4,    /* see Rule.late */
    OPERAND_BASE = 8,    /* written back: without the latency of what is loaded */
};

/* The number of a register is gathered from the instruction's bits of a mask, the highest first. */
typedef struct { uint32_t mask, flags; } Operand;

/* The time of the instructions with bits & mask == match. */
typedef struct {
    uint32_t bytes, mask, match;
    uint32_t list;       /* one more cycle for every set bit of these (register lists) */
    Operand reads[4], writes[2];
    uint32_t also_reads, also_writes; /* a bit for each integer register */
    uint16_t cycles;     /* until the next one can issue */
    uint16_t latency;    /* further cycles until another one can use the result */
    uint16_t early;      /* cycles before its issue in which it needs its operands */
    uint16_t late;       /* cycles after its issue in which it needs OPERAND_LATE */
    uint16_t taken;      /* extra cycles of a conditional branch that is taken */
    uint16_t mispredicted; /* ... whose direction was predicted wrongly, where branches are */
    uint16_t unit;       /* of `Timing.slots` */
    uint16_t cause;      /* of its cycles after the first */
    uint16_t flags;
    uint16_t operands;   /* 1 + the place in Timing.operands; 0: its time is always the same */
    uint16_t shares;     /* a further unit that it uses in its cycle; 0: none */
    uint16_t busy;       /* cycles after its issue in which no other RULE_ON_FLOATS issues */
    uint16_t settles;    /* further cycles until a custom instruction can follow */
} Rule;

/* Further cycles by the values of operands, from the size of their magnitudes in bits. */
typedef struct {
    int32_t constant;
    int32_t divisor_zeros; /* for every leading zero of the divisor, the second operand */
    int32_t dividend_bits; /* for every bit of the dividend, the first operand */
    int32_t quotient_bits; /* for every bit that the dividend has more than the divisor, and one */
    int32_t quotient;      /* where there are such bits */
    int32_t quotient_step; /* one for each so many of them; 0: none */
    int32_t zero_divisor;  /* instead of all these where the divisor is 0, if is_zero_special */
    int32_t amount;        /* for every place of a shift, by the lower five bits of the second */
    uint32_t is_shift, is_used, is_zero_special;
} OperandCycles;

/* Wait states of a stretch of memory. `ahead`: fetches that may be ahead, 0: as many as the core can; `crossing`:
 * the first instruction in a row that crosses words to issue a cycle later, 0: none does.
 */
typedef struct { uint32_t start, end, fetch, data, ahead, crossing; } WaitStates;

enum { UNITS = 12, MAX_WAITS = 16, MAX_OPERANDS = 4, MOST_TARGETS = 16 };

/* A pipeline and the memory that it sees. */
typedef struct {
    const Rule *rules;
    uint64_t rule_count;
    uint32_t short_registers; /* added to numbers of registers of 3 bits */
    uint32_t zero_register;   /* is never waited for */
    uint32_t flags;
    uint32_t width;           /* instructions that issue in a cycle */
    uint32_t slots[UNITS];    /* ... of them by unit */
    uint32_t fetch_bytes;     /* of a fetch; 0: instructions are always there */
    uint32_t fetch_ahead;     /* fetches that are held before their instructions issue */
    uint32_t data_waits;      /* that all data memory has; those beyond are counted one by one */
    uint32_t period[UNITS];   /* cycles from an instruction of a unit to the next one; 0: any */
    uint32_t requests;        /* without a fetch ahead: cycles from an issue to the next word, or 0 */
    uint32_t split;           /* further cycles of an instruction that crosses a word */
    uint32_t misaligned;      /* ... of an access that crosses a word, or for each part but one: ALIGNED_PARTS */
    uint32_t transfers;       /* registers of a list that are loaded or stored in a cycle */
    uint32_t after_store;     /* further cycles of a load directly after a store */
    uint32_t reloads;         /* ... of a load of what was stored up to two cycles before */
    uint32_t settles;         /* cycles after a jump until a custom instruction can issue */
    uint32_t targets;         /* branches to lower addresses whose targets are known, those taken last; at most MOST_TARGETS */
    OperandCycles operands[MAX_OPERANDS];
    uint32_t wait_count;
    WaitStates waits[MAX_WAITS];
} Timing;

/* How an access lies in words; one at an odd address crosses with more than a byte. */
enum { ALIGNED, WITHIN_WORD, CROSSES_WORD, CROSSES_AT_ODD };

/* An instruction of a block. Custom ones have cycles of their own, which no rule changes. `stored`: it loads what the
 * instruction so many before it stored, or 0; `memory`: 1 + the place of the one that it accesses, 0: not known.
 */
typedef struct {
    uint32_t bits;
    uint8_t bytes : 4, alignment : 2, stored : 2;
    uint8_t is_custom : 1, memory : 5;
    uint16_t cycles; /* of a custom one; of its accesses: wait states beyond those of all memory */
} Instruction;

/* Straight-line code at an address; `more`: cycles that each instruction takes beside those of its rule, or
 * NULL.
 */
typedef struct {
    const Instruction *code;
    uint32_t count, address;
    const int32_t *more;
} Code;

/* How code ends. */
enum {
    ENDS_BACKWARD = 1, /* with a branch to a lower address */
    ENDS_AT_SPLIT = 2, /* before an instruction that crosses a word */
    ENDS_MISTAKEN = 4, /* its target is in the middle of a word; so, after it, seems a long instruction to be */
    ENDS_TO_SPLIT = 8, /* its target crosses a word */
    ENDS_CARRYING = 16, /* what it jumps to may be there while instructions before it still execute: its past */
    ENDS_JUMPING = 32, /* unconditionally */
    /* Of the code after it, of which some instructions may be there when it goes on elsewhere: */
    ENDS_DEPENDENT = 64,     /* the second one uses the result of the first */
    ENDS_HALF_NEXT = 128,    /* the first one leaves a short one in its word */
    ENDS_HALF_LATER = 256,   /* the third one does; where the first one jumps, the one at its target */
    ENDS_HALF_TARGET = 512,  /* one at its target does, which is there when it is known not to jump */
    ENDS_NEXT_SHIFT = 32,    /* the bits of the first one */
};

/* Cycles by cause. */
typedef struct { uint32_t by[CAUSES]; } Spent;

/* The time of a block of code, for one way to enter it. */
typedef struct {
    Spent own;
    Spent taken;   /* added when the branch at its end is taken */
    Spent untaken; /* added when it is not */
} EntryTime;

/* Ways to enter a block: by a jump, or after code before it: one of so many pasts. */
enum { JUMPED, FALLEN, ENTRIES = 8, BEFORE = ENTRIES - FALLEN };

/* A past: the blocks that ran one after the other before a block, at most so many, with at most one jump among
 * them.
 */
enum { DEPTH = 6 };
typedef struct { Code code[DEPTH]; uint32_t count; } History;

typedef struct { EntryTime entry[ENTRIES]; } BlockTime;

#endif
