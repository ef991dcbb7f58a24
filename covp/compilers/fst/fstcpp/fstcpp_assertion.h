// Stands for the header of this name in Verilator's writer of FST files. Its checks end the process,
// also where a disk is full; covp looks at the finished file instead (covp/device/rtl/recording.py).
#pragma once
#include <cstdlib>

#define FST_CHECK(a)
#define FST_CHECK_EQ(a, b)
#define FST_CHECK_NE(a, b)
#define FST_CHECK_GT(a, b)
#define FST_CHECK_GE(a, b)
#define FST_CHECK_LT(a, b)
#define FST_CHECK_LE(a, b)
#define FST_DCHECK(a)
#define FST_DCHECK_EQ(a, b)
#define FST_DCHECK_NE(a, b)
#define FST_DCHECK_GT(a, b)
#define FST_DCHECK_GE(a, b)
#define FST_DCHECK_LT(a, b)
#define FST_DCHECK_LE(a, b)
#define FST_UNREACHABLE std::abort()
