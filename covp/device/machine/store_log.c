/* The stores of an emulated core to some memory, one by one; covp/device/machine/store_log.py calls it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef struct uc_struct uc_engine;

typedef struct {
    uint32_t pc, address;
    uint64_t value;
    uint32_t size, reserved;
} Record;

typedef struct {
    uint64_t count, limit;  /* stores so far; how many are kept */
    uint64_t notice;        /* `told` is called before the store of this number */
    uint32_t first, end;    /* the memory */
    int32_t pc, xpsr;       /* registers by Unicorn's numbers; no xpsr: 0 */
    int (*reg_read)(uc_engine *uc, int id, void *value);
    int (*reg_write)(uc_engine *uc, int id, const void *value);
    void (*told)(void);
    Record *records;
} Log;

EXPORT uint64_t store_log_bytes(void) { return sizeof(Log); }

/* Unicorn leaves the IT bits of the storing instruction set, and what follows would run under that
 * condition; inside a block of code they are 0, always. See tlb.h.
 */
static void clear_it_bits(const Log *log, uc_engine *uc) {
    const uint64_t bits = 0x0600fc00;
    uint64_t value = 0;
    if (!log->xpsr || log->reg_read(uc, log->xpsr, &value) || !(value & bits)) return;
    value &= ~bits;
    log->reg_write(uc, log->xpsr, &value);
}

EXPORT void on_store(uc_engine *uc, int type, uint64_t address, int size, int64_t value, Log *log) {
    (void)type;
    clear_it_bits(log, uc);
    if (address + (uint64_t)size <= log->first || address >= log->end) return;
    if (log->count == log->notice && log->told) log->told();
    if (log->count < log->limit) {
        uint64_t pc = 0;
        log->reg_read(uc, log->pc, &pc);
        uint64_t mask = size < 8 ? ((uint64_t)1 << 8 * size) - 1 : ~(uint64_t)0;
        Record record = {(uint32_t)pc, (uint32_t)address, (uint64_t)value & mask, (uint32_t)size, 0};
        log->records[log->count] = record;
    }
    log->count++;
}
