// APB (Arm IHI 0024): one cycle of set-up, then access until PREADY.
#pragma once
#include "bench.h"

class Registers {
public:
    explicit Registers(Bench &bench) : bench(bench), top(bench.top) {}

    void idle() { r_psel = 0, r_penable = 0; }

    bool access(bool writes, uint32_t offset, uint32_t &value) {
        r_psel = 1, r_penable = 0, r_paddr = offset, r_pwrite = writes;
        r_pwdata = value, r_pstrb = 0xF;
        bench.tick();
        r_penable = 1;
        bool done = false, failed = false;
        for (int i = 0; i < LONGEST_ACCESS && !done; i++) {
            bench.settle();
            done = r_pready, failed = r_pslverr;
            if (!writes) value = r_prdata;
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
