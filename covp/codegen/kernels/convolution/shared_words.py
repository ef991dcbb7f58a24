"""Several sums of products in fewer words, for cores that multiply one word at a time.

Of ``count`` numbers a, b, ... and z, the last one shares the words of all others::

    a + (z << s0), b + (z << s1), ...

Multiplied by a weight and added up, modulo 2**32, these words are the same combinations of the sums
A, B, ... and Z. With ``field`` = 32 / count bits of every word for Z, and the shifts 32 - field,
32 - 2 field, ... , all sums are found again: A are the lowest bits of the first word, and the bits
above are the lowest of Z; without them the next word has B and the next bits of Z. So three sums of
21 bits take two multiplications and two additions, four of 24 bits three.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SharedWords:
    """C text that packs numbers into words, and finds their sums in sums of these words.

    Attributes:
        count: of the numbers, 3 or 4.
    """

    count: int

    @property
    def words(self) -> int:
        """The number of words that ``count`` numbers take."""
        return self.count - 1

    @property
    def _field(self) -> int:
        """Bits of the last number in each word."""
        return -(-32 // self.count)

    @property
    def largest(self) -> int:
        """The largest magnitude of a sum that can be found."""
        return (1 << (31 - self._field)) - 1

    def shift(self, word: int) -> int:
        """Return by how much the last number is shifted in a word."""
        return 32 - (word + 1) * self._field

    def pack(self, numbers: list[str]) -> list[str]:
        """Return the words of ``count`` numbers, C expressions of type uint32_t each."""
        *others, last = numbers
        return [f"{other} + ({last} << {self.shift(i)})" for i, other in enumerate(others)]

    def definitions(self) -> str:
        """Return the C function that `unpack` calls."""
        return _LOWEST.replace("BITS", str(self._field))

    def unpack(self, words: list[str], assign: list[str]) -> list[str]:
        """Emit the sums of numbers from the sums of their words.

        Args:
            words: C expressions of type uint32_t.
            assign: C text before the value of each sum, of type uint32_t, such as "a =".
        """
        lines = ["{"]
        for i, word in enumerate(words):
            # what is known of the last sum, as it stands in this word
            known = [f"(uint32_t)((int32_t)z{j} >> {(i - j) * self._field})" for j in range(i)]
            lines += [f"    uint32_t known{i} = {' + '.join(known)};"] if known else []
            lines += [
                f"    uint32_t u{i} = {word}{f' - known{i}' if known else ''};",
                f"    uint32_t low{i} = lowest(u{i}), z{i} = u{i} - low{i};",
                f"    {assign[i]} low{i};",
            ]
        last = self.words - 1
        total = f"(int32_t)(known{last} + z{last}) >> {self.shift(last)}"
        return [*lines, f"    {assign[-1]} (uint32_t)({total});", "}"]


_LOWEST = """\
static inline uint32_t lowest(uint32_t sum)
{
    return (uint32_t)((int32_t)(sum << BITS) >> BITS);
}
"""
