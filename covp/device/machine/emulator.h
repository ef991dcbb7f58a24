/* Unicorn's emulators: functions of the library that are called or replaced, offsets in its structures, and
 * whose processor is whose machine.
 */
#ifndef COVP_EMULATOR_H
#define COVP_EMULATOR_H

#include "counter_state.h"

typedef struct TcgContext TcgContext;
typedef struct Temp Temp;        /* a variable of the operations */
typedef uintptr_t Variable;      /* the same as its distance from the context */
typedef uint64_t LoadSlowly(char *env, uint32_t address, uint32_t access, uintptr_t from);
typedef void StoreSlowly(char *env, uint32_t address, uint64_t value, uint32_t access, uintptr_t from);

typedef void PutAccess(TcgContext *, Variable value, Variable address, uintptr_t index, uint32_t kind);

/* Functions of Unicorn, in the order of inlining.py; the second part is Arm's alone. */
typedef struct {
    void (*call)(TcgContext *, void *function, Temp *result, int count, Temp **arguments);
    void (*check_exit)(TcgContext *);
    void (*exit_if_requested)(uc_engine *, uint32_t);
    void (*start)(TcgContext *);
    void *call_hooks;
    uint8_t *exit_atomic;
    bool (*restore_state)(char *processor, uintptr_t from, bool leaves);
    LoadSlowly *load[4];
    StoreSlowly *store[4];
    PutAccess *access[4]; /* of translation: loads and stores of 32 and 64 bits */
    Variable (*number)(TcgContext *, int32_t);
    Variable (*long_number)(TcgContext *, int64_t);
    void (*extend)(TcgContext *, Variable, Variable);
    Temp *(*new_temp)(TcgContext *, uint32_t type, bool is_local);
    void (*free_temp)(TcgContext *, Temp *);
    void *(*emit)(TcgContext *, uint32_t op);
    uint8_t *emit_one; /* of an operation with one argument */
    uint32_t (*add_setq)(void *env, uint32_t, uint32_t);
    void *sxtb16, *uxtb16;
    void (*op2)(TcgContext *, uint32_t op, Temp *, Temp *);
    void (*op3)(TcgContext *, uint32_t op, Temp *, Temp *, uintptr_t);
    void (*and_number)(TcgContext *, Variable, Variable, int32_t);
    void (*shift_left)(TcgContext *, Variable, Variable, int32_t);
    void (*shift_right)(TcgContext *, Variable, Variable, int32_t);
    void (*extend_byte)(TcgContext *, Variable, Variable);
    void (*deposit)(TcgContext *, Variable, Variable, Variable, uint32_t low, uint32_t bits);
} Functions;

/* One of Unicorn's emulators. */
typedef struct {
    Functions f;
    bool is_active;
    uint32_t engine;    /* offset of the engine in a context, */
    uint32_t processor; /* of the processor in an engine, */
    uint32_t exit_flag; /* of the request to leave in a processor, */
    uint32_t env;       /* of the registers there, */
    uint32_t q;         /* of the Q flag among them, */
    uint32_t arguments; /* of the arguments of an operation */
} Emulator;

static Emulator arm_emulator, riscv_emulator;

static atomic_flag machines_lock = ATOMIC_FLAG_INIT;
static Machine *machines;
static atomic_uint machine_changes; /* how often one came or went */

static Machine *machine_of(const char *processor) {
    while (atomic_flag_test_and_set(&machines_lock)) {}
    Machine *m = machines;
    while (m && m->processor != processor) m = m->other_machine;
    atomic_flag_clear(&machines_lock);
    return m;
}

/* A machine's processor is known from now on. */
static void remember_machine(Machine *m) {
    while (atomic_flag_test_and_set(&machines_lock)) {}
    m->other_machine = machines;
    machines = m;
    atomic_fetch_add(&machine_changes, 1);
    atomic_flag_clear(&machines_lock);
}

static void forget_machine(Machine *m) {
    while (atomic_flag_test_and_set(&machines_lock)) {}
    for (Machine **p = &machines; *p; p = &(*p)->other_machine)
        if (*p == m) {
            *p = m->other_machine;
            atomic_fetch_add(&machine_changes, 1);
            break;
        }
    atomic_flag_clear(&machines_lock);
}

/* -- what an access says of itself ------------------------------------------------------------------ */

/* The kind of an access, a MemOp of QEMU, whose upper bits nothing reads but covp's slow path. */
enum {
    KIND_SIZE = 3,          /* the logarithm of its bytes */
    KIND_ALIGNMENT = 7 << 4, /* that of the alignment that it needs, else it takes the slow path; 7: its size */
    KIND_WORDS = 2 << 4,
    KIND_OWN_SHIFT = 8,     /* covp's own: */
    KIND_FAULTS = 1 << 8,   /* it is a fault where the address has not that */
    KIND_OWN = 1 << 9,
    KIND_TABLE_SHIFT = 10,  /* the table of pages that the core uses */
    KIND_PLACE_SHIFT = 16,  /* the place of its instruction in the block */
    KIND_PLACE = 0xfff,
};
/* A kind as the slow path gets it: with the number of its table of pages in the lower bits. */
enum { TABLE_BITS = 4, TABLE_MASK = (1 << TABLE_BITS) - 1 };

static inline bool breaks_alignment(uint32_t address, uint32_t access) {
    uint32_t kind = access >> TABLE_BITS, bits = (kind & KIND_ALIGNMENT) >> 4;
    if (bits == KIND_ALIGNMENT >> 4) bits = kind & KIND_SIZE;
    return address & ((1u << bits) - 1);
}

#endif
