/* Sends lines and counters by RTT, and sends back in upper case what comes down. */
#include <stdint.h>
#include <string.h>

struct buffer {
    const char *name;
    uint8_t *start;
    uint32_t size;
    uint32_t written; /* an up buffer's is the program's, a down buffer's the host's */
    uint32_t taken;
    uint32_t flags;
};

static struct {
    char id[16];
    int32_t ups, downs;
    struct buffer up[2], down[1];
} block;

static uint8_t text[64], numbers[40], typed[8];

/* Waits while the buffer is full. */
static void put(volatile struct buffer *up, uint8_t byte)
{
    uint32_t next = (up->written + 1u) % up->size;
    while (next == up->taken) {
    }
    up->start[up->written] = byte;
    __asm__ volatile("" ::: "memory");
    up->written = next;
}

static void put_text(const char *string)
{
    while (*string)
        put(&block.up[0], (uint8_t)*string++);
}

static int get(volatile struct buffer *down)
{
    if (down->taken == down->written)
        return -1;
    int byte = down->start[down->taken];
    down->taken = (down->taken + 1u) % down->size;
    return byte;
}

int main(void)
{
    /* not as one constant, which a debugger would find in flash or in the initial values */
    static const char reversed[] = "TTR REGGES";
    block.up[0] = (struct buffer){"Terminal", text, sizeof text, 0, 0, 0};
    block.up[1] = (struct buffer){"Numbers", numbers, sizeof numbers, 0, 0, 0};
    block.down[0] = (struct buffer){"Keys", typed, sizeof typed, 0, 0, 0};
    block.ups = 2;
    block.downs = 1;
    for (uint32_t i = 0; i < 10; i++)
        block.id[i] = reversed[9u - i];
    put_text("up\n");
    for (uint32_t i = 0; i < 100; i++) { /* more than either buffer holds */
        uint32_t number = i * i;
        for (uint32_t byte = 0; byte < 4; byte++)
            put(&block.up[1], (uint8_t)(number >> (8u * byte)));
    }
    put_text("a line that is longer than the buffer of sixty-four bytes has room for at once\n");
    for (;;) {
        int byte = get(&block.down[0]);
        if (byte == '.')
            return 7;
        if (byte >= 0)
            put(&block.up[0], (uint8_t)(byte >= 'a' && byte <= 'z' ? byte - 32 : byte));
    }
}
