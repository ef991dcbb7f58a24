/* Single-precision functions, the same with every compiler. Errors in math.c, math_elementary.c. */
#ifndef COVP_MATH_H
#define COVP_MATH_H

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define M_PI 3.14159265358979323846

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)

float expf(float x);
float logf(float x);
float tanhf(float x);
float sqrtf(float x);
float fabsf(float x);
float copysignf(float magnitude, float sign);
float fmaxf(float x, float y);
float fminf(float x, float y);
float floorf(float x);
float ceilf(float x);
float truncf(float x);
float roundf(float x);
float rintf(float x);
float nearbyintf(float x);
long lroundf(float x);
long lrintf(float x);

float expm1f(float x);
float log1pf(float x);
float powf(float x, float y);
float fmodf(float x, float y);
float sinf(float x);
float cosf(float x);
float tanf(float x);
float asinf(float x);
float acosf(float x);
float atanf(float x);
float atan2f(float y, float x);
float sinhf(float x);
float coshf(float x);
float asinhf(float x);
float acoshf(float x);
float atanhf(float x);
float erff(float x);
float erfcf(float x);

#endif
