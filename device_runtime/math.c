/* Single-precision functions for cores with and without a floating-point unit.
 *
 * Rounding functions, fmin, fmax and sqrt are exact. expf, logf and tanhf are within 2 units in the
 * last place (tests/runtime/test_math.py measures them); the polynomials are those of Cephes
 * (S. Moshier, Methods and Programs for Mathematical Functions, 1989), the range reduction is that
 * of Cody and Waite. Intermediate values stay in single precision, so that an FPU is used fully.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static uint32_t bits_of(float x)
{
    union { float value; uint32_t bits; } u = {x};
    return u.bits;
}

static float float_of(uint32_t bits)
{
    union { uint32_t bits; float value; } u = {bits};
    return u.value;
}

/* 2 to the power n, for normal results. */
static float power_of_two(int n)
{
    return float_of((uint32_t)(n + 127) << 23);
}

float fabsf(float x)
{
    return float_of(bits_of(x) & 0x7fffffffu);
}

float copysignf(float magnitude, float sign)
{
    return float_of((bits_of(magnitude) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}

float fmaxf(float x, float y)
{
    return x > y || y != y ? x : y;
}

float fminf(float x, float y)
{
    return x < y || y != y ? x : y;
}

/* From 2^23 on, and for infinities and NaN, there is no fractional part. */
static int is_whole(float x)
{
    return (bits_of(x) & 0x7fffffffu) >= 0x4b000000u;
}

float truncf(float x)
{
    return is_whole(x) ? x : copysignf((float)(int32_t)x, x);
}

float floorf(float x)
{
    float whole = truncf(x);
    return whole > x ? whole - 1.0f : whole;
}

float ceilf(float x)
{
    float whole = truncf(x);
    return whole < x ? copysignf(whole + 1.0f, x) : whole;
}

float roundf(float x)
{
    float whole = truncf(x);
    if (fabsf(x - whole) >= 0.5f)
        whole += copysignf(1.0f, x);
    return is_whole(x) ? x : copysignf(whole, x);
}

/* Half to even: adding 2^23 leaves the rounding to the addition. */
float rintf(float x)
{
    if (is_whole(x))
        return x;
    volatile float large = fabsf(x) + 8388608.0f;
    return copysignf(large - 8388608.0f, x);
}

float nearbyintf(float x)
{
    return rintf(x);
}

long lroundf(float x)
{
    return (long)roundf(x);
}

long lrintf(float x)
{
    return (long)rintf(x);
}

int abs(int value)
{
    return value < 0 ? -value : value;
}

long labs(long value)
{
    return value < 0 ? -value : value;
}

float sqrtf(float x)
{
#if defined(__ARM_FP) && (__ARM_FP & 4)
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
#elif defined(__riscv_flen)
    float root;
    __asm__("fsqrt.s %0, %1" : "=f"(root) : "f"(x));
    return root;
#else
    uint32_t bits = bits_of(x);
    if (x != x || x == 0.0f || bits == 0x7f800000u)
        return x;
    if (bits >> 31)
        return NAN;
    int exponent = (int)(bits >> 23) - 127;
    uint32_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
    if (exponent == -127) { /* subnormal */
        mantissa = (mantissa & 0x007fffffu) << 1;
        while (!(mantissa & 0x00800000u)) {
            mantissa <<= 1;
            --exponent;
        }
    }
    if (exponent & 1)
        mantissa <<= 1;
    /* One result bit per step, 24 and one for rounding; a remainder means inexact. */
    uint32_t rest = mantissa << 1, root = 0, sum = 0;
    for (uint32_t step = 0x01000000u; step; step >>= 1) {
        uint32_t trial = sum + step;
        if (trial <= rest) {
            sum = trial + step;
            rest -= trial;
            root += step;
        }
        rest <<= 1;
    }
    if (rest)
        root += root & 1;
    return float_of((root >> 1) + 0x3f000000u + ((uint32_t)(exponent >> 1) << 23));
#endif
}

float expf(float x)
{
    if (x != x)
        return x;
    if (x > 88.72283935f)
        return INFINITY;
    if (x < -103.9720840f)
        return 0.0f;
    int n = (int)(x * 1.44269504088896341f + (x < 0.0f ? -0.5f : 0.5f));
    float r = x - (float)n * 0.693359375f;
    r -= (float)n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    /* In two steps, as 2^n alone may be out of range where the result is not. */
    int half = n / 2;
    return p * power_of_two(half) * power_of_two(n - half);
}

float logf(float x)
{
    if (x != x || x == INFINITY)
        return x;
    if (x <= 0.0f)
        return x == 0.0f ? -INFINITY : NAN;
    int n = 0;
    if (x < 1.17549435e-38f) { /* subnormal */
        x *= 8388608.0f;
        n = -23;
    }
    uint32_t bits = bits_of(x);
    n += (int)(bits >> 23) - 126;
    float m = float_of((bits & 0x007fffffu) | 0x3f000000u); /* 0.5 to 1 */
    if (m < 0.707106781186547524f) {
        --n;
        m = m + m - 1.0f;
    } else {
        m -= 1.0f;
    }
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p *= m * z;
    p += (float)n * -2.12194440e-4f;
    p -= 0.5f * z;
    return m + p + (float)n * 0.693359375f;
}

float tanhf(float x)
{
    float magnitude = fabsf(x);
    if (magnitude > 9.1f)
        return x != x ? x : copysignf(1.0f, x);
    if (magnitude >= 0.625f) {
        float e = expf(magnitude + magnitude);
        return copysignf(1.0f - 2.0f / (e + 1.0f), x);
    }
    if (magnitude < 0.000244140625f) /* the cube is below the last place; -0 stays */
        return x;
    float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return p * z * x + x;
}
