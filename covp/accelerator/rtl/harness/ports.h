// Values of ports of any width, and of ports that a unit does not have.
#pragma once
#include <cstdint>
#include <cstring>

#include "absent.h"

// The bytes of a data port; Verilator keeps them little-endian, in words where it is wider than 64 bits.
template <typename Port>
void put(Port &port, const uint8_t *bytes) {
    static_assert(sizeof port >= MEMORY_BYTES, "a data port of whole bytes");
    memcpy(&port, bytes, MEMORY_BYTES);
}

template <typename Port>
void get(const Port &port, uint8_t *bytes) {
    memcpy(bytes, &port, MEMORY_BYTES);
}

constexpr uint64_t ALL_BYTES = MEMORY_BYTES == 64 ? ~0ull : (1ull << MEMORY_BYTES) - 1;
constexpr uint32_t WORD = MEMORY_BYTES;  // bytes of a transfer of the port's whole width
