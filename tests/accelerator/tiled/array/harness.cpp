// Drives one Verilated array; counts cycles at its pins alone.
#include <cstdint>
#include "Varray.h"
#include "verilated.h"
#ifndef LENGTH
#define LENGTH pixels
#endif
static Varray *top;
static void edge() { top->clk = 1; top->eval(); top->clk = 0; top->eval(); }
extern "C" void make() {
    top = new Varray;
    top->clk = 0; top->start = 0; top->host_write = 0; top->host_bank = 0; top->host_address = 0;
    top->reset = 1; top->eval();
    for (int n = 0; n < 100; n++) edge();
    top->reset = 0; top->eval();
}
extern "C" void put(int what, int bank, int address, uint32_t data) {
    top->host_write = what; top->host_bank = bank; top->host_address = address;
    top->host_data = data; edge(); top->host_write = 0;
}
extern "C" uint32_t get(int bank, int address) {
    top->host_bank = bank; top->host_address = address; top->eval(); return top->host_sum;
}
// The cycles from the first `entering` to the last `leaving`, both included; -1: not done in time.
extern "C" int run(int length, int across, int blocks) {
    top->LENGTH = length; top->across = across - 1; top->blocks = blocks;
    top->start = 1; top->eval(); edge(); top->start = 0; top->eval();
    int first = -1, last = -1;
    for (int cycle = 0; cycle < 200000; cycle++, edge()) {
        if (top->done) return last - first + 1;
        if (top->entering && first < 0) first = cycle;
        if (top->leaving) last = cycle;
    }
    return -1;
}
