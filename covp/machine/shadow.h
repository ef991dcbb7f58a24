/* Memory safety: a byte of shadow for each byte of memory says what the program may do with it.
 *
 * Only on while Python asks for it (shadow.py). Translated code then calls before every load and store,
 * and the emulator leaves before the first one that is not allowed. A load of bytes that were never
 * written is allowed as long as they are only copied: undefined.h.
 */
#ifndef COVP_SHADOW_H
#define COVP_SHADOW_H

#include "blocks.h"
#include "counter_state.h"
#include "undefined.h"

enum { NO_LOAD = 1, NO_STORE = 2, UNWRITTEN = 4 };
enum { TRUSTED = 8 };
enum { FOUND_NOTHING, FOUND_ACCESS, FOUND_UNWRITTEN, FOUND_MISALIGNED, FOUND_GONE };
enum { ALIGNED_NONE, ALIGNED_MULTIPLES, ALIGNED_ALL }; /* accesses that have to be */

typedef struct Shadow {
    /* Read and written by Python; mirrored in shadow.py. */
    uint32_t found;         /* why the run ended, or FOUND_NOTHING ... */
    uint32_t pc;            /* ... where, ... */
    uint32_t address, size; /* ... and the access */
    uint32_t is_store, found_sp;
    uint32_t trusted_count; /* code that may do anything: ranges of addresses */
    uint32_t trusted[TRUSTED][2];
    uint32_t stack_start, stack_end;
    uint32_t top, lowest;   /* of the stack in use: where calls begin, and the lowest address */
    uint32_t stack_limit;   /* bytes of it that may be in use */
    uint32_t heap_start, heap_end; /* memory that is allowed up to the address stored at heap_next */
    uint32_t heap_next;
    uint32_t sp;            /* Unicorn's number of the stack pointer */
    uint32_t program_counter; /* and of the program counter */
    uint32_t above;         /* bytes above `top` that a call may access: its arguments */
    uint32_t aligned;       /* accesses that have to be */
    uint32_t returns_to;    /* where a call returns to, with its result in ... */
    uint32_t result[2];     /* ... these registers, ... */
    uint32_t result_bytes[2]; /* ... of which these bytes, a bit for each, are it */
    uint32_t unused;
    uint8_t *bytes[MAX_REGIONS];
    /* Only the native side. */
    uint32_t low;           /* lowest address of the stack that holds something of a frame */
    uint8_t before[8];      /* where the emulator stops after a store: what it has stored over */
    bool stored;
    uint32_t index, ordinal; /* instruction of the block that accessed last, and how often before */
    Undefined undefined;
} Shadow;

static bool is_trusted(const Machine *m, uint32_t address) {
    const Shadow *s = m->shadow;
    for (uint32_t n = 0; n < s->trusted_count; n++)
        if (address - s->trusted[n][0] < s->trusted[n][1] - s->trusted[n][0]) return true;
    return false;
}

static uint32_t sp_of(Machine *m, uc_engine *uc) {
    uint64_t value = 0;
    m->reg_read(uc, (int)m->shadow->sp, &value);
    return (uint32_t)value;
}

static bool report(Machine *m, uc_engine *uc, uint32_t why, uint32_t pc, uint32_t address,
                   uint32_t size, bool writes) {
    Shadow *s = m->shadow;
    s->found = why;
    s->found_sp = sp_of(m, uc);
    s->pc = pc;
    s->address = address;
    s->size = size;
    s->is_store = writes;
    return false;
}

/* The shadow of an access, or NULL outside memory. */
static uint8_t *shadow_of(const Machine *m, uint32_t address, uint32_t size) {
    for (uint32_t n = 0; n < m->region_count; n++) {
        const Region *r = &m->regions[n];
        if (address >= r->start && (uint64_t)address + size <= r->end)
            return m->shadow->bytes[n] ? m->shadow->bytes[n] + (address - r->start) : NULL;
    }
    return NULL;
}

/* A bit for each byte of an access whose shadow has a flag. */
static uint32_t flagged(const uint8_t *bytes, uint32_t size, uint8_t flag) {
    uint32_t found = 0;
    for (uint32_t n = 0; n < size; n++) found |= (uint32_t)!!(bytes[n] & flag) << n;
    return found;
}

/* Whether memory was handed out by the workspace's allocator, whose end stands in memory. */
static bool is_handed_out(const Machine *m, uint32_t address, uint32_t size) {
    const Shadow *s = m->shadow;
    if (address < s->heap_start || address + size > s->heap_end) return false;
    const uint8_t *at = host_bytes(m, s->heap_next, 4);
    uint32_t next = 0;
    if (at) memcpy(&next, at, sizeof next);
    return next > s->heap_start && address + size <= next;
}

