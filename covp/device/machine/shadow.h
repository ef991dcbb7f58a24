/* Memory safety: a byte of shadow for each byte of memory says what the program may do with it.
 *
 * Only on while Python asks for it (shadow.py). Translated code then calls before every load and store,
 * and the emulator leaves before the first one that is not allowed. What was never written may be loaded,
 * stored and computed with, as long as it decides nothing: undefined.h.
 */
#ifndef COVP_SHADOW_H
#define COVP_SHADOW_H

#include "blocks.h"
#include "counter_state.h"
#include "undefined.h"

/* UNWRITTEN: nothing was stored there. CARRIED: undefined bits were; `bits` says which. */
enum { NO_LOAD = 1, NO_STORE = 2, UNWRITTEN = 4, CARRIED = 8, UNDEFINED = UNWRITTEN | CARRIED };
enum { TRUSTED = 8 };
enum { FOUND_NOTHING, FOUND_ACCESS, FOUND_UNWRITTEN, FOUND_GONE };

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
    uint32_t above;         /* bytes above `top` that a call may access: its arguments */
    uint32_t returns_to;    /* where a call returns to, with its result in ... */
    uint32_t result[2];     /* ... these registers, ... */
    uint32_t result_bytes[2]; /* ... of which these bytes, a bit for each, are it */
    uint32_t decides;       /* what is decided by undefined bits, DECIDES_..., ... */
    uint32_t loaded_at;     /* ... and where they were loaded */
    uint8_t *bytes[MAX_REGIONS];
    /* Only the native side. */
    uint8_t *bits[MAX_REGIONS]; /* of CARRIED bytes; NULL: there is none */
    uint32_t low;           /* lowest address of the stack that holds something of a frame */
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

