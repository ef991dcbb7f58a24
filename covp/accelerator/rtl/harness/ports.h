// Values of ports of any width, and of ports that a unit does not have.
#pragma once
#include <cstdint>
#include <cstring>

#include "absent.h"

// So many bytes of a port; Verilator keeps them little-endian, in words where it is wider than 64 bits.
template <uint32_t BYTES, typename Port>
void put(Port &port, const void *bytes) {
    static_assert(sizeof port >= BYTES, "a port of whole bytes");
    memcpy(&port, bytes, BYTES);
}

template <uint32_t BYTES, typename Port>
void get(const Port &port, void *bytes) {
    static_assert(sizeof port >= BYTES, "a port of whole bytes");
    memcpy(bytes, &port, BYTES);
}
