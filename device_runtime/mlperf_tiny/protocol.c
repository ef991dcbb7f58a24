/* Lines of commands from the serial port, and their replies. Nothing that comes from the host
 * stops the firmware: what cannot be executed is answered by one line "e-[...]". */
#include "protocol.h"

#include <string.h>

#include "board.h"

static char line[PROTOCOL_CHARACTERS + 1];
static uint32_t characters; /* received of the line; more than fit are counted, not stored */
static bool complete;       /* the line's '%' has come */

/* Take what the serial port has, up to the end of a command. */
static void receive(void)
{
    while (!complete) {
        int byte = board_read();
        if (byte < 0)
            return;
        if (byte == '%')
            complete = true;
        else if (byte != '\r' && byte != '\n') {
            if (characters < PROTOCOL_CHARACTERS)
                line[characters] = (char)byte;
            if (characters <= PROTOCOL_CHARACTERS)
                characters++;
        }
    }
}

bool protocol_interrupted(void)
{
    receive();
    return complete;
}

char *protocol_word(char **rest)
{
    char *word = *rest;
    while (*word == ' ')
        word++;
    if (*word == '\0') {
        *rest = word;
        return NULL;
    }
    char *end = word;
    while (*end != '\0' && *end != ' ')
        end++;
    *rest = end;
    if (*end == ' ') {
        *end = '\0';
        *rest = end + 1;
    }
    return word;
}

bool protocol_number(const char *word, uint32_t *number)
{
    uint64_t value = 0;
    if (*word == '\0')
        return false;
    for (; *word != '\0'; word++) {
        if (*word < '0' || *word > '9')
            return false;
        value = value * 10u + (uint64_t)(*word - '0');
        if (value > UINT32_MAX)
            return false;
    }
    *number = (uint32_t)value;
    return true;
}

bool protocol_same(const char *left, const char *right)
{
    while (*left != '\0' && *left == *right) {
        left++;
        right++;
    }
    return *left == *right;
}

static const protocol_command *find(const char *name)
{
    for (const protocol_command *const *table = protocol_tables; *table != NULL; table++)
        for (const protocol_command *entry = *table; entry->name != NULL; entry++)
            if (protocol_same(entry->name, name))
                return entry;
    return NULL;
}

static void execute(char *text)
{
    char *name = protocol_word(&text);
    if (name == NULL) {
        reply_error("An empty command");
        return;
    }
    const protocol_command *command = find(name);
    if (command != NULL) {
        command->run(text);
        return;
    }
    reply("e-[Unknown command: ");
    reply_quoted(name);
    reply("]");
    reply_end();
}

void protocol_serve(void)
{
    static char command[PROTOCOL_CHARACTERS + 1];
    for (;;) {
        receive();
        if (!complete) {
            protocol_idle();
            continue;
        }
        uint32_t size = characters;
        bool fits = size <= PROTOCOL_CHARACTERS;
        /* a copy: the next line may begin while this one is executed */
        memcpy(command, line, fits ? size : 0);
        command[fits ? size : 0] = '\0';
        characters = 0;
        complete = false;
        /* a zero byte would hide what follows it */
        for (uint32_t i = 0; fits && i < size; i++)
            if (command[i] == '\0')
                command[i] = '?';
        if (fits)
            execute(command);
        else
            reply_error("The command is longer than 80 characters");
        /* a command that gave way to the next one leaves m-ready to it: hosts count them */
        if (!complete) {
            reply("m-ready");
            reply_end();
        }
    }
}

void reply_help(void)
{
    for (const protocol_command *const *table = protocol_tables; *table != NULL; table++)
        for (const protocol_command *entry = *table; entry->name != NULL; entry++) {
            reply(entry->name);
            reply(" ");
            reply(entry->help);
            reply_end();
        }
}
