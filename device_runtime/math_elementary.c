/* Powers, angles, hyperbolic functions and the error function in single precision.
 *
 * Errors are within 4 units in the last place (tests/runtime/test_elementary_functions.py measures
 * them). Polynomials of angles are those of Cephes (S. Moshier, Methods and Programs for
 * Mathematical Functions, 1989), those of erff and erfcf are Chebyshev fits of our own; angles are
 * reduced exactly, in integers (Payne and Hanek, 1983).
 */
#include <math.h>
#include <stdint.h>

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

float expm1f(float x)
{
    float e = expf(x);
    if (e == 1.0f || x != x)
        return x;
    if (x > 2.0f || x < -2.0f)
        return e - 1.0f;
    /* the rounding error of e cancels in the quotient (Kahan) */
    return (e - 1.0f) * x / logf(e);
}

float log1pf(float x)
{
    float u = 1.0f + x;
    if (u == 1.0f || u == INFINITY)
        return x;
    return logf(u) * (x / (u - 1.0f));
}

/* log2 of a positive finite number, with an error below 2^-30. */
static double log2_of(float x)
{
    int exponent = 0;
    if (x < 1.17549435e-38f) { /* subnormal */
        x *= 8388608.0f;
        exponent = -23;
    }
    uint32_t bits = bits_of(x);
    exponent += (int)(bits >> 23) - 127;
    double m = float_of((bits & 0x007fffffu) | 0x3f800000u); /* 1 to 2 */
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double series = 1.0 / 13.0;
    for (int n = 11; n > 0; n -= 2)
        series = series * z + 1.0 / n;
    return exponent + 2.8853900817779268 * s * series;
}

/* 2 to the power t for t from -151 to 129. */
static float exp2_of(double t)
{
    int n = (int)(t + (t < 0.0 ? -0.5 : 0.5));
    double f = (t - n) * 0.6931471805599453, p = 1.0;
    for (int k = 9; k > 0; k--)
        p = p * f / k + 1.0;
    union { uint64_t bits; double value; } scale = {(uint64_t)(n + 1023) << 52};
    return (float)(p * scale.value);
}

/* Special cases as in C99, annex F.9.4.4. */
float powf(float x, float y)
{
    if (y == 0.0f || x == 1.0f)
        return 1.0f;
    if (x != x || y != y)
        return x + y;
    float magnitude = fabsf(x);
    int whole = truncf(y) == y;
    int odd = whole && fabsf(y) < 16777216.0f && ((int32_t)y & 1);
    float sign = signbit(x) && odd ? -1.0f : 1.0f;
    if (isinf(y)) {
        if (magnitude == 1.0f)
            return 1.0f;
        return (magnitude > 1.0f) == (y > 0.0f) ? INFINITY : 0.0f;
    }
    if (magnitude == 0.0f || isinf(magnitude))
        return sign * ((magnitude == 0.0f) == (y > 0.0f) ? 0.0f : INFINITY);
    if (x < 0.0f && !whole)
        return NAN;
    double t = y * log2_of(magnitude);
    if (t > 129.0)
        return sign * INFINITY;
    return t < -151.0 ? sign * 0.0f : sign * exp2_of(t);
}

/* 24 bits of a positive number; the exponent of a subnormal one is 0 or less. */
static uint32_t normalized(uint32_t bits, int *exponent)
{
    uint32_t value = bits & 0x007fffffu;
    *exponent = (int)(bits >> 23);
    if (*exponent)
        return value | 0x00800000u;
    for (*exponent = 1; !(value & 0x00800000u); --*exponent)
        value <<= 1;
    return value;
}

/* Long division of the significands, one bit a step. */
float fmodf(float x, float y)
{
    uint32_t a = bits_of(fabsf(x)), b = bits_of(fabsf(y));
    if (b == 0 || a >= 0x7f800000u || b > 0x7f800000u)
        return NAN;
    if (a < b)
        return x;
    int exponent, least;
    uint32_t rest = normalized(a, &exponent), divisor = normalized(b, &least);
    for (; exponent > least; exponent--) {
        if (rest >= divisor)
            rest -= divisor;
        rest <<= 1;
    }
    if (rest >= divisor)
        rest -= divisor;
    if (!rest)
        return copysignf(0.0f, x);
    for (; !(rest & 0x00800000u); exponent--)
        rest <<= 1;
    uint32_t bits = exponent > 0 ? (uint32_t)exponent << 23 | (rest & 0x007fffffu)
                                 : rest >> (1 - exponent);
    return copysignf(float_of(bits), x);
}

