// OBI 1.2 (OpenHW): a request until its grant, then the answer.
#pragma once
#include "bench.h"

class Registers {
public:
    explicit Registers(Bench &bench) : bench(bench), top(bench.top) {}

    void idle() { r_req = 0, r_rready = 1; }

    bool access(bool writes, uint32_t offset, uint32_t &value) {
        bool asked = false, done = false, failed = false;
        r_addr = offset, r_we = writes, r_be = 0xF, r_wdata = value, r_rready = 1;
        for (int i = 0; i < LONGEST_ACCESS && !done; i++) {
            r_req = !asked;
            bench.settle();
            if (asked && r_rvalid) {
                done = true, failed = r_err;
                if (!writes) value = r_rdata;
            }
            bool taking = !asked;
            if (r_gnt) asked = true;
            bench.edge();
            if (taking) bench.taken = bench.now;
        }
        idle();
        return done && !failed;
    }

private:
    Bench &bench;
    Vcovp_unit &top;
};
