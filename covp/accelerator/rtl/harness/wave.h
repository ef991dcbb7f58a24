// The signals of a unit, written by Verilator's own writer to a file.
#pragma once
#include <cstdint>
#include <memory>

#include "Vcovp_unit.h"

#if COVP_WAVE
#include COVP_WAVE_HEADER

class Wave {
public:
    // Record so many cycles from now on.
    bool open(Vcovp_unit &top, const char *path, uint64_t cycles) {
        writer = std::make_unique<WaveWriter>();
        left = cycles;
        top.trace(writer.get(), 99);
        writer->open(path);
        return writer->isOpen();
    }

    void close() {
        if (writer) writer->close();
        writer.reset();
    }

    // A cycle is settled, with its clock low; then its clock is high.
    void low(uint64_t cycle) {
        if (is_open()) writer->dump(TIME_OF_CYCLE * cycle);
    }
    void high(uint64_t cycle) {
        if (!is_open()) return;
        writer->dump(TIME_OF_CYCLE * cycle + TIME_OF_CYCLE / 2);
        if (!--left) close();
    }

    bool pauses = false;

private:
    static constexpr uint64_t TIME_OF_CYCLE = 1000;  // in picoseconds: cycle N is at N ns

    bool is_open() const { return writer && !pauses; }

    std::unique_ptr<WaveWriter> writer;
    uint64_t left = 0;
};

#else

class Wave {
public:
    bool open(Vcovp_unit &, const char *, uint64_t) { return false; }
    void close() {}
    void low(uint64_t) {}
    void high(uint64_t) {}
    bool pauses = false;
};
#endif
