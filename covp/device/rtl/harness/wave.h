// The signals of a window of cycles, written by Verilator's own writer to a file. A model that is
// built without waves has none of this.
#pragma once
#include <cstdint>
#include <memory>

#include "Vcovp_core.h"
#include "phases.h"
#include "state.h"

#if COVP_WAVE
#include COVP_WAVE_HEADER

#if COVP_WAVE_VCD
// Verilator ends the process where a write fails, as on a full disk; here the failure is kept.
class WaveFile : public VerilatedVcdFile {
public:
    bool failed = false;
    ssize_t write(const char *bytes, ssize_t size) override {
        ssize_t written = failed ? size : VerilatedVcdFile::write(bytes, size);
        failed |= written <= 0 && size > 0;
        return failed ? size : written;
    }
};
#endif

class Wave {
public:
    static constexpr uint32_t WHOLE_RUN = UINT32_MAX;

    Wave(VerilatedContext &context, const State &state, const Phases &phases)
        : state(state), phases(phases) {
        context.traceEverOn(true);
    }

    // Record the cycles [first, end) of a phase, or of all but phase 0 where phases are set.
    bool open(Vcovp_core &core, const char *path, uint64_t first, uint64_t end, uint32_t phase) {
        this->first = first, this->end = end, wanted = phase;
        seen = written = 0, inside = false;
#if COVP_WAVE_VCD
        file = std::make_unique<WaveFile>();
        writer = std::make_unique<WaveWriter>(file.get());
#else
        writer = std::make_unique<WaveWriter>();
#endif
        core.trace(writer.get(), 99);
        writer->open(path);
        return writer->isOpen();
    }

    // False: not everything could be written.
    bool close() {
        if (writer) writer->close();
        writer.reset();
#if COVP_WAVE_VCD
        return !file || !file->failed;
#else
        return true;
#endif
    }

    // The signals of the cycle are settled, its clock is low.
    void low() {
        if (!writer) return;
        bool selects = wanted == WHOLE_RUN ? state.phase || !phases.are_set() : state.phase == wanted;
        // a sleep is skipped: cycles go on by more than one
        if (selects && !inside) start = state.cycle - seen;
        inside = selects;
        if (!selects) return;
        cycle = state.cycle - start;
        seen = cycle + 1;
        if (records()) dump(TIME_OF_CYCLE * cycle), written++;
    }

    // Its clock is high.
    void high() {
        if (writer && inside && records()) dump(TIME_OF_CYCLE * cycle + TIME_OF_CYCLE / 2);
    }

    uint64_t seen = 0, written = 0;  // cycles of the phase or run, and those in the file

private:
    static constexpr uint64_t TIME_OF_CYCLE = 1000;  // in picoseconds: cycle N is at N ns

    bool records() const { return cycle >= first && cycle < end; }
    void dump(uint64_t time) { writer->dump(time); }

    const State &state;
    const Phases &phases;
#if COVP_WAVE_VCD
    std::unique_ptr<WaveFile> file;
#endif
    std::unique_ptr<WaveWriter> writer;
    uint64_t first = 0, end = 0, start = 0, cycle = 0;
    uint32_t wanted = WHOLE_RUN;
    bool inside = false;
};

#else

class Wave {
public:
    Wave(VerilatedContext &, const State &, const Phases &) {}
    bool open(Vcovp_core &, const char *, uint64_t, uint64_t, uint32_t) { return false; }
    bool close() { return true; }
    void low() {}
    void high() {}
    uint64_t seen = 0, written = 0;
};
#endif
