/* Calls that the emulator puts into translated code, replaced where they cost most.
 *
 * Unicorn translates an instruction into operations of QEMU's TCG, and these into code of the host.
 * Translated code keeps emulated registers in registers of the host, but for a call of a C function it
 * has to store them all. Unicorn 2.1 puts such a call after every load and store (does anything ask to
 * leave?), QEMU two into each SMLAD and one into SXTB16. The functions that produce operations are
 * redirected (relocations.h), for engines that this counter counts:
 * - whether to leave is checked where it can be requested: in the slow path of loads and stores, which all
 *   peripherals, hooks and faults take; directly after the access, as before;
 * - loads and stores of memory are done there, mostly: an entry of the emulator's table of pages holds
 *   flash or RAM at the same distance, and programs that use both in turn would always search;
 * - the sum that may set Q, and SXTB16 and UXTB16, become operations.
 *
 * Where every load and store is looked at (accesses.h) a call is added before it. With Unicorn's own hook
 * each takes the slow path and restores the emulated state, which takes fifty times as long.
 *
 * An engine is recognized by the hook that starts its blocks; others are translated as ever.
 */
#ifndef COVP_TRANSLATION_H
#define COVP_TRANSLATION_H


#include "accesses.h"
#include "counter_state.h"
#include "tlb.h"

#if defined(__linux__) && defined(__x86_64__)
#include "relocations.h"

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
    uint32_t q;         /* of the Q flag among them */
} Emulator;

static Emulator arm_emulator, riscv_emulator;

/* What this thread translates: a block. */
enum { HOOK_ARGUMENTS = 4 };
static _Thread_local struct {
    TcgContext *starts; /* the block's hook was just put into it, ... */
    TcgContext *ours;   /* ... so that it is one of ours; or NULL */
    bool checks;        /* Unicorn puts its check, ... */
    bool is_put;        /* ... and has done so: not inside IT blocks */
    bool hooked;        /* the latest call may be that of a hook, which may ask to leave */
    uint32_t count;     /* instructions of the block so far */
    bool deferred;      /* an access inside an IT block may have asked to leave */
    Temp *overflow;     /* negative: a sum overflowed, and Q is to be set; or NULL */
    Temp *env;
} translating;

EXPORT void on_inlining_block(uc_engine *uc, uint64_t address64, uint32_t size, void *user);

/* -- operations: numbers of tcg-opc.h of Unicorn 2.1.4 -------------------------------------------- */

enum { OP_MOVE = 5, OP_LOAD = 13, OP_STORE = 16, OP_ADD = 17, OP_AND = 26, OP_OR = 27, OP_XOR = 28 };
enum { OP_INSTRUCTION = 129 }; /* one of the core's begins */

/* Whether an operation computes from variables alone: nothing outside sees what is held back. Not the
 * accesses of env (9 to 16, 67 to 77), branches (38, 45, 103) and all from 130 on, where a block ends,
 * memory is accessed, and vectors follow.
 */
static bool is_inner(uint32_t op) {
    return op == 0 || (op >= 5 && op <= 8) || (op >= 17 && op <= 44 && op != 38) ||
           (op >= 47 && op <= 66) || (op >= 78 && op <= 129 && op != 103);
}

static Variable variable(const TcgContext *s, const Temp *temp) {
    return (uintptr_t)temp - (uintptr_t)s;
}

static Temp *temp_of(TcgContext *s, Variable variable) { return (Temp *)((char *)s + variable); }

/* result = a + b; Q is set where the sum has another sign than both. Setting it is held back: once for
 * several sums, because each has to wait for the one before.
 */
static void add_setq(const Emulator *e, TcgContext *s, Temp *result, Temp *env, Temp *a, Temp *b) {
    const Functions *f = &e->f;
    Temp *sum = f->new_temp(s, 0, false), *left = f->new_temp(s, 0, false);
    Temp *right = f->new_temp(s, 0, false);
    f->op3(s, OP_ADD, sum, a, (uintptr_t)b);
    f->op3(s, OP_XOR, left, sum, (uintptr_t)a);
    f->op3(s, OP_XOR, right, sum, (uintptr_t)b);
    f->op3(s, OP_AND, left, left, (uintptr_t)right);
    f->op2(s, OP_MOVE, result, sum);
    f->free_temp(s, right);
    f->free_temp(s, sum);
    if (translating.overflow) {
        f->op3(s, OP_OR, translating.overflow, translating.overflow, (uintptr_t)left);
        f->free_temp(s, left);
    } else {
        translating.overflow = left;
        translating.env = env;
    }
}

