// AXI4-Lite (Arm IHI 0022): address, data and answer on channels of their own.
#pragma once
#include "bench.h"

class Registers {
public:
    explicit Registers(Bench &bench) : bench(bench), top(bench.top) {}

    void idle() { r_awvalid = 0, r_wvalid = 0, r_bready = 0, r_arvalid = 0, r_rready = 0; }

    bool access(bool writes, uint32_t offset, uint32_t &value) {
        bool address = true, data = writes, answer = true, failed = false;
        r_awaddr = offset, r_araddr = offset, r_wdata = value, r_wstrb = 0xF;
        for (int i = 0; i < LONGEST_ACCESS && answer; i++) {
            r_awvalid = address && writes, r_arvalid = address && !writes, r_wvalid = data;
            r_bready = writes, r_rready = !writes;
            bench.settle();
            bool taking = address || data;
            if (writes ? r_awready : r_arready) address = false;
            if (r_wready) data = false;
            if (writes && r_bvalid) answer = address || data, failed = r_bresp & 2;
            if (!writes && r_rvalid) answer = false, failed = r_rresp & 2, value = r_rdata;
            bench.edge();
            if (taking) bench.taken = bench.now;
        }
        idle();
        return !answer && !failed;
    }

private:
    Bench &bench;
    Vcovp_unit &top;
};