static Instruction instruction_at(const Block *b, uint32_t index) {
    return index < b->instructions ? b->version->code[index] : (Instruction){.bytes = 2};
}

/* Whether an instruction stores relative to the stack pointer: pushes do so before they change it. */
static bool is_push(const Machine *m, Instruction i) {
    if (!m->is_thumb) return false;
    return i.bytes == 2 ? (i.bits & 0xfe00) == 0xb400 || i.bits >> 12 == 9 : (i.bits >> 16 & 15) == 13;
}

/* Whether a misaligned access is a fault; Armv7-M lets single loads and stores pass. */
static bool must_align(const Machine *m, Instruction i) {
    if (m->shadow->aligned != ALIGNED_MULTIPLES) return m->shadow->aligned == ALIGNED_ALL;
    if (i.bytes == 2) return i.bits >> 12 == 12;
    return (i.bits & 0xfe000000) == 0xe8000000 || (i.bits & 0xfe000000) == 0xec000000;
}

/* An access that is not plainly allowed; whether it is. */
static bool allows(Machine *m, uc_engine *uc, uint8_t *bytes, uint32_t address, uint32_t size,
                   bool writes, uint32_t index) {
    Shadow *s = m->shadow;
    const Block *b = m->last;
    if (is_trusted(m, b->address)) {
        if (writes) memset(bytes, bytes[0] & ~UNWRITTEN, size);
        return true;
    }
    if (flagged(bytes, size, writes ? NO_STORE : NO_LOAD)) {
        if (!is_handed_out(m, address, size))
            return report(m, uc, FOUND_ACCESS, pc_of(b, index), address, size, writes);
        memset(bytes, writes ? 0 : UNWRITTEN, size);
    }
    if (writes) {
        uint32_t undefined = stored_undefined(m, &s->undefined, b, index, s->ordinal, size);
        for (uint32_t n = 0; n < size; n++)
            bytes[n] = (uint8_t)((bytes[n] & ~UNWRITTEN) | (undefined >> n & 1 ? UNWRITTEN : 0));
        return true;
    }
    uint32_t unwritten = flagged(bytes, size, UNWRITTEN);
    if (!unwritten && !s->undefined.count) return true;
    bool in_stack = address >= s->stack_start && address < s->stack_end;
    if (unwritten && in_stack && address < sp_of(m, uc))
        return report(m, uc, FOUND_GONE, pc_of(b, index), address, size, false);
    if (loaded_undefined(m, &s->undefined, b, index, s->ordinal, size, unwritten, address))
        return true;
    return report(m, uc, FOUND_UNWRITTEN, pc_of(b, index), address, size, false);
}

/* More of the stack is in use than ever; whether it may be. What lies above is covp's own. */
static bool deepens(const Machine *m, uint32_t address) {
    Shadow *s = m->shadow;
    if (s->lowest == s->top && is_trusted(m, m->last->address)) s->top = address;
    s->lowest = address;
    return s->top - address <= s->stack_limit;
}

/* An access of the stack below what its frames hold so far; whether it may be. */
static bool reaches(Machine *m, uc_engine *uc, uint32_t address, bool writes, uint32_t index) {
    Shadow *s = m->shadow;
    bool pushes = is_push(m, instruction_at(m->last, index));
    if (writes && !pushes && address < sp_of(m, uc)) return false;
    s->low = address;
    return address >= s->lowest || deepens(m, address);
}

/* The core loads or stores; whether it may. `index`: of the instruction in its block. */
static bool check_access(Machine *m, uc_engine *uc, uint32_t address, uint32_t size, bool writes,
                         uint32_t index) {
    Shadow *s = m->shadow;
    if (s->found) return true;
    s->ordinal = s->index == index ? s->ordinal + 1 : 0;
    s->index = index;
    uint8_t *bytes = shadow_of(m, address, size);
    if (!bytes) { /* peripherals, and what faults */
        if (sp_of(m, uc) >= s->stack_start) return true;
        return report(m, uc, FOUND_ACCESS, pc_of(m->last, index), address, size, writes);
    }
    if (address < s->low && address >= s->stack_start && !reaches(m, uc, address, writes, index))
        return report(m, uc, FOUND_ACCESS, pc_of(m->last, index), address, size, writes);
    if (address >= s->top + s->above && address < s->stack_end && !is_trusted(m, m->last->address))
        return report(m, uc, FOUND_ACCESS, pc_of(m->last, index), address, size, writes);
    if (address & (size - 1) & 3 && must_align(m, instruction_at(m->last, index)))
        return report(m, uc, FOUND_MISALIGNED, pc_of(m->last, index), address, size, writes);
    uint64_t all = 0;
    if (LIKELY(size <= 8)) memcpy(&all, bytes, size);
    if (LIKELY(!all && !s->undefined.count)) return true;
    return allows(m, uc, bytes, address, size, writes, index);
}

