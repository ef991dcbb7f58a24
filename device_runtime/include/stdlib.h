/* The part of the C library that kernels use. There is no heap: see covp_runtime.h. */
#ifndef COVP_STDLIB_H
#define COVP_STDLIB_H

#include <stddef.h>

int abs(int value);
long labs(long value);

#endif
