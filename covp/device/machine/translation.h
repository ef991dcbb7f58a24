/* Calls that the emulator puts into translated code, replaced where they cost most.
 *
 * Unicorn translates an instruction into operations of QEMU's TCG, and these into code of the host.
 * Translated code keeps emulated registers in registers of the host, but for a call of a C function it
 * has to store them all. Unicorn 2.1 puts such a call after every load and store (does anything ask to
 * leave?), QEMU two into each SMLAD and one into SXTB16. The functions that produce operations are
 * redirected (relocations.h), for engines that this counter counts:
 * - whether to leave is checked where it can be requested: in the slow path of loads and stores
 *   (slow_path.h), which all peripherals, hooks and faults take; directly after the access, as before;
 * - loads and stores say which alignment they need: others take the slow path;
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

#if defined(__linux__) && defined(__x86_64__)
#include "relocations.h"
#include "slow_path.h"

/* What this thread translates: a block. */
enum { HOOK_ARGUMENTS = 4 };
static _Thread_local struct {
    TcgContext *starts; /* the block's hook was just put into it, ... */
    TcgContext *ours;   /* ... so that it is one of ours; or NULL */
    bool checks;        /* Unicorn puts its check, but inside IT blocks */
    bool hooked;        /* the latest call may be that of a hook, which may ask to leave */
    uint32_t count;     /* instructions of the block so far */
    const uint8_t *first, *instruction; /* the operations with which the first and latest begin */
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
    bool needs = translating.hooked;
    translating.hooked = false;
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
    e->f.check_exit(s);
    translating.checks = false;
}

/* Before any operation. */
static void *put_operation(const Emulator *e, TcgContext *s, uint32_t op) {
    if (translating.overflow && s == translating.ours && !is_inner(op)) set_q(e, s);
    void *operation = e->f.emit(s, op);
    if (op == OP_INSTRUCTION) {
        translating.count++;
        translating.instruction = operation;
        if (translating.count == 1) translating.first = operation;
    }
    return operation;
}

/* -- accesses --------------------------------------------------------------------------------------- */

static uint32_t number_at(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* The instruction that is being translated: its address is the first argument of its operation. */
static Instruction translated_instruction(const Emulator *e, const Machine *m) {
    uint32_t address = number_at(translating.instruction + e->arguments);
    const uint8_t *start = host_bytes(m, address, 2);
    if (!start) return (Instruction){.bytes = 2};
    return fetch(m, start, host_bytes(m, address, 4) ? start + 4 : start + 2);
}

/* The kind of an access, with what the slow path has to know of it; *table: where it looks for its page. */
static uint32_t telling(const Emulator *e, const Machine *m, uint32_t kind, uint32_t place, uintptr_t *table) {
    bool is_wide = (kind & KIND_SIZE) == KIND_SIZE;
    Instruction i = translated_instruction(e, m);
    bool faults = kind & KIND_ALIGNMENT || must_align(m, i);
    uint32_t core = (uint32_t)*table, block = number_at(translating.first + e->arguments);
    if (faults || times_misaligned(m))
        kind = (kind & ~(uint32_t)KIND_ALIGNMENT) | (is_wide ? KIND_WORDS : KIND_ALIGNMENT);
    if (times_memories(m) && !m->counts_accesses) *table = table_of(m, core, expected_at(m, block, place, i.bits).met);
    return kind | KIND_OWN | (faults ? KIND_FAULTS : 0) | core << KIND_TABLE_SHIFT | place << KIND_PLACE_SHIFT;
}

/* Before an access the call that its block starts with, with other numbers. */
static void put_look(const Emulator *e, TcgContext *s, Machine *m, Variable address, uint32_t kind,
                     uint32_t place, bool writes) {
    const Functions *f = &e->f;
    enum { LONG = 1 };
    uint32_t what = IS_ACCESS | (writes ? IS_STORE : 0) | place << INDEX_SHIFT | 1u << (kind & KIND_SIZE);
    Temp *at = f->new_temp(s, LONG, false);
    f->extend(s, variable(s, at), address);
    Temp *all[HOOK_ARGUMENTS] = {
        temp_of(s, f->long_number(s, (intptr_t)m->engine)),
        at,
        temp_of(s, f->number(s, (int32_t)what)),
        temp_of(s, f->long_number(s, (intptr_t)m)),
    };
    f->call(s, (void *)on_inlining_block, NULL, HOOK_ARGUMENTS, all);
    for (int n = HOOK_ARGUMENTS - 1; n >= 0; n--) f->free_temp(s, all[n]);
}

/* An access is about to be put; the kind of it, and *table, that of its pages. */
static uint32_t before_access(const Emulator *e, TcgContext *s, Variable address, uint32_t kind,
                              uintptr_t *table, bool writes) {
    if (!e->is_active || s != translating.ours || !translating.instruction) return kind;
    uc_engine *uc = *(uc_engine **)((char *)s + e->engine);
    Machine *m = machine_of(*(char **)((char *)uc + e->processor));
    if (!m) return kind;
    uint32_t place = (translating.count - 1) & INDEX_MASK;
    if (m->looks_at_accesses) put_look(e, s, m, address, kind, place, writes);
    return telling(e, m, kind, place & KIND_PLACE, table);
}

#define ACCESS(E, N, WRITES)                                                                      \
    static void E##_access_##N(TcgContext *s, Variable value, Variable address, uintptr_t index,  \
                               uint32_t kind) {                                                   \
        kind = before_access(&E##_emulator, s, address, kind, &index, WRITES);                    \
        E##_emulator.f.access[N](s, value, address, index, kind);                                 \
    }
#define REPLACEMENTS(E)                                                                           \
    ACCESS(E, 0, false) ACCESS(E, 1, true) ACCESS(E, 2, false) ACCESS(E, 3, true)                 \
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
    /* push %rbx; mov %rdx, %rbx; call emit; mov %rbx, arguments(%rax) */
    static const uint16_t emit[] = {0x53, 0x48, 0x89, 0xd3, 0xe8, ANY, ANY, ANY, ANY, 0x48, 0x89, 0x58};
    const uint8_t *code = (const uint8_t *)e->f.exit_if_requested;
    const uint8_t *putting = (const uint8_t *)e->f.check_exit;
    if (!starts_with(putting, put, sizeof put / sizeof *put)) return false;
    e->engine = number_at(putting + 3);
    if (!starts_with(e->f.emit_one, emit, sizeof emit / sizeof *emit)) return false;
    e->arguments = e->f.emit_one[sizeof emit / sizeof *emit];
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
    remember_machine(m);
    return 1;
}

/* Access memory directly where the engine's numbers of hooks for loads and stores allow it. */
EXPORT void machine_count_hooks(Machine *m, const uint32_t *loads, const uint32_t *stores) {
    m->load_hooks = loads;
    m->store_hooks = stores;
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
