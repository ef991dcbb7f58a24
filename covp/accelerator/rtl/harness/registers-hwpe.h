// HWPE's control port (PULP): a request until its grant; `wen` is low for a store. Loads are answered by data.
#pragma once
#include "bench.h"

class Registers {
public:
    explicit Registers(Bench &bench) : bench(bench), top(bench.top) {}

    void idle() { r_req = 0, r_wen = 1; }

    bool access(bool writes, uint32_t offset, uint32_t &value) {
        bool asked = false, done = false;
        r_add = offset, r_wen = !writes, r_be = 0xF, r_data = value, r_id = 1;
        for (int i = 0; i < LONGEST_ACCESS && !done; i++) {
            r_req = !asked;
            bench.settle();
            if (asked && r_r_valid) {
                done = true;
                if (!writes) value = r_r_data;
            }
            bool taken = !asked && r_gnt;
            bench.edge();
            if (taken) {
                asked = true, bench.taken = bench.now;
                done = writes;
            }
        }
        idle();
        return done;
    }

private:
    Bench &bench;
    Vcovp_unit &top;
};
