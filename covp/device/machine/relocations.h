/* Where a loaded library keeps the addresses of its own functions (ELF on x86-64).
 *
 * A library calls its exported functions through slots that the dynamic linker fills in. A slot that
 * holds another address makes the library call another function; its code stays as it is.
 */
#ifndef COVP_RELOCATIONS_H
#define COVP_RELOCATIONS_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { IN_CALLS = R_X86_64_JUMP_SLOT, IN_TABLES = R_X86_64_64, IMPORTED = 1 << 16 | IN_CALLS };

/* The slots of one kind that lead to a function get another one; of a function outside of the library, IMPORTED,
 * `function` is the name.
 */
typedef struct { uint32_t kind; const void *function; void *other; size_t found; } Redirection;

typedef struct {
    const void *inside; /* an address in the library */
    Redirection *all;
    size_t count;
    bool write;         /* else the slots are only counted */
    bool done;
} Redirections;

static const ElfW(Phdr) *segment(const struct dl_phdr_info *library, uint32_t type) {
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == type) return &library->dlpi_phdr[i];
    return NULL;
}

static bool is_inside(const struct dl_phdr_info *library, const void *address) {
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_LOAD &&
            (uintptr_t)address - library->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

/* Entries hold addresses, relocated ones with glibc. */
static uintptr_t dynamic_value(const struct dl_phdr_info *library, int64_t tag) {
    const ElfW(Phdr) *dynamic = segment(library, PT_DYNAMIC);
    if (!dynamic) return 0;
    const ElfW(Dyn) *entry = (const void *)(library->dlpi_addr + dynamic->p_vaddr);
    for (; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag) return entry->d_un.d_val;
    return 0;
}

static const void *dynamic_table(const struct dl_phdr_info *library, int64_t tag) {
    uintptr_t value = dynamic_value(library, tag);
    return (const void *)(value && value < library->dlpi_addr ? value + library->dlpi_addr : value);
}

/* Pages that the dynamic linker has made read-only stay so. */
static bool write_slot(const struct dl_phdr_info *library, void **slot, void *value) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)slot & -page;
    const ElfW(Phdr) *constant = segment(library, PT_GNU_RELRO);
    bool is_constant =
        constant && (uintptr_t)slot - library->dlpi_addr - constant->p_vaddr < constant->p_memsz;
    if (is_constant && mprotect((void *)start, page, PROT_READ | PROT_WRITE)) return false;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (is_constant) mprotect((void *)start, page, PROT_READ);
    return true;
}

static bool leads_to(const struct dl_phdr_info *library, uint32_t kind, const ElfW(Sym) *symbol, const char *names,
                     const Redirection *r) {
    bool imported = symbol->st_shndx == SHN_UNDEF;
    if (r->kind == IMPORTED) return imported && kind == IN_CALLS && !strcmp(names + symbol->st_name, r->function);
    return r->kind == kind && (uintptr_t)r->function == symbol->st_value + library->dlpi_addr;
}

static bool redirect_table(const struct dl_phdr_info *library, const ElfW(Rela) *table, size_t bytes,
                           const Redirections *wanted) {
    const ElfW(Sym) *symbols = dynamic_table(library, DT_SYMTAB);
    const char *names = dynamic_table(library, DT_STRTAB);
    for (size_t n = 0; symbols && names && n < bytes / sizeof *table; n++) {
        uint32_t kind = ELF64_R_TYPE(table[n].r_info);
        if ((kind != IN_CALLS && kind != IN_TABLES) || table[n].r_addend) continue;
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(table[n].r_info)];
        for (Redirection *r = wanted->all; r < wanted->all + wanted->count; r++) {
            if (!leads_to(library, kind, symbol, names, r)) continue;
            void **slot = (void **)(library->dlpi_addr + table[n].r_offset);
            r->found++;
            if (wanted->write && !write_slot(library, slot, r->other)) return false;
        }
    }
    return true;
}

static int redirect_in(struct dl_phdr_info *library, size_t size, void *data) {
    (void)size;
    Redirections *wanted = data;
    if (!is_inside(library, wanted->inside)) return 0;
    wanted->done = redirect_table(library, dynamic_table(library, DT_JMPREL),
                                  dynamic_value(library, DT_PLTRELSZ), wanted) &&
                   redirect_table(library, dynamic_table(library, DT_RELA),
                                  dynamic_value(library, DT_RELASZ), wanted);
    return 1;
}

/* All of them, or none: where a function has no slot, nothing is changed. */
static bool redirect(const void *inside, Redirection *all, size_t count) {
    Redirections wanted = {inside, all, count, false, false};
    dl_iterate_phdr(redirect_in, &wanted);
    for (size_t n = 0; n < count; n++)
        if (!all[n].found) return false;
    if (!wanted.done) return false;
    wanted.write = true;
    wanted.done = false;
    dl_iterate_phdr(redirect_in, &wanted);
    return wanted.done;
}

#endif