/* Put what was held back. */
static void set_q(const Emulator *e, TcgContext *s) {
    const Functions *f = &e->f;
    Temp *overflow = translating.overflow, *q = f->new_temp(s, 0, false);
    translating.overflow = NULL;
    f->shift_right(s, variable(s, overflow), variable(s, overflow), 31);
    f->op3(s, OP_LOAD, q, translating.env, e->q);
    f->op3(s, OP_OR, q, q, (uintptr_t)overflow);
    f->op3(s, OP_STORE, q, translating.env, e->q);
    f->free_temp(s, q);
    f->free_temp(s, overflow);
}

/* The two halves of the result are bytes 0 and 2, sign-extended. */
static void sxtb16(const Emulator *e, TcgContext *s, Temp *result, Temp *value) {
    const Functions *f = &e->f;
    Temp *low = f->new_temp(s, 0, false), *high = f->new_temp(s, 0, false);
    Variable l = variable(s, low), h = variable(s, high);
    f->extend_byte(s, l, variable(s, value));
    f->shift_right(s, h, variable(s, value), 16);
    f->extend_byte(s, h, h);
    f->shift_left(s, h, h, 16);
    f->deposit(s, variable(s, result), h, l, 0, 16);
    f->free_temp(s, high);
    f->free_temp(s, low);
}

/* -- in place of Unicorn's functions ---------------------------------------------------------------- */

static bool replaces(const Emulator *e, TcgContext *s, void *function, Temp *result, int count,
                     Temp **arguments) {
    if (!function || !result || s != translating.ours) return false;
    if (function == (void *)e->f.add_setq && count == 3)
        add_setq(e, s, result, arguments[0], arguments[1], arguments[2]);
    else if (function == e->f.sxtb16 && count == 1)
        sxtb16(e, s, result, arguments[0]);
    else if (function == e->f.uxtb16 && count == 1)
        e->f.and_number(s, variable(s, result), variable(s, arguments[0]), 0xff00ff);
    else
        return false;
    return true;
}

/* Another block. */
static void start(const Emulator *e, TcgContext *s) {
    memset(&translating, 0, sizeof translating);
    e->f.start(s);
}

/* Whether the check that is about to be put is needed. */
static bool needs_check(void) {
    bool needs = translating.hooked || translating.deferred;
    translating.is_put = true;
    translating.hooked = translating.deferred = false;
    return needs;
}

static void put_call(const Emulator *e, TcgContext *s, void *function, Temp *result, int count,
                     Temp **arguments) {
    if (e->is_active) {
        if (replaces(e, s, function, result, count, arguments)) return;
        if (function == (void *)e->f.exit_if_requested) {
            if (translating.checks && !needs_check()) return;
            if (translating.starts == s) translating.ours = s;
            translating.starts = NULL;
        } else if (function == (void *)on_inlining_block) {
            translating.starts = s;
        } else if (function == e->f.call_hooks || (!result && count == HOOK_ARGUMENTS)) {
            translating.hooked = true;
        }
    }
    e->f.call(s, function, result, count, arguments);
}

/* After an access or a hook. */
static void put_check(const Emulator *e, TcgContext *s) {
    translating.checks = e->is_active && s == translating.ours;
    translating.is_put = false;
    e->f.check_exit(s);
    if (translating.checks && !translating.is_put) translating.deferred = true;
    translating.checks = false;
}

/* Before any operation. */
static void *put_operation(const Emulator *e, TcgContext *s, uint32_t op) {
    if (translating.overflow && s == translating.ours && !is_inner(op)) set_q(e, s);
    translating.count += op == OP_INSTRUCTION;
    return e->f.emit(s, op);
}

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

/* -- looking at accesses ---------------------------------------------------------------------------- */

