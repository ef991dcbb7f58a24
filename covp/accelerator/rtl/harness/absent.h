// An input that a unit does not have.
#pragma once

struct Absent {
    template <typename T>
    Absent &operator=(const T &) {
        return *this;
    }
};
inline Absent absent;
