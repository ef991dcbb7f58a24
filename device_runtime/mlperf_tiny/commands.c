/* The commands of the benchmarks that classify one input at a time. */
#include "commands.h"

#include <stddef.h>

#include "board.h"
#include "download.h"
#include "tiny_benchmark.h"

static bool has_results;

static void print_results(void)
{
    reply("m-results-[");
    tiny_print();
    reply("]");
    reply_end();
}

static void results(char *rest)
{
    (void)rest;
    if (has_results)
        print_results();
    else
        reply_error("No inference was made yet");
}

/* A line "TEXT-N". */
static void progress(const char *text, uint32_t number)
{
    reply(text);
    reply_number(number);
    reply_end();
}

/* A row of inferences; false when the model failed or a new command has come. */
static bool repeat(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!tiny_once()) {
            reply_error("The model reports an error");
            return false;
        }
        (void)board_microseconds(); /* counters of the core wrap around: look often */
        if (protocol_interrupted()) {
            reply_error("Interrupted by the next command");
            return false;
        }
    }
    return true;
}

/* The first word as a number, `absent` without one; false for what is none. */
static bool number_or(char **rest, uint32_t absent, uint32_t *number)
{
    const char *word = protocol_word(rest);
    *number = absent;
    return word == NULL || protocol_number(word, number);
}

static void infer(char *rest)
{
    uint32_t count, warmups;
    if (!number_or(&rest, 1, &count) || count == 0) {
        reply_error("Inference iterations must be a number above 0");
        return;
    }
    if (!number_or(&rest, 10, &warmups) || protocol_word(&rest) != NULL) {
        reply_error("Inference warmup must be one number");
        return;
    }
    if (!download_is_complete())
        return;
    has_results = false;
    tiny_prepare();
    progress("m-warmup-start-", warmups);
    if (!repeat(warmups))
        return;
    reply("m-warmup-done");
    reply_end();
    progress("m-infer-start-", count);
    reply_timestamp();
    if (!repeat(count))
        return;
    reply_timestamp();
    reply("m-infer-done");
    reply_end();
    has_results = true;
    print_results();
}

const protocol_command inference_commands[] = {
    {"db", download_command, "load N | HEX | print [N=16] [OFFSET=0] - the input's bytes"},
    {"infer", infer, "N [W=10] - N inferences after W that do not count"},
    {"results", results, "- the result of the last inference"},
    {NULL, NULL, NULL},
};