enum { KIND_SIZE = 3 }; /* bits of an access's kind: the logarithm of its bytes */

/* An access is about to be put: before it the call that its block starts with, with other numbers. */
static void put_look(const Emulator *e, TcgContext *s, Variable address, uint32_t kind, bool writes) {
    if (!e->is_active || s != translating.ours) return;
    uc_engine *uc = *(uc_engine **)((char *)s + e->engine);
    Machine *m = machine_of(*(char **)((char *)uc + e->processor));
    if (!m || !m->looks_at_accesses) return;
    const Functions *f = &e->f;
    enum { LONG = 1 };
    uint32_t index = (translating.count - 1) & INDEX_MASK;
    uint32_t what = IS_ACCESS | (writes ? IS_STORE : 0) | index << INDEX_SHIFT | 1u << (kind & KIND_SIZE);
    Temp *at = f->new_temp(s, LONG, false);
    f->extend(s, variable(s, at), address);
    Temp *all[HOOK_ARGUMENTS] = {
        temp_of(s, f->long_number(s, (intptr_t)uc)),
        at,
        temp_of(s, f->number(s, (int32_t)what)),
        temp_of(s, f->long_number(s, (intptr_t)m)),
    };
    f->call(s, (void *)on_inlining_block, NULL, HOOK_ARGUMENTS, all);
    for (int n = HOOK_ARGUMENTS - 1; n >= 0; n--) f->free_temp(s, all[n]);
}

/* -- leaving after an access ------------------------------------------------------------------------ */

/* Something asks to leave, and the access at `from` in translated code is done. Inside an IT block the
 * emulator leaves at its end.
 */
static void leave(const Emulator *e, char *env, uintptr_t from) {
    char *processor = env - e->env;
    Machine *m = machine_of(processor);
    if (!m) return;
    e->f.restore_state(processor, from, true);
    if (m->xpsr && clear_it_bits(m, m->engine)) return;
    e->f.exit_if_requested(m->engine, 0);
}

/* The same before an access, called from translated code. */
static void leave_before_access(Machine *m, uintptr_t from) {
    const Emulator *e = m->is_thumb ? &arm_emulator : &riscv_emulator;
    m->emu_stop(m->engine);
    e->f.restore_state((char *)m->processor, from, true);
    e->f.exit_if_requested(m->engine, 0);
}

static inline void leave_if_requested(const Emulator *e, char *env, uintptr_t from) {
    if (*(int32_t *)(env - e->env + e->exit_flag) < 0) leave(e, env, from);
}

/* The machine of a processor, without a search for accesses in a row. */
static Machine *accessing_machine(const char *processor) {
    static _Thread_local struct { const char *processor; Machine *m; unsigned at; } latest;
    unsigned now = atomic_load_explicit(&machine_changes, memory_order_acquire);
    if (latest.processor != processor || latest.at != now) {
        latest.m = machine_of(processor);
        latest.processor = processor;
        latest.at = now;
    }
    return latest.m;
}

/* Whether no hook has to be told of accesses. */
static bool is_unhooked(const Machine *m) {
    return m->load_hooks && !*m->load_hooks && !*m->store_hooks;
}

/* The bytes of an access in memory, for most of those that come here; else NULL: the emulator does it,
 * and remembers the page. Stores to pages with code are the emulator's, which then forgets the code.
 */
static uint8_t *direct(const Emulator *e, char *env, uint32_t address, uint32_t size, bool writes) {
    enum { TURNS = 16 };
    Machine *m = accessing_machine(env - e->env);
    if (!m || !is_unhooked(m) || m->slow_accesses[address >> PAGE_BITS]++ % TURNS == 0) return NULL;
    for (uint32_t i = 0; i < m->region_count; i++) {
        const Region *r = &m->regions[i];
        if (address < r->start || (uint64_t)address + size > r->end) continue;
        if (writes && (!r->writable || machine_may_have_code(m, address, size))) return NULL;
        if (writes) mark_dirty(dirty_mark(m, address)), mark_dirty(dirty_mark(m, address + size - 1));
        return (uint8_t *)r->host + (address - r->start);
    }
    return NULL;
}

