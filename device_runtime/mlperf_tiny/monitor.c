/* What every firmware answers: its name, its model, the time. */
#include <stddef.h>

#include "commands.h"
#include "tiny_benchmark.h"

#ifndef TINY_VENDOR
#define TINY_VENDOR "covp"
#endif

static void name(char *rest)
{
    (void)rest;
    reply("m-name-dut-[" TINY_VENDOR "]");
    reply_end();
}

static void profile(char *rest)
{
    (void)rest;
    reply("m-profile-[ULPMark for tinyML Firmware V0.0.1]"); /* the words that hosts look for */
    reply_end();
    reply("m-model-[");
    reply(TINY_VERSION);
    reply("]");
    reply_end();
}

static void timestamp(char *rest)
{
    (void)rest;
    reply_timestamp();
}

static void help(char *rest)
{
    (void)rest;
    reply_help();
}

const protocol_command monitor_commands[] = {
    {"name", name, "- the name of the device"},
    {"profile", profile, "- the version of the firmware and the model"},
    {"timestamp", timestamp, "- the time in microseconds"},
    {"help", help, "- this list"},
    {NULL, NULL, NULL},
};
