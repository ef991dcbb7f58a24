// What a design itself says is wrong ($stop, $finish, a combinational loop) belongs to the unit that runs.
// Included after the class Unit, which has `blame`.
#pragma once
#include <cstring>

#include "verilated.h"

namespace {

struct Broken {};
thread_local Unit *running = nullptr;

Unit &of(void *unit) { return *static_cast<Unit *>(unit); }

template <typename Action>
auto guarded(void *unit, Action action) -> decltype(action(of(unit))) {
    running = &of(unit);
    try {
        return action(of(unit));
    } catch (const Broken &) {
        return {};
    }
}

void break_off(const char *what, const char *file, int line) {
    const char *name = strrchr(file, '/');
    running->blame(what, name ? name + 1 : file, line);
    throw Broken();
}

}  // namespace

void vl_finish(const char *file, int line, const char *) { break_off("$finish", file, line); }
void vl_stop(const char *file, int line, const char *) { break_off("$stop, or an assertion,", file, line); }
void vl_fatal(const char *file, int line, const char *, const char *text) { break_off(text, file, line); }
