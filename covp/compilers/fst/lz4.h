// A compressor for LZ4's block format (LZ4 Block Format Description, 2022-07-31): a sequence is a
// token, literals, and a match of at least four bytes, found through a table of hashes.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

namespace covp_lz4 {

constexpr int LEAST_MATCH = 4;
constexpr int LAST_LITERALS = 5;    // the last bytes are literals,
constexpr int LAST_MATCH_STARTS = 12;  // and no match starts in the last twelve
constexpr int FARTHEST = 65535;
constexpr int HASH_BITS = 12;

inline uint32_t word(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

inline uint8_t *length(uint8_t *out, int left) {
    for (; left >= 255; left -= 255) *out++ = 255;
    *out++ = left;
    return out;
}

// Literals, then a match unless `match` is 0.
inline uint8_t *sequence(uint8_t *out, const uint8_t *from, int literals, int offset, int match) {
    int more = match ? match - LEAST_MATCH : 0;
    *out++ = (literals < 15 ? literals : 15) << 4 | (more < 15 ? more : 15);
    if (literals >= 15) out = length(out, literals - 15);
    memcpy(out, from, literals);
    out += literals;
    if (!match) return out;
    *out++ = offset & 255;
    *out++ = offset >> 8;
    return more >= 15 ? length(out, more - 15) : out;
}

inline int compress(const uint8_t *from, uint8_t *to, int size) {
    std::vector<int> places(1 << HASH_BITS, -1);
    uint8_t *out = to;
    int done = 0;
    for (int at = 0; at < size - LAST_MATCH_STARTS;) {
        int &place = places[word(from + at) * 2654435761u >> (32 - HASH_BITS)];
        int found = place;
        place = at;
        if (found < 0 || at - found > FARTHEST || word(from + found) != word(from + at)) {
            at++;
            continue;
        }
        int match = LEAST_MATCH;
        while (at + match < size - LAST_LITERALS && from[found + match] == from[at + match]) match++;
        out = sequence(out, from + done, at - done, at - found, match);
        done = at += match;
    }
    return sequence(out, from + done, size - done, 0, 0) - to;
}

}  // namespace covp_lz4

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

// `room` is what LZ4_compressBound says.
inline int LZ4_compress_default(const char *from, char *to, int size, int room) {
    (void)room;
    return covp_lz4::compress(reinterpret_cast<const uint8_t *>(from),
                              reinterpret_cast<uint8_t *>(to), size);
}