/* 2 / pi after 32 bits of zero. */
static const uint32_t two_over_pi[] = {
    0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
    0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u,
};

static uint32_t word_at(int bit)
{
    uint64_t two = (uint64_t)two_over_pi[bit >> 5] << 32 | two_over_pi[(bit >> 5) + 1];
    return (uint32_t)(two >> (32 - (bit & 31)));
}

/* x less the nearest multiple of pi / 2; *quarter is that multiple, modulo 4. */
static float reduce(float x, int *quarter)
{
    uint32_t bits = bits_of(x) & 0x7fffffffu;
    *quarter = 0;
    if (bits < 0x3f490fdbu) /* below pi / 4 */
        return x;
    if (bits >= 0x7f800000u)
        return NAN;
    /* x = m * 2^e; the bits of 2 / pi that make multiples of 4 are skipped */
    int first = (int)(bits >> 23) - 150 + 30;
    uint64_t m = (bits & 0x007fffffu) | 0x00800000u;
    uint64_t turns = m * ((uint64_t)word_at(first) << 32 | word_at(first + 32));
    turns += m * word_at(first + 64) >> 32; /* quarters of a turn, in units of 2^-62 */
    uint64_t n = (turns + (1ull << 61)) >> 62;
    float rest = (float)(int64_t)(turns - (n << 62)) * (1.57079633f / 4611686018427387904.0f);
    *quarter = (int)(signbit(x) ? 4 - n : n) & 3;
    return signbit(x) ? -rest : rest;
}

