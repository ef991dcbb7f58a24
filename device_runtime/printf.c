/* printf for firmware without a C library; see stdio.h for what it knows. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "board.h"

struct field {
    int left, zeros, width, longs, precision; /* precision: -1 where there is none */
};

static int pad(char with, int count)
{
    int written = 0;
    for (; written < count; written++)
        board_write(&with, 1);
    return written;
}

static int put_field(const struct field *field, const char *sign, const char *digits)
{
    const int signs = (int)strlen(sign), count = (int)strlen(digits);
    const int gap = field->width - signs - count;
    int written = 0;
    if (!field->left && !field->zeros)
        written += pad(' ', gap);
    board_write(sign, (size_t)signs);
    if (!field->left && field->zeros)
        written += pad('0', gap);
    board_write(digits, (size_t)count);
    if (field->left)
        written += pad(' ', gap);
    return written + signs + count;
}

static int put_number(const struct field *field, const char *sign, uint64_t value, unsigned base,
                      const char *alphabet)
{
    char text[24];
    char *next = text + sizeof text;
    *--next = 0;
    do {
        *--next = alphabet[value % base];
        value /= base;
    } while (value != 0);
    return put_field(field, sign, next);
}

enum { MOST_DECIMALS = 15, FRACTION_BITS = 60 };

/* Write the decimals of a fraction of 1 << FRACTION_BITS; whether it was rounded up to 1. Half goes
   to the even digit, the last one of `whole` where there are none. */
static int put_decimals(char *text, int count, uint64_t fraction, uint64_t whole)
{
    const uint64_t one = (uint64_t)1 << FRACTION_BITS, half = one / 2;
    for (int i = 0; i < count; i++) {
        fraction *= 10;
        text[i] = (char)('0' + (int)(fraction >> FRACTION_BITS));
        fraction &= one - 1;
    }
    const int is_odd = count ? (text[count - 1] - '0') & 1 : (int)(whole & 1);
    if (fraction < half || (fraction == half && !is_odd))
        return 0;
    for (int i = count - 1; i >= 0; i--) {
        if (text[i] != '9') {
            text[i]++;
            return 0;
        }
        text[i] = '0';
    }
    return 1;
}

/* By integers alone, so that no library of soft floats is needed: a double is mantissa * 2**exponent.
   Exact but for what lies below 2**-60, which 15 decimals do not show. */
static int put_float(struct field *field, double value)
{
    uint64_t bits, whole = 0, fraction = 0;
    memcpy(&bits, &value, sizeof bits);
    const char *sign = bits >> 63 ? "-" : "";
    const int biased = (int)(bits >> 52 & 0x7ff), exponent = (biased ? biased : 1) - 1075;
    const uint64_t mantissa = (bits & 0xfffffffffffffu) | (uint64_t)(biased != 0) << 52;
    if (biased == 0x7ff || exponent > 11) {
        field->zeros = 0;
        return put_field(field, sign, biased < 0x7ff ? "***" : mantissa << 12 ? "nan" : "inf");
    }
    if (exponent >= 0) {
        whole = mantissa << exponent;
    } else if (exponent >= -FRACTION_BITS) {
        whole = exponent > -53 ? mantissa >> -exponent : 0;
        fraction = (mantissa - (whole << -exponent)) << (FRACTION_BITS + exponent);
    } else {
        const int lost = -FRACTION_BITS - exponent;
        fraction = (lost < 53 ? mantissa >> lost : 0) | (mantissa != 0); /* not half of anything */
    }
    char text[24 + MOST_DECIMALS];
    char *const point = text + 22, *next = point;
    const int wanted = field->precision < 0 ? 6 : field->precision;
    const int decimals = wanted < MOST_DECIMALS ? wanted : MOST_DECIMALS;
    whole += (uint64_t)put_decimals(point + 1, decimals, fraction, whole);
    point[0] = '.';
    point[decimals ? decimals + 1 : 0] = 0;
    do {
        *--next = (char)('0' + (int)(whole % 10));
        whole /= 10;
    } while (whole != 0);
    return put_field(field, sign, next);
}

static int64_t signed_argument(va_list *arguments, int longs)
{
    if (longs > 1)
        return va_arg(*arguments, long long);
    return longs == 1 ? va_arg(*arguments, long) : va_arg(*arguments, int);
}

static uint64_t unsigned_argument(va_list *arguments, int longs)
{
    if (longs > 1)
        return va_arg(*arguments, unsigned long long);
    return longs == 1 ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned);
}

static int put(char kind, struct field *field, va_list *arguments)
{
    switch (kind) {
    case 'd':
    case 'i': {
        const int64_t value = signed_argument(arguments, field->longs);
        const uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        return put_number(field, value < 0 ? "-" : "", size, 10, "0123456789");
    }
    case 'u':
        return put_number(field, "", unsigned_argument(arguments, field->longs), 10, "0123456789");
    case 'x':
    case 'X':
        return put_number(field, "", unsigned_argument(arguments, field->longs), 16,
                          kind == 'x' ? "0123456789abcdef" : "0123456789ABCDEF");
    case 'p':
        return put_number(field, "0x", (uintptr_t)va_arg(*arguments, void *), 16,
                          "0123456789abcdef");
    case 'f':
        return put_float(field, va_arg(*arguments, double));
    case 's':
        field->zeros = 0;
        return put_field(field, "", va_arg(*arguments, const char *));
    default: {
        const char text[2] = {kind == 'c' ? (char)va_arg(*arguments, int) : kind, 0};
        field->zeros = 0;
        return put_field(field, "", text);
    }
    }
}

int printf(const char *format, ...)
{
    va_list arguments;
    int written = 0;
    va_start(arguments, format);
    while (*format) {
        if (*format != '%') {
            board_write(format++, 1);
            written++;
            continue;
        }
        struct field field = {0, 0, 0, 0, -1};
        for (format++; *format == '-' || *format == '0'; format++)
            *(*format == '-' ? &field.left : &field.zeros) = 1;
        for (; *format >= '0' && *format <= '9'; format++)
            field.width = field.width * 10 + (*format - '0');
        if (*format == '.')
            for (format++, field.precision = 0; *format >= '0' && *format <= '9'; format++)
                field.precision = field.precision * 10 + (*format - '0');
        for (; *format == 'l' || *format == 'z'; format++)
            field.longs++;
        if (*format)
            written += put(*format++, &field, &arguments);
    }
    va_end(arguments);
    return written;
}

int puts(const char *text)
{
    board_write(text, strlen(text));
    board_write("\n", 1);
    return 0;
}

int putchar(int character)
{
    const char text = (char)character;
    board_write(&text, 1);
    return character;
}
