// Drives NE16's RTL: a job's registers and memory in, its cycles and the memory after it out.
// The memory answers in each cycle, nine words wide, as a PULP cluster's does without conflicts.
#include "model.h"
#include "verilated.h"

#include <cstdint>
#include <cstring>

namespace {

constexpr int kPorts = 9, kRegisters = 24;
constexpr uint32_t kTrigger = 0x00, kAcquire = 0x04, kClear = 0x14, kJob = 0x40;

struct Bench {
    model unit;
    uint8_t *memory = nullptr;
    uint64_t size = 0;

    void clock() {
        unit.tcdm_gnt = (1u << kPorts) - 1;
        unit.eval();
        const bool asked = unit.tcdm_req & 1;
        uint32_t read[kPorts] = {};
        for (int port = 0; asked && port < kPorts; port++) {
            const uint64_t address = unit.tcdm_add[port];
            if (address + 4 > size)
                continue;
            if (unit.tcdm_wen & 1)
                std::memcpy(&read[port], memory + address, 4);
            else
                for (int byte = 0; byte < 4; byte++)
                    if (unit.tcdm_be >> (4 * port + byte) & 1)
                        memory[address + byte] = uint8_t(unit.tcdm_data[port] >> 8 * byte);
        }
        unit.clk_i = 1;
        unit.eval();
        unit.tcdm_r_valid = asked ? (1u << kPorts) - 1 : 0;
        std::memcpy(&unit.tcdm_r_data[0], read, sizeof read);
        unit.eval();
        unit.clk_i = 0;
        unit.eval();
    }

    void access(uint32_t address, bool is_read, uint32_t value) {
        unit.periph_req = 1;
        unit.periph_add = address;
        unit.periph_wen = is_read;
        unit.periph_be = 15;
        unit.periph_data = value;
        unit.periph_id = 1;
        unit.eval();
        while (!unit.periph_gnt)
            clock();
        clock();
        unit.periph_req = 0;
        unit.eval();
    }

    void wait(int cycles) {
        while (cycles--)
            clock();
    }
};

Bench *bench = nullptr;

}  // namespace

extern "C" uint32_t ne16_run(const uint32_t *registers, uint8_t *memory, uint64_t size, uint32_t most) {
    if (!bench) {
        bench = new Bench;
        bench->unit.rst_ni = 0;
        bench->wait(5);
        bench->unit.rst_ni = 1;
        bench->wait(10);
    }
    bench->memory = memory;
    bench->size = size;
    bench->access(kClear, false, 0);
    bench->wait(40);  // it stays in effect for some cycles
    bench->access(kAcquire, true, 0);
    for (int number = 0; number < kRegisters; number++)
        bench->access(kJob + 4 * number, false, registers[number]);
    bench->access(kTrigger, false, 0);
    for (uint32_t cycles = 1, began = 0; cycles <= most; cycles++) {
        bench->clock();
        began |= bench->unit.busy_o;
        if (began && !bench->unit.busy_o)
            return cycles;
    }
    return 0;
}