static float sine(float r)
{
    float z = r * r;
    float p = (-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f;
    return p * z * r + r;
}

static float cosine(float r)
{
    float z = r * r;
    float p = (2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f;
    return p * z * z - 0.5f * z + 1.0f;
}

float sinf(float x)
{
    int quarter;
    float r = reduce(x, &quarter);
    float result = quarter & 1 ? cosine(r) : sine(r);
    return quarter & 2 ? -result : result;
}

float cosf(float x)
{
    int quarter;
    float r = reduce(x, &quarter);
    float result = quarter & 1 ? sine(r) : cosine(r);
    return quarter == 1 || quarter == 2 ? -result : result;
}

float tanf(float x)
{
    int quarter;
    float r = reduce(x, &quarter);
    return quarter & 1 ? -cosine(r) / sine(r) : sine(r) / cosine(r);
}

/* asin of x from 0 to 1/2, whose square is z. */
static float arcsine(float x, float z)
{
    float p = 4.2163199048e-2f;
    p = p * z + 2.4181311049e-2f;
    p = p * z + 4.5470025998e-2f;
    p = p * z + 7.4953002686e-2f;
    p = p * z + 1.6666752422e-1f;
    return p * z * x + x;
}

float asinf(float x)
{
    float magnitude = fabsf(x);
    if (!(magnitude <= 1.0f))
        return NAN;
    if (magnitude <= 0.5f)
        return arcsine(x, x * x);
    float z = 0.5f * (1.0f - magnitude);
    return copysignf(1.57079633f - 2.0f * arcsine(sqrtf(z), z), x);
}

float acosf(float x)
{
    float magnitude = fabsf(x);
    if (!(magnitude <= 1.0f))
        return NAN;
    if (magnitude <= 0.5f)
        return 1.57079633f - arcsine(x, x * x);
    float z = 0.5f * (1.0f - magnitude);
    float half = arcsine(sqrtf(z), z);
    return x > 0.0f ? 2.0f * half : 3.14159265f - 2.0f * half;
}

float atanf(float x)
{
    float t = fabsf(x), base = 0.0f;
    if (t > 2.414213562f) { /* tan(3 pi / 8) */
        base = 1.57079633f;
        t = -1.0f / t;
    } else if (t > 0.4142135624f) { /* tan(pi / 8) */
        base = 0.785398163f;
        t = (t - 1.0f) / (t + 1.0f);
    }
    float z = t * t;
    float p = 8.05374449538e-2f;
    p = p * z - 1.38776856032e-1f;
    p = p * z + 1.99777106478e-1f;
    p = p * z - 3.33329491539e-1f;
    return copysignf(base + (p * z * t + t), x);
}

/* Of the point (x, y); special cases as in C99, annex F.9.1.4. */
float atan2f(float y, float x)
{
    if (x != x || y != y)
        return x + y;
    float angle;
    if (isinf(x) && isinf(y))
        angle = 0.785398163f;
    else if (y == 0.0f)
        angle = 0.0f;
    else
        angle = x == 0.0f ? 1.57079633f : atanf(fabsf(y) / fabsf(x));
    return copysignf(signbit(x) ? 3.14159265f - angle : angle, y);
}

float sinhf(float x)
{
    float magnitude = fabsf(x);
    if (magnitude > 9.0f) { /* in two steps, as exp alone may be out of range */
        float half = expf(0.5f * magnitude);
        return copysignf(0.5f * half * half, x);
    }
    float e = expm1f(magnitude);
    return copysignf(0.5f * (e + e / (e + 1.0f)), x);
}

float coshf(float x)
{
    float magnitude = fabsf(x);
    float half = expf(0.5f * magnitude);
    float e = 0.5f * half * half;
    return magnitude > 9.0f ? e : e + 0.25f / e;
}

float asinhf(float x)
{
    float magnitude = fabsf(x);
    if (magnitude > 1e9f)
        return copysignf(logf(magnitude) + 0.693147181f, x);
    float square = magnitude * magnitude;
    return copysignf(log1pf(magnitude + square / (1.0f + sqrtf(1.0f + square))), x);
}

float acoshf(float x)
{
    if (!(x >= 1.0f))
        return NAN;
    if (x > 1e9f)
        return logf(x) + 0.693147181f;
    float above = x - 1.0f;
    return log1pf(above + sqrtf(2.0f * above + above * above));
}

float atanhf(float x)
{
    float magnitude = fabsf(x);
    return copysignf(0.5f * log1pf(2.0f * magnitude / (1.0f - magnitude)), x);
}

/* exp(x * x) * erfc(x) for x >= 0, by t = 1 / (1 + x / 2). */
static float scaled_erfc(float x)
{
    float t = 1.0f / (1.0f + 0.5f * x);
    float p = 3.466918598e-2f;
    p = p * t - 1.852412077e-1f;
    p = p * t + 3.683506766e-1f;
    p = p * t - 2.731769644e-1f;
    p = p * t - 3.443838552e-2f;
    p = p * t + 4.120668637e-2f;
    p = p * t + 5.333188234e-2f;
    p = p * t + 1.857689395e-1f;
    p = p * t + 2.451936595e-1f;
    p = p * t + 2.822465825e-1f;
    p = p * t + 2.820889473e-1f;
    return p * t;
}

/* exp(-x * x); the square's rounding error is kept. */
static float gauss(float x)
{
    float high = float_of(bits_of(x) & 0xfffff000u), low = x - high;
    return expf(-high * high) * expf(-low * (x + high));
}

float erff(float x)
{
    float magnitude = fabsf(x);
    if (magnitude < 1.0f) {
        float z = x * x;
        float p = -9.673590892e-6f;
        p = p * z + 1.126825393e-4f;
        p = p * z - 8.484396556e-4f;
        p = p * z + 5.221053413e-3f;
        p = p * z - 2.686543831e-2f;
        p = p * z + 1.128378262e-1f;
        p = p * z - 3.761263848e-1f;
        return (p * z + 1.128379167f) * x;
    }
    if (x != x)
        return x;
    return copysignf(magnitude > 4.0f ? 1.0f : 1.0f - gauss(magnitude) * scaled_erfc(magnitude), x);
}

float erfcf(float x)
{
    if (x < 0.5f || x != x)
        return 1.0f - erff(x);
    return x > 10.1f ? 0.0f : gauss(x) * scaled_erfc(x);
}