#define LOAD(E, N)                                                                                \
    static uint64_t E##_load_##N(char *env, uint32_t address, uint32_t access, uintptr_t from) {  \
        const uint8_t *memory = direct(&E##_emulator, env, address, 1u << N, false);              \
        uint64_t value = 0;                                                                       \
        if (memory) return memcpy(&value, memory, 1u << N), value;                                \
        value = E##_emulator.f.load[N](env, address, access, from);                               \
        leave_if_requested(&E##_emulator, env, from);                                             \
        return value;                                                                             \
    }
#define STORE(E, N)                                                                               \
    static void E##_store_##N(char *env, uint32_t address, uint64_t value, uint32_t access,       \
                              uintptr_t from) {                                                   \
        uint8_t *memory = direct(&E##_emulator, env, address, 1u << N, true);                     \
        if (memory) {                                                                             \
            memcpy(memory, &value, 1u << N);                                                      \
            return;                                                                               \
        }                                                                                         \
        E##_emulator.f.store[N](env, address, value, access, from);                               \
        leave_if_requested(&E##_emulator, env, from);                                             \
    }
#define ACCESS(E, N, WRITES)                                                                      \
    static void E##_access_##N(TcgContext *s, Variable value, Variable address, uintptr_t index,  \
                               uint32_t kind) {                                                   \
        put_look(&E##_emulator, s, address, kind, WRITES);                                        \
        E##_emulator.f.access[N](s, value, address, index, kind);                                 \
    }
#define REPLACEMENTS(E)                                                                           \
    ACCESS(E, 0, false) ACCESS(E, 1, true) ACCESS(E, 2, false) ACCESS(E, 3, true)                 \
    LOAD(E, 0) LOAD(E, 1) LOAD(E, 2) LOAD(E, 3) STORE(E, 0) STORE(E, 1) STORE(E, 2) STORE(E, 3)   \
    static void E##_call(TcgContext *s, void *function, Temp *result, int count, Temp **all) {    \
        put_call(&E##_emulator, s, function, result, count, all);                                 \
    }                                                                                             \
    static void *E##_emit(TcgContext *s, uint32_t op) {                                           \
        return put_operation(&E##_emulator, s, op);                                               \
    }                                                                                             \
    static void E##_check(TcgContext *s) { put_check(&E##_emulator, s); }                         \
    static void E##_start(TcgContext *s) { start(&E##_emulator, s); }                             \
    static bool E##_redirect(const Functions *f) {                                                \
        Redirection all[] = {                                                                     \
            {IN_CALLS, f->call, E##_call, 0},         {IN_CALLS, f->check_exit, E##_check, 0},    \
            {IN_CALLS, f->start, E##_start, 0},       {IN_CALLS, f->emit, E##_emit, 0},           \
            {IN_CALLS, f->access[0], E##_access_0, 0}, {IN_CALLS, f->access[1], E##_access_1, 0}, \
            {IN_CALLS, f->access[2], E##_access_2, 0}, {IN_CALLS, f->access[3], E##_access_3, 0}, \
            {IN_TABLES, f->load[0], E##_load_0, 0},   {IN_TABLES, f->load[1], E##_load_1, 0},     \
            {IN_TABLES, f->load[2], E##_load_2, 0},   {IN_TABLES, f->load[3], E##_load_3, 0},     \
            {IN_TABLES, f->store[0], E##_store_0, 0}, {IN_TABLES, f->store[1], E##_store_1, 0},   \
            {IN_TABLES, f->store[2], E##_store_2, 0}, {IN_TABLES, f->store[3], E##_store_3, 0},   \
        };                                                                                        \
        return redirect((void *)f->call, all, sizeof all / sizeof *all);                          \
    }
REPLACEMENTS(arm)
REPLACEMENTS(riscv)

/* -- switching it on --------------------------------------------------------------------------------- */

/* Whether code starts with these bytes; 0x100 stands for any. */
static bool starts_with(const uint8_t *code, const uint16_t *bytes, size_t count) {
    for (size_t n = 0; n < count; n++)
        if (bytes[n] != 0x100 && bytes[n] != code[n]) return false;
    return true;
}

static uint32_t number_at(const uint8_t *code) {
    uint32_t value;
    memcpy(&value, code, sizeof value);
    return value;
}

/* Offsets that depend on how the library was built, out of its code. */
static bool find_offsets(Emulator *e) {
    enum { ANY = 0x100 };
    /* mov processor(%rdi), %r8; mov flag(%r8), %eax; test %eax, %eax; jns */
    static const uint16_t check[] = {0x4c, 0x8b, 0x87, ANY, ANY, ANY, ANY, 0x41, 0x8b,
                                     0x80, ANY,  ANY,  ANY, ANY, 0x85, 0xc0, 0x79};
    /* sub $8, %rsp; sub $env, %rdi */
    static const uint16_t exit[] = {0x48, 0x83, 0xec, 0x08, 0x48, 0x81, 0xef};
    /* mov engine(%rdi), %rsi */
    static const uint16_t put[] = {0x48, 0x8b, 0xb7};
    const uint8_t *code = (const uint8_t *)e->f.exit_if_requested;
    const uint8_t *putting = (const uint8_t *)e->f.check_exit;
    if (!starts_with(putting, put, sizeof put / sizeof *put)) return false;
    e->engine = number_at(putting + 3);
    if (!starts_with(code, check, sizeof check / sizeof *check)) return false;
    if (!starts_with(e->f.exit_atomic, exit, sizeof exit / sizeof *exit)) return false;
    e->processor = number_at(code + 3);
    e->exit_flag = number_at(code + 10);
    e->env = number_at(e->f.exit_atomic + 7);
    return e->env - e->exit_flag <= 16;
}

/* Where the helper sets Q: it is tried on registers that are all 0. */
static bool find_q(Emulator *e) {
    enum { WORDS = 4096 };
    uint32_t *env = calloc(WORDS, sizeof *env);
    if (!env) return false;
    e->f.add_setq(env, 0x7fffffff, 1);
    uint32_t at = 0;
    while (at < WORDS && !env[at]) at++;
    bool found = at < WORDS && env[at] == 1;
    for (uint32_t n = at + 1; n < WORDS; n++) found = found && !env[n];
    e->q = at * (uint32_t)sizeof *env;
    free(env);
    return found;
}

/* Replace calls in the code of this machine's engine. 0: nothing is changed. Not from two threads. */
EXPORT int machine_inline_calls(Machine *m, uc_engine *uc, void *const *functions) {
    Emulator *e = m->is_thumb ? &arm_emulator : &riscv_emulator;
    if (!e->is_active) {
        memcpy(&e->f, functions, m->is_thumb ? sizeof e->f : offsetof(Functions, add_setq));
        if (!find_offsets(e) || (m->is_thumb && !find_q(e))) return 0;
        if (!(m->is_thumb ? arm_redirect(&e->f) : riscv_redirect(&e->f))) return 0;
        e->is_active = true;
    }
    m->slow_accesses = calloc(1u << (32 - PAGE_BITS), 1);
    if (!m->slow_accesses) return 0;
    m->engine = uc;
    m->processor = *(char **)((char *)uc + e->processor);
    while (atomic_flag_test_and_set(&machines_lock)) {}
    m->other_machine = machines;
    machines = m;
    atomic_fetch_add(&machine_changes, 1);
    atomic_flag_clear(&machines_lock);
    return 1;
}

/* Access memory directly where the engine's numbers of hooks for loads and stores allow it. */
EXPORT void machine_count_hooks(Machine *m, const uint32_t *loads, const uint32_t *stores) {
    m->load_hooks = loads;
    m->store_hooks = stores;
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

#else

EXPORT int machine_inline_calls(Machine *m, uc_engine *uc, void *const *functions) {
    (void)m;
    (void)uc;
    (void)functions;
    return 0;
}

EXPORT void machine_count_hooks(Machine *m, const uint32_t *loads, const uint32_t *stores) {
    (void)m;
    (void)loads;
    (void)stores;
}

static void forget_machine(Machine *m) { (void)m; }

static void leave_before_access(Machine *m, uintptr_t from) {
    (void)m;
    (void)from;
}

#endif
#endif
