/* The model behind the protocol. Benchmarks differ in how the host's bytes become the model's
 * input and what the result is: image.c, features.c and autoencoder.c, one of which is linked. */
#ifndef TINY_BENCHMARK_H
#define TINY_BENCHMARK_H

#include <stdbool.h>
#include <stdint.h>

#include "tiny_model.h" /* generated: TINY_VERSION, sizes, scales, the library's functions */

/* Once, at the start; false when the model's library refuses its arena. */
bool tiny_start(void);
/* One inference of `input`, TINY_INPUT_ELEMENTS elements, into tiny_result. */
bool tiny_compute(const int8_t *input);

extern int8_t tiny_result[TINY_OUTPUT_ELEMENTS];

/* What each benchmark defines: */

extern const uint32_t tiny_bytes; /* of the input as the host sends it */
/* Where the host's bytes go. */
uint8_t *tiny_buffer(void);
/* Before a row of inferences: the model's input from the host's bytes. */
void tiny_prepare(void);
/* One inference of the prepared input; false when the library reports an error. */
bool tiny_once(void);
/* The result of the last inference, "a,b,...". */
void tiny_print(void);

#endif
