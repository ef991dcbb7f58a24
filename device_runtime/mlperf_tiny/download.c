/* `db load N`, `db HEX`, `db print`: the input buffer. A line is stored as a whole or not at all,
 * and after a wrong one the download has to begin anew. */
#include "download.h"

#include <string.h>

#include "tiny_benchmark.h"
#include "protocol.h"

static uint32_t expected; /* bytes; 0: no download was begun */
static uint32_t received;

static void fail(const char *text)
{
    expected = received = 0;
    reply_error(text);
}

bool download_is_complete(void)
{
    if (expected == tiny_bytes && received == expected)
        return true;
    reply("e-[Loaded are ");
    reply_number(received);
    reply(" of ");
    reply_number(tiny_bytes);
    reply(" bytes: send the input with 'db']");
    reply_end();
    return false;
}

static void load(char *rest)
{
    const char *word = protocol_word(&rest);
    uint32_t size;
    if (word == NULL) {
        fail("Command 'db load' requires the # of bytes");
    } else if (!protocol_number(word, &size) || size == 0 || protocol_word(&rest) != NULL) {
        fail("Command 'db load' takes one number above 0");
    } else if (size != tiny_bytes) {
        expected = received = 0;
        reply("e-[The input of this model has ");
        reply_number(tiny_bytes);
        reply(" bytes]");
        reply_end();
    } else {
        expected = size;
        received = 0;
        reply("m-[Expecting ");
        reply_number(size);
        reply(" bytes]");
        reply_end();
    }
}

static int nibble(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* Store a line of hexadecimal digits. */
static void store(const char *digits, char *rest)
{
    uint32_t size = (uint32_t)strlen(digits);
    if (expected == 0) {
        fail("Bytes without 'db load'");
        return;
    }
    if (size % 2u != 0 || protocol_word(&rest) != NULL) {
        fail("Insufficient number of hex digits");
        return;
    }
    if (size / 2u > expected - received) {
        fail("More bytes than 'db load' said");
        return;
    }
    for (uint32_t i = 0; i < size; i++)
        if (nibble(digits[i]) < 0) {
            fail("Invalid hex digit");
            return;
        }
    uint8_t *buffer = tiny_buffer();
    for (uint32_t i = 0; i < size; i += 2u)
        buffer[received++] = (uint8_t)(nibble(digits[i]) * 16 + nibble(digits[i + 1u]));
    if (received == expected) {
        reply("m-load-done");
        reply_end();
    }
}

/* `db print [N=16] [offset=0]`, eight bytes a line. */
static void print(char *rest)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t size = 16, offset = 0;
    const char *word = protocol_word(&rest);
    const char *second = protocol_word(&rest);
    if ((word != NULL && !protocol_number(word, &size)) ||
        (second != NULL && !protocol_number(second, &offset))) {
        reply_error("Command 'db print' takes two numbers");
        return;
    }
    if (offset > received)
        offset = received;
    if (size > received - offset)
        size = received - offset;
    for (uint32_t i = 0; i < size && !protocol_interrupted(); i++) {
        uint8_t byte = tiny_buffer()[offset + i];
        char text[3] = {digits[byte >> 4], digits[byte & 15u], '\0'};
        reply(i % 8u == 0 ? "m-buffer-" : "-");
        reply(text);
        if (i % 8u == 7u || i + 1u == size)
            reply_end();
    }
}

void download_command(char *rest)
{
    char *word = protocol_word(&rest);
    if (word == NULL)
        reply_error("Command 'db' requires a subcommand");
    else if (protocol_same(word, "load"))
        load(rest);
    else if (protocol_same(word, "print"))
        print(rest);
    else
        store(word, rest);
}
