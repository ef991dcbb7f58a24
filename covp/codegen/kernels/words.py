"""`word`: the C type by which kernels read and write any memory four bytes at a time.

C99 6.5, paragraph 7, lets an object be accessed by its own type and by characters alone; GCC's and
Clang's attribute makes `word` as free as a character, so that kernels need no -fno-strict-aliasing.
A pointer becomes one to words by way of ``void *``, as ``const word *w = (const void *)weights;``,
where the address is certain to be a multiple of 4: compilers warn of direct casts (-Wcast-align).
"""

from __future__ import annotations

import re

_WORD = "typedef uint32_t __attribute__((may_alias)) word;"
_WORD_AT = """\
static inline uint32_t word_at(const void *address)
{
    return *(const word *)address;
}
"""


def word_definitions(text: str) -> list[str]:
    """Return C text of `word` and of ``word_at(address)``, as far as some C text uses them."""
    reads = re.search(r"\bword_at\b", text) is not None
    if not reads and re.search(r"\bword\b", text) is None:
        return []
    return [_WORD, _WORD_AT] if reads else [_WORD]
