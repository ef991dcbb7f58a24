/* copy model/activation/Relu;model/batch_normalization/FusedBatchNormV3;model/conv2d/BiasAdd/ReadVariableOp/resource;model/conv2d/BiasAdd;model/depthwise_conv2d/depthwise;model/conv2d/Conv2D1 rows 0 to 5 kept and more: STRIDED_SLICE 1x2x48x8 -> 1x2x48x8 */
#include <stdint.h>
typedef uint32_t __attribute__((may_alias)) word;
void vww_11_strided_slice(const int8_t *input, int8_t *output)
{
    for (int32_t i = 0; i < 192; i += 4) {
        ((word *)(void *)output)[i] = ((const word *)(const void *)input)[i];
        ((word *)(void *)output)[i + 1] = ((const word *)(const void *)input)[i + 1];
        ((word *)(void *)output)[i + 2] = ((const word *)(const void *)input)[i + 2];
        ((word *)(void *)output)[i + 3] = ((const word *)(const void *)input)[i + 3];
    }
}
