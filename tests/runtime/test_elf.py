"""The ELF reader against pyelftools."""

import io

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from covp.compilers.elf import ElfImage
from covp.runtime.session import Session

C = """
#include <stdint.h>
int32_t zeros[100];
int32_t table[3] = {1, 2, 3};
static const uint8_t fixed[5] = {5, 4, 3, 2, 1};
int32_t f(int32_t i) { return table[i] + zeros[i] + fixed[i]; }
"""


def test_sections_and_symbols_are_those_of_pyelftools(session: Session) -> None:
    content = session.load_c(C).image.elf.content
    image, oracle = ElfImage(content), ELFFile(io.BytesIO(content))
    expected = [
        (s.name, s["sh_addr"], s["sh_size"], b"" if s["sh_type"] == "SHT_NOBITS" else s.data())
        for s in oracle.iter_sections()
        if s["sh_flags"] & 2 and s["sh_size"]
    ]
    assert [(s.name, s.address, s.size, s.data) for s in image.sections] == expected
    table = oracle.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    for name in ("zeros", "table", "f", "memcpy"):
        found = table.get_symbol_by_name(name)
        assert found is not None
        (symbol,) = found
        mine = image.symbols[name]
        assert (mine.value, mine.size) == (symbol["st_value"], symbol["st_size"])
    assert image.symbols["f"].address % 2 == 0
