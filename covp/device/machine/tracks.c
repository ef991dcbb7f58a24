/* What each instruction does to registers of which some bits are undefined.
 *
 * A file of its own beside counter.c, as both are compiled at the same time then.
 */
#include "bits_riscv.h"
#include "bits_thumb.h"
