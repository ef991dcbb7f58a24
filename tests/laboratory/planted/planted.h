/* Planted bugs. A section begins with a comment "name: what is wrong" in the first column; `name`
   is the function that is called. "BUG: kind" marks the line that a mechanism has to name. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The wrong text with -DBUG, else what it should be. */
#ifdef BUG
#define PLANTED(bug, correct) bug
#else
#define PLANTED(bug, correct) correct
#endif

#define NOINLINE __attribute__((noinline))

/* The compiler knows nothing of the value any more. */
#define HIDE(value) __asm__ volatile("" : "+r"(value))
