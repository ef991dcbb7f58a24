/* Text, numbers and lines to the serial port. */
#include <string.h>

#include "board.h"
#include "protocol.h"

void reply(const char *text)
{
    board_write(text, strlen(text));
}

void reply_quoted(const char *text)
{
    for (; *text != '\0'; text++) {
        char shown = *text >= ' ' && *text <= '~' ? *text : '?';
        board_write(&shown, 1);
    }
}

void reply_number(uint64_t number)
{
    char digits[20]; /* of 2**64 - 1 */
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + (char)(number % 10u));
        number /= 10u;
    } while (number != 0);
    board_write(digits + first, sizeof digits - first);
}

void reply_thousandths(uint64_t number)
{
    uint32_t part = (uint32_t)(number % 1000u);
    reply_number(number / 1000u);
    char text[5] = {'.', (char)('0' + (char)(part / 100u)), (char)('0' + (char)(part / 10u % 10u)),
                    (char)('0' + (char)(part % 10u)), '\0'};
    reply(text);
}

/* Nearest integer to 1000 |value|, ties to even, as IEEE 754's rounding of decimal output; exact
 * for all values below 2**43, more is cut off there. */
static uint64_t thousandths(uint32_t bits)
{
    int32_t exponent = (int32_t)(bits >> 23 & 0xFFu);
    uint64_t mantissa = bits & 0x7FFFFFu;
    if (exponent == 0)
        return 0; /* below 2**-126 */
    mantissa = (mantissa | 0x800000u) * 1000u; /* below 2**34 */
    int32_t shift = exponent - 127 - 23;
    if (shift >= 0)
        return mantissa << (shift > 20 ? 20 : shift);
    shift = -shift;
    if (shift > 35)
        return 0; /* below a half */
    uint64_t half = (uint64_t)1 << (shift - 1);
    uint64_t part = mantissa & (half + half - 1u);
    uint64_t whole = mantissa >> shift;
    return whole + (part > half || (part == half && (whole & 1u)) ? 1u : 0u);
}

void reply_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        bits = 0; /* not a number */
    if (bits >> 31)
        reply("-");
    reply_thousandths(thousandths(bits));
}

void reply_end(void)
{
    reply("\r\n");
}

void reply_error(const char *text)
{
    reply("e-[");
    reply(text);
    reply("]");
    reply_end();
}

void reply_timestamp(void)
{
    reply("m-lap-us-");
    reply_number(board_microseconds());
    reply_end();
}
