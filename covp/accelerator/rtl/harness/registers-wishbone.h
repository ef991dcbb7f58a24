// Wishbone B4, classic cycles: the strobe stays until ACK.
#pragma once
#include "bench.h"

class Registers {
public:
    explicit Registers(Bench &bench) : bench(bench), top(bench.top) {}

    void idle() { r_cyc = 0, r_stb = 0; }

    bool access(bool writes, uint32_t offset, uint32_t &value) {
        r_cyc = 1, r_stb = 1, r_we = writes, r_adr = offset, r_sel = 0xF, r_wdat = value;
        bool done = false, failed = false;
        for (int i = 0; i < LONGEST_ACCESS && !done; i++) {
            bench.settle();
            failed = r_err;
            done = r_ack || failed;
            if (!writes) value = r_rdat;
            bench.edge();
            bench.taken = bench.now;
        }
        idle();
        return done && !failed;
    }

private:
    Bench &bench;
    Vcovp_unit &top;
};