/* Frames below the stack pointer are gone: what they held counts as never written. */
static void drop_frames(Machine *m, uc_engine *uc) {
    Shadow *s = m->shadow;
    uint32_t sp = sp_of(m, uc);
    if (sp < s->stack_start || sp > s->stack_end || s->low >= sp) return;
    uint8_t *bytes = shadow_of(m, s->low, sp - s->low);
    if (bytes) memset(bytes, UNWRITTEN, sp - s->low);
    s->low = sp;
}

/* A block is about to run, after m->last; false: a finding. */
static bool check_block(Machine *m, uc_engine *uc, const Block *b) {
    Shadow *s = m->shadow;
    s->index = NO_INDEX;
    if (s->found) return false;
    const Block *last = m->last; /* returns are no direct branches */
    if (last->address + last->size != b->address && s->low < s->stack_end && !ends_direct(m, last))
        drop_frames(m, uc);
    if (LIKELY(!s->undefined.count)) return true;
    uint32_t number;
    Undefined *u = &s->undefined;
    bool used = !carry_undefined(m, u, b, &number);
    for (int n = 0; n < 2 && !used && b->address == s->returns_to; n++) {
        number = s->result[n];
        used = u->bits[number] & bits_of_bytes(s->result_bytes[n]);
    }
    return !used || report(m, uc, FOUND_UNWRITTEN, u->pc[number], u->origin[number], 1, false);
}

/* A store that is not allowed will be done before the emulator stops. */
static void keep_before(Machine *m, uint32_t address, uint32_t size) {
    const uint8_t *at = host_bytes(m, address, size);
    if (!at || size > sizeof m->shadow->before) return;
    memcpy(m->shadow->before, at, size);
    m->shadow->stored = true;
}

/* The run is over: undo it. */
static void undo_store(Machine *m) {
    Shadow *s = m->shadow;
    if (s->stored) memcpy((uint8_t *)host_bytes(m, s->address, s->size), s->before, s->size);
    s->stored = false;
}

/* -- for Python ---------------------------------------------------------------------------------- */

EXPORT uint64_t shadow_shared_bytes(void) { return offsetof(Shadow, low); }

/* Check accesses from now on; no code must have run. NULL: not enough memory. */
EXPORT Shadow *machine_add_shadow(Machine *m) {
    Shadow *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    for (uint32_t n = 0; n < m->region_count; n++) {
        uint64_t size = (uint64_t)m->regions[n].end - m->regions[n].start;
        if (!(s->bytes[n] = malloc(size))) abort();
        memset(s->bytes[n], NO_LOAD | NO_STORE, size);
    }
    return m->shadow = s;
}

static void forget_shadow(Machine *m) {
    if (!m->shadow) return;
    for (uint32_t n = 0; n < m->region_count; n++) free(m->shadow->bytes[n]);
    free(m->shadow);
}

/* Give memory a state. */
EXPORT void machine_set_shadow(Machine *m, uint32_t address, uint32_t size, uint32_t state) {
    uint8_t *bytes = shadow_of(m, address, size);
    if (bytes) memset(bytes, (int)state, size);
}

/* The states of bytes; 0 outside of memory. */
EXPORT void machine_get_shadow(Machine *m, uint32_t address, uint32_t size, uint8_t *states) {
    const uint8_t *bytes = shadow_of(m, address, size);
    if (bytes) memcpy(states, bytes, size);
}

/* Someone else has stored into memory. */
EXPORT void machine_wrote(Machine *m, uint32_t address, uint32_t size) {
    uint8_t *bytes = m->shadow ? shadow_of(m, address, size) : NULL;
    for (uint32_t n = 0; bytes && n < size; n++) bytes[n] &= (uint8_t)~UNWRITTEN;
}

/* Calls begin: the stack is empty. */
EXPORT void machine_begin_shadow(Machine *m) {
    Shadow *s = m->shadow;
    s->found = FOUND_NOTHING;
    s->low = s->top = s->lowest = s->stack_end;
    s->index = NO_INDEX;
    memset(&s->undefined, 0, sizeof s->undefined);
    machine_set_shadow(m, s->stack_start, s->stack_end - s->stack_start, UNWRITTEN);
}

#endif
