/* Makes every semihosting call, and says what came of it; QEMU has to say the same. */
#include <stdint.h>
#include <string.h>

#include "covp_semihosting.h"

static uint32_t block[4];
static char text[64];
static uint8_t data[300];

static int32_t call(uint32_t operation, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    block[0] = a;
    block[1] = b;
    block[2] = c;
    block[3] = d;
    return covp_semihosting(operation, (uintptr_t)block);
}

static uint32_t at(const void *place)
{
    return (uint32_t)(uintptr_t)place;
}

static void print(const char *string)
{
    covp_semihosting(COVP_SYS_WRITE0, (uintptr_t)string);
}

static void say(const char *what, int32_t value)
{
    static const char digits[] = "0123456789abcdef";
    char number[11] = "=        \n";
    for (int i = 0; i < 8; i++)
        number[8 - i] = digits[((uint32_t)value >> (4 * i)) & 15u];
    print(what);
    print(number);
}

static uint32_t length(const char *string)
{
    uint32_t n = 0;
    while (string[n])
        n++;
    return n;
}

static int32_t open_file(const char *name, uint32_t mode)
{
    return call(COVP_SYS_OPEN, at(name), mode, length(name), 0);
}

static int32_t error(void)
{
    return covp_semihosting(COVP_SYS_ERRNO, 0);
}

static void streams(void)
{
    int32_t in = open_file(":tt", 0), out = open_file(":tt", 4), err = open_file(":tt", 8);
    say("handles", in > 0 && out > 0 && err > 0 && in != out && out != err);
    say("istty", call(COVP_SYS_ISTTY, (uint32_t)out, 0, 0, 0));
    say("write", call(COVP_SYS_WRITE, (uint32_t)out, at("seven\n\0\n"), 8, 0));
    say("errors", call(COVP_SYS_WRITE, (uint32_t)err, at("wrong\n"), 6, 0));
    covp_semihosting(COVP_SYS_WRITEC, (uintptr_t) "!");
    for (uint32_t n = 0; n < 6; n++)
        say("read", call(COVP_SYS_READ, (uint32_t)in, at(data + n), 1, 0));
    data[6] = 0;
    print((const char *)data);
    say("close", call(COVP_SYS_CLOSE, (uint32_t)in, 0, 0, 0));
}

static void files(void)
{
    int32_t missing = open_file("missing", 0);
    say("missing", missing);
    say("errno", error());
    int32_t file = open_file("made.bin", 6); /* w+ */
    for (uint32_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    say("written", call(COVP_SYS_WRITE, (uint32_t)file, at(data), sizeof data, 0));
    say("length", call(COVP_SYS_FLEN, (uint32_t)file, 0, 0, 0));
    say("seek", call(COVP_SYS_SEEK, (uint32_t)file, 290, 0, 0));
    memset(data, 0, sizeof data);
    say("rest", call(COVP_SYS_READ, (uint32_t)file, at(data), 64, 0));
    say("tenth", data[9]);
    say("eleventh", data[10]);
    say("end", call(COVP_SYS_READ, (uint32_t)file, at(data), 64, 0));
    say("istty", call(COVP_SYS_ISTTY, (uint32_t)file, 0, 0, 0));
    say("close", call(COVP_SYS_CLOSE, (uint32_t)file, 0, 0, 0));
    say("again", call(COVP_SYS_CLOSE, (uint32_t)file, 0, 0, 0));
    say("errno", error());
    file = open_file("made.bin", 8); /* a */
    say("append", call(COVP_SYS_WRITE, (uint32_t)file, at("tail"), 4, 0));
    say("close", call(COVP_SYS_CLOSE, (uint32_t)file, 0, 0, 0));
    say("rename", call(COVP_SYS_RENAME, at("made.bin"), 8, at("kept.bin"), 8));
    file = open_file("other", 4);
    say("close", call(COVP_SYS_CLOSE, (uint32_t)file, 0, 0, 0));
    say("remove", call(COVP_SYS_REMOVE, at("other"), 5, 0, 0));
    say("iserror", call(COVP_SYS_ISERROR, (uint32_t)-1, 0, 0, 0));
    say("noerror", call(COVP_SYS_ISERROR, 7, 0, 0, 0));
}

static void surroundings(void)
{
    int32_t features = open_file(":semihosting-features", 0);
    say("features", call(COVP_SYS_READ, (uint32_t)features, at(data), 5, 0));
    say("magic", data[0] == 'S' && data[1] == 'H' && data[2] == 'F' && data[3] == 'B');
    say("bits", data[4]);
    say("line", call(COVP_SYS_GET_CMDLINE, at(text), sizeof text, 0, 0));
    say("size", (int32_t)block[1]);
    print(text);
    print("\n");
    say("short", call(COVP_SYS_GET_CMDLINE, at(text), 2, 0, 0));
    uint32_t heap[4] = {1, 1, 1, 1};
    call(COVP_SYS_HEAPINFO, at(heap), 0, 0, 0);
    say("heap", heap[0] != 1 && heap[0] <= heap[1] && heap[2] >= heap[1]);
    int32_t start = covp_semihosting(COVP_SYS_CLOCK, 0);
    say("time", covp_semihosting(COVP_SYS_TIME, 0) > 1700000000);
    uint32_t ticks[4];
    say("elapsed", covp_semihosting(COVP_SYS_ELAPSED, (uintptr_t)ticks));
    say("elapsed", covp_semihosting(COVP_SYS_ELAPSED, (uintptr_t)(ticks + 2)));
    say("forward", ticks[3] > ticks[1] || (ticks[3] == ticks[1] && ticks[2] > ticks[0]));
    say("tickfreq", covp_semihosting(COVP_SYS_TICKFREQ, 0) > 0);
    say("clock", covp_semihosting(COVP_SYS_CLOCK, 0) >= start);
}

int main(void)
{
    streams();
    files();
    surroundings();
    call(COVP_SYS_EXIT_EXTENDED, COVP_APPLICATION_EXIT, 42, 0, 0);
    return 0;
}