/* The bits of bytes, of which each has a bit. */
static uint32_t bits_of_bytes(uint32_t bytes) {
    uint32_t bits = 0;
    for (int n = 0; n < 4; n++)
        if (bytes >> n & 1) bits |= 0xffu << 8 * n;
    return bits;
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

/* Whether an instruction stores relative to the stack pointer: pushes do so before they change it. */
static bool is_push(const Machine *m, Instruction i) {
    if (!m->is_thumb) return false;
    return i.bytes == 2 ? (i.bits & 0xfe00) == 0xb400 || i.bits >> 12 == 9 : (i.bits >> 16 & 15) == 13;
}

/* Undefined bits decide something; false. */
static bool report_undefined(Machine *m, uc_engine *uc, Tracked *t) {
    Bits by = t->decisive;
    m->shadow->decides = t->decides;
    m->shadow->loaded_at = by.pc;
    t->decides = DECIDES_NOTHING;
    return report(m, uc, FOUND_UNWRITTEN, t->pc, by.origin, 1, false);
}

/* Of a byte with flags, those bits that are undefined. */
static uint8_t undefined_byte(const Machine *m, uint32_t address, uint8_t flags) {
    if (!(flags & CARRIED)) return flags & UNWRITTEN ? 0xff : 0;
    const Region *r = region_of(m, address);
    return m->shadow->bits[r - m->regions][address - r->start];
}

/* What a load at pc gets. */
static Bits bits_in_memory(Machine *m, const uint8_t *bytes, uint32_t address, uint32_t size, uint32_t pc) {
    const uint8_t *memory = host_bytes(m, address, size);
    Bits found = {.pc = pc, .origin = NO_INDEX};
    if (memory) memcpy(&found.value, memory, size);
    for (uint32_t n = 0; n < size; n++) {
        uint64_t undefined = undefined_byte(m, address + n, bytes[n]);
        found.undefined |= undefined << 8 * n;
        if (!undefined || found.origin != NO_INDEX) continue;
        const Origin *origin = origin_of(&m->shadow->undefined, address + n);
        bool is_stored = bytes[n] & CARRIED && origin->word == (address + n) >> 2;
        found.origin = is_stored ? origin->address : address + n;
        found.computed = is_stored && origin->computed;
        if (found.computed) found.pc = origin->pc;
    }
    return found;
}

/* Memory gets bits, of which some may be undefined. */
static void put_in_memory(Machine *m, uint8_t *bytes, uint32_t address, uint32_t size, Bits value) {
    Shadow *s = m->shadow;
    const Region *r = region_of(m, address);
    uint8_t **bits = &s->bits[r - m->regions];
    if (value.undefined && !*bits) *bits = zeroed(m, r->end - r->start, 1);
    uint8_t flag = *bits ? CARRIED : UNWRITTEN;
    for (uint32_t n = 0; n < size; n++) {
        uint8_t undefined = (uint8_t)(value.undefined >> 8 * n);
        bytes[n] = (uint8_t)((bytes[n] & ~UNDEFINED) | (undefined ? flag : 0));
        if (!undefined) continue;
        keep_origin(&s->undefined, address + n, value);
        if (*bits) (*bits)[address + n - r->start] = undefined;
    }
}

/* An access that is allowed, of memory with undefined bits or while registers have some; false: such bits
 * decide something. `bytes`: its shadow, NULL outside of memory.
 */
__attribute__((noinline)) static bool carries(Machine *m, uc_engine *uc, uint8_t *bytes, uint32_t address,
                                              uint32_t size, bool writes, uint32_t index) {
    Undefined *u = &m->shadow->undefined;
    const Block *b = m->last;
    uint32_t number;
    Bits value = known(0);
    if (!writes && bytes) value = bits_in_memory(m, bytes, address, size, pc_of(b, index));
    if (!u->is_active && value.undefined) begin_walk(u);
    bool meet = u->is_active && meets(m, uc, u, b, index, !writes, m->shadow->ordinal * size, &number);
    if (meet && !writes) load_bits(m, &u->t, number, size, value);
    if (meet && writes) value = stored_bits(&u->t, number, size);
    if (writes && !bytes) decide(&u->t, DECIDES_OUTPUT, value);
    if (writes && bytes) put_in_memory(m, bytes, address, size, value);
    bool defined = meet ? pass_access(m, u, b, size) : !u->t.decides;
    return defined || report_undefined(m, uc, &u->t);
}

/* An access that is not plainly allowed; whether it is. Inlined it would slow down those that are. */
__attribute__((noinline)) static bool allows(Machine *m, uc_engine *uc, uint8_t *bytes, uint32_t address,
                                             uint32_t size, bool writes, uint32_t index) {
    Shadow *s = m->shadow;
    const Block *b = m->last;
    if (is_trusted(m, b->address)) {
        if (writes) memset(bytes, bytes[0] & ~UNDEFINED, size);
        return true;
    }
    if (flagged(bytes, size, writes ? NO_STORE : NO_LOAD)) {
        if (!is_handed_out(m, address, size))
            return report(m, uc, FOUND_ACCESS, pc_of(b, index), address, size, writes);
        memset(bytes, writes ? 0 : UNWRITTEN, size);
    }
    bool in_stack = address >= s->stack_start && address < s->stack_end;
    if (!writes && in_stack && address < sp_of(m, uc) && flagged(bytes, size, UNDEFINED))
        return report(m, uc, FOUND_GONE, pc_of(b, index), address, size, false);
    return carries(m, uc, bytes, address, size, writes, index);
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
        if (sp_of(m, uc) >= s->stack_start)
            return !s->undefined.is_active || carries(m, uc, bytes, address, size, writes, index);
        return report(m, uc, FOUND_ACCESS, pc_of(m->last, index), address, size, writes);
    }
    if (address < s->low && address >= s->stack_start && !reaches(m, uc, address, writes, index))
        return report(m, uc, FOUND_ACCESS, pc_of(m->last, index), address, size, writes);
    if (address >= s->top + s->above && address < s->stack_end && !is_trusted(m, m->last->address))
        return report(m, uc, FOUND_ACCESS, pc_of(m->last, index), address, size, writes);
    uint64_t all = 0, each_byte = 0x0101010101010101;
    if (LIKELY(size <= 8)) memcpy(&all, bytes, size);
    all &= each_byte * (writes ? NO_STORE | UNDEFINED : NO_LOAD | UNDEFINED);
    if (LIKELY(!all && !s->undefined.is_active)) return true;
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

/* The function that Python called returns: its result is looked at, other registers hold nothing. */
static bool returns_defined(Machine *m, uc_engine *uc) {
    Shadow *s = m->shadow;
    Tracked *t = &s->undefined.t;
    s->undefined.is_active = false;
    for (int n = 0; n < 2; n++)
        decide(t, DECIDES_RESULT, masked(t->r[s->result[n]], bits_of_bytes(s->result_bytes[n])));
    t->pc = t->decisive.pc;
    return !t->decides || report_undefined(m, uc, t);
}

/* A block is about to run while registers have undefined bits; false: a finding. */
__attribute__((noinline)) static bool check_undefined(Machine *m, uc_engine *uc, const Block *b) {
    Undefined *u = &m->shadow->undefined;
    if (b->address == m->shadow->returns_to) return returns_defined(m, uc);
    if (is_trusted(m, b->address)) return true;
    return enter_undefined(m, uc, u, b) || report_undefined(m, uc, &u->t);
}

/* A block is about to run, after m->last; false: a finding. */
static bool check_block(Machine *m, uc_engine *uc, const Block *b) {
    Shadow *s = m->shadow;
    s->index = NO_INDEX;
    if (s->found) return false;
    const Block *last = m->last; /* returns are no direct branches */
    if (last->address + last->size != b->address && s->low < s->stack_end && !ends_direct(m, last))
        drop_frames(m, uc);
    return LIKELY(!s->undefined.is_active) || check_undefined(m, uc, b);
}

/* -- for Python ---------------------------------------------------------------------------------- */

EXPORT uint64_t shadow_shared_bytes(void) { return offsetof(Shadow, bits); }

static void forget_shadow(Machine *m) {
    if (!m->shadow) return;
    for (uint32_t n = 0; n < m->region_count; n++) {
        free(m->shadow->bytes[n]);
        free(m->shadow->bits[n]);
    }
    free(m->shadow);
    m->shadow = NULL;
}

/* Check accesses from now on; no code must have run. NULL: not enough memory. */
EXPORT Shadow *machine_add_shadow(Machine *m) {
    Shadow *s = m->shadow = calloc(1, sizeof *s);
    for (uint32_t n = 0; s && n < m->region_count; n++) {
        uint64_t size = (uint64_t)m->regions[n].end - m->regions[n].start;
        s->bytes[n] = malloc(size);
        if (!s->bytes[n]) {
            forget_shadow(m);
            return NULL;
        }
        memset(s->bytes[n], NO_LOAD | NO_STORE, size);
    }
    return s;
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

/* The undefined bits of bytes; none outside of memory. */
EXPORT void machine_get_undefined(const Machine *m, uint32_t address, uint32_t size, uint8_t *bits) {
    const uint8_t *bytes = shadow_of(m, address, size);
    for (uint32_t n = 0; bytes && n < size; n++) bits[n] = undefined_byte(m, address + n, bytes[n]);
}

/* Where undefined bits that were stored in a byte are from, and the pc of their load; 0: not known. */
EXPORT void machine_get_origin(const Machine *m, uint32_t address, uint32_t *from) {
    const Origin *origin = &m->shadow->undefined.origins[address >> 2 & (ORIGINS - 1)];
    const uint8_t *bytes = shadow_of(m, address, 1);
    bool is_known = bytes && *bytes & CARRIED && origin->word == address >> 2;
    from[0] = is_known ? origin->address : 0;
    from[1] = is_known ? origin->pc : 0;
}

/* Someone else has stored into memory. */
EXPORT void machine_wrote(Machine *m, uint32_t address, uint32_t size) {
    uint8_t *bytes = m->shadow ? shadow_of(m, address, size) : NULL;
    for (uint32_t n = 0; bytes && n < size; n++) bytes[n] &= (uint8_t)~UNDEFINED;
}

/* The register that is in a word of an exception's frame (DDI0403E B1.5.6), or NULL: none that is followed. */
static Bits *stacked(Tracked *t, uint32_t word) {
    static const uint8_t first[] = {0, 1, 2, 3, 12, LR};
    enum { RETURN_AT = 6, FLAGS_AT, FLOATS_AT, FPSCR_AT = FLOATS_AT + 16 };
    if (word < RETURN_AT) return &t->r[first[word]];
    if (word == FLAGS_AT) return &t->flags;
    if (word == FPSCR_AT) return &t->fpscr;
    return word >= FLOATS_AT && word < FPSCR_AT ? &t->r[FLOAT + word - FLOATS_AT] : NULL;
}

/* An exception has put its frame of so many words on the stack, or takes it from there (`returns`): undefined
 * bits of registers go along.
 */
EXPORT void machine_stack_frame(Machine *m, uint32_t frame, uint32_t words, int returns) {
    Undefined *u = &m->shadow->undefined;
    for (uint32_t n = 0; n < words; n++) {
        uint32_t address = frame + WORD * n;
        uint8_t *bytes = shadow_of(m, address, WORD);
        Bits *one = stacked(&u->t, n), saved;
        if (!one || !bytes) continue;
        if (!returns) {
            if (u->is_active) put_in_memory(m, bytes, address, WORD, *one);
            continue;
        }
        saved = bits_in_memory(m, bytes, address, WORD, origin_of(u, address)->pc);
        if (!u->is_active && saved.undefined) begin_walk(u);
        if (u->is_active) *one = saved;
    }
    if (!returns) u->t.r[LR] = known(0); /* EXC_RETURN is there now */
    u->t.compares = false;
}

/* Calls begin: the stack is empty. */
EXPORT void machine_begin_shadow(Machine *m) {
    Shadow *s = m->shadow;
    s->found = FOUND_NOTHING;
    s->low = s->top = s->lowest = s->stack_end;
    s->index = NO_INDEX;
    forget_undefined(&s->undefined);
    machine_set_shadow(m, s->stack_start, s->stack_end - s->stack_start, UNWRITTEN);
}

#endif
