/* The commands of a tiled unit: decoded and checked, scheduled on its engines, executed.
 *
 * commands.py says what the words mean; the structures here are its numpy types. */
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum opcode { LAYOUT = 1, LOOPS, LOAD, FILL, COMPUTE, STORE };
enum engine { LOADER, ARRAY, STORER, NONE };
enum operand { INPUT, WEIGHTS, OUTPUT };
enum problem { FINE, SIZE, ADDRESS, RANGE };
#define AXES 6
#define DEEPEST 10
#define BANKS 64
#define ARRAYS 64

struct access {
    uint32_t memory, first, end, is_write;
};

struct command {
    uint32_t opcode, engine, operand, shape, word, fetch, array, reserved;
    uint64_t elements, rows;
    struct access access[3];
    uint64_t cycles, start, end;
};

struct unit {
    uint64_t elements[3];                  /* of each operand in memory */
    uint32_t memory[3], bytes[3], banks[3]; /* of each operand: its memory, that one's size */
    uint32_t depth, issue_cycles, arrays, reserved;
};

struct layout {
    uint32_t axes, memory_stride[AXES], local_stride[AXES];
};

struct loop {
    uint32_t extent, input, weights, sums;
};

struct state {
    struct layout layout[3];
    struct loop loops[DEEPEST];
    uint32_t depth, shape;
};

/* One command's words, with the state that those before it left. */
struct decoded {
    uint32_t opcode, operand, count, words;
    uint32_t extent[AXES];
    const uint32_t *argument;
};

static uint64_t reach(const uint32_t *extent, const uint32_t *stride, uint32_t axes)
{
    uint64_t last = extent[axes - 1] - 1u;
    for (uint32_t axis = 0; axis + 1 < axes; ++axis)
        last += (uint64_t)(extent[axis] - 1u) * stride[axis];
    return last;
}

static int set_layout(struct state *state, const struct decoded *one)
{
    if (one->count == 0 || one->count > AXES || one->operand > OUTPUT)
        return RANGE;
    struct layout *layout = &state->layout[one->operand];
    layout->axes = one->count;
    for (uint32_t axis = 0; axis + 1 < one->count; ++axis) {
        layout->memory_stride[axis] = one->argument[2 * axis];
        layout->local_stride[axis] = one->argument[2 * axis + 1];
    }
    return FINE;
}

static int set_loops(struct state *state, const struct decoded *one)
{
    if (one->count == 0 || one->count > DEEPEST)
        return RANGE;
    state->depth = one->count;
    memcpy(state->loops, one->argument, one->count * sizeof state->loops[0]);
    for (uint32_t n = 0; n < one->count; ++n)
        if (state->loops[n].extent == 0 || state->loops[n].extent > 0xFFFFu)
            return SIZE;
    ++state->shape;
    return FINE;
}

/* Split a command into its parts; 0: it is fine. */
static int parse(const uint32_t *words, uint64_t left, struct decoded *one)
{
    one->opcode = words[0] & 0xFFu;
    one->operand = words[0] >> 8 & 0xFFu;
    one->count = words[0] >> 16 & 0xFFu;
    one->argument = words + 1;
    switch (one->opcode) {
    case LAYOUT:
        one->words = 1 + 2 * (one->count ? one->count - 1 : 0);
        break;
    case LOOPS:
        one->words = 1 + 4 * one->count;
        break;
    case LOAD:
    case STORE:
        one->words = 3 + (one->count + 1) / 2;
        break;
    case FILL:
        one->words = 3;
        break;
    case COMPUTE:
        one->words = 4;
        break;
    default:
        return RANGE;
    }
    if (one->words > left)
        return SIZE;
    if (one->opcode == LOAD || one->opcode == STORE) {
        if (one->count == 0 || one->count > AXES)
            return RANGE;
        for (uint32_t axis = 0; axis < one->count; ++axis) {
            one->extent[axis] = one->argument[2 + axis / 2] >> 16 * (axis & 1) & 0xFFFFu;
            if (one->extent[axis] == 0)
                return SIZE;
        }
    }
    return FINE;
}

static int local(const struct unit *unit, uint32_t operand, uint64_t first, uint64_t end,
                 int is_write, struct access *access)
{
    if (end > unit->bytes[operand])
        return RANGE;
    *access = (struct access){unit->memory[operand], (uint32_t)first, (uint32_t)end,
                              (uint32_t)is_write};
    return FINE;
}

static int check_transfer(const struct unit *unit, const struct state *state,
                          const struct decoded *one, struct command *command)
{
    uint32_t operand = one->opcode == STORE ? OUTPUT : one->operand;
    if (operand > OUTPUT || (one->opcode == LOAD && operand == OUTPUT))
        return RANGE;
    const struct layout *layout = &state->layout[operand];
    if (layout->axes != one->count)
        return RANGE;
    uint64_t last = one->argument[0] + reach(one->extent, layout->memory_stride, one->count);
    if (last >= unit->elements[operand])
        return ADDRESS;
    command->rows = command->elements = 1;
    for (uint32_t axis = 0; axis < one->count; ++axis) {
        command->elements *= one->extent[axis];
        if (axis + 1 < one->count)
            command->rows *= one->extent[axis];
    }
    uint64_t size = operand == OUTPUT ? 4 : 1, first = one->argument[1];
    uint64_t end = first + reach(one->extent, layout->local_stride, one->count) + 1;
    return local(unit, operand, size * first, size * end, one->opcode == LOAD, command->access);
}

static int check_compute(const struct unit *unit, const struct state *state,
                         const struct decoded *one, struct command *command)
{
    uint64_t last[3] = {one->argument[0], one->argument[1], one->argument[2]};
    if (state->depth == 0)
        return RANGE;
    command->elements = 1;
    for (uint32_t n = 0; n < state->depth; ++n) {
        const struct loop *loop = &state->loops[n];
        last[INPUT] += (uint64_t)(loop->extent - 1u) * loop->input;
        last[WEIGHTS] += (uint64_t)(loop->extent - 1u) * loop->weights;
        last[OUTPUT] += (uint64_t)(loop->extent - 1u) * loop->sums;
        command->elements *= loop->extent;
    }
    for (uint32_t operand = INPUT; operand <= OUTPUT; ++operand) {
        uint64_t size = operand == OUTPUT ? 4 : 1;
        int wrong = local(unit, operand, size * one->argument[operand], size * (last[operand] + 1),
                          operand == OUTPUT, &command->access[operand]);
        if (wrong)
            return wrong;
    }
    return FINE;
}

static int check(const struct unit *unit, struct state *state, const struct decoded *one,
                 struct command *command)
{
    memset(command, 0, sizeof *command);
    command->opcode = one->opcode;
    command->operand = one->operand;
    command->engine = NONE;
    int wrong = FINE;
    switch (one->opcode) {
    case LAYOUT:
        wrong = set_layout(state, one);
        break;
    case LOOPS:
        wrong = set_loops(state, one);
        break;
    case LOAD:
        command->engine = LOADER;
        wrong = check_transfer(unit, state, one, command);
        break;
    case STORE:
        command->engine = STORER;
        wrong = check_transfer(unit, state, one, command);
        break;
    case FILL:
        command->engine = LOADER;
        command->elements = one->argument[1];
        command->rows = 1;
        if (one->operand > WEIGHTS || one->argument[1] == 0)
            return RANGE;
        wrong = local(unit, one->operand, one->argument[0],
                      (uint64_t)one->argument[0] + one->argument[1], 1, command->access);
        break;
    case COMPUTE:
        command->engine = ARRAY;
        wrong = check_compute(unit, state, one, command);
        break;
    }
    command->shape = state->shape;
    return wrong;
}

/* Decode and check commands. Returns a problem, and how many commands come before it. */
EXPORT int covp_decode(const uint32_t *words, uint64_t count, const struct unit *unit,
                       struct command *commands, uint64_t *found)
{
    struct state state = {0};
    uint64_t at = 0;
    for (*found = 0; at < count; ++*found) {
        struct decoded one;
        int wrong = parse(words + at, count - at, &one);
        if (!wrong)
            wrong = check(unit, &state, &one, &commands[*found]);
        if (wrong)
            return wrong;
        commands[*found].word = (uint32_t)at;
        at += one.words;
    }
    return FINE;
}

/* -- time ------------------------------------------------------------------------------------ */

static int conflicts(const struct command *one, const struct command *other)
{
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const struct access *a = &one->access[i], *b = &other->access[j];
            if (a->memory == b->memory && a->first < b->end && b->first < a->end &&
                (a->is_write | b->is_write))
                return 1;
        }
    return 0;
}

/* From when on a bank is free: of loads, and of what arrays and stores read, which is broadcast. */
struct banks {
    uint64_t loaded[3][BANKS], read[3][BANKS];
};

/* The banks that an access occupies, first and one past the last; none where they do not count. */
static void span(const struct unit *unit, const struct access *access, uint32_t *first,
                 uint32_t *end)
{
    uint32_t operand = 0;
    while (unit->memory[operand] != access->memory)
        ++operand;
    uint64_t count = unit->banks[operand], bytes = unit->bytes[operand];
    *first = *end = 0;
    if (count == 0 || access->end == 0)
        return;
    *first = (uint32_t)(access->first * count / bytes);
    *end = (uint32_t)((access->end - 1) * count / bytes) + 1;
}

static uint64_t when_free(const struct unit *unit, const struct banks *banks,
                          const struct command *one)
{
    uint64_t latest = 0;
    for (int i = 0; i < 3; ++i) {
        uint32_t bank, end;
        for (span(unit, &one->access[i], &bank, &end); bank < end; ++bank) {
            uint32_t memory = one->access[i].memory;
            uint64_t other = one->engine == LOADER ? banks->read[memory][bank]
                                                   : banks->loaded[memory][bank];
            if (other > latest)
                latest = other;
        }
    }
    return latest;
}

static void occupy(const struct unit *unit, struct banks *banks, const struct command *one)
{
    for (int i = 0; i < 3; ++i) {
        uint32_t bank, end;
        for (span(unit, &one->access[i], &bank, &end); bank < end; ++bank) {
            uint64_t *free = one->engine == LOADER ? banks->loaded[one->access[i].memory]
                                                   : banks->read[one->access[i].memory];
            if (one->end > free[bank])
                free[bank] = one->end;
        }
    }
}

static int uses_port(const struct command *one)
{
    return one->opcode == LOAD || one->opcode == STORE;
}

#define UNKNOWN UINT64_MAX

/* When a command has been issued and all that it depends on is over; UNKNOWN as long as one of
 * those before it in the queue has not begun. */
static uint64_t when_ready(const struct command *commands, uint64_t at, uint32_t depth)
{
    uint64_t ready = commands[at].start; /* when it was issued */
    for (uint64_t before = at; before-- > 0 && depth > 0;) {
        depth -= commands[before].engine != NONE; /* so many were in the queue with it */
        if (commands[before].end != UNKNOWN && commands[before].end <= ready)
            continue;
        if (!conflicts(&commands[at], &commands[before]))
            continue;
        if (commands[before].end == UNKNOWN)
            return UNKNOWN;
        ready = commands[before].end;
    }
    return ready;
}

struct schedule {
    struct command *commands;
    uint64_t count;
    const struct unit *unit;
    struct banks banks;
    uint64_t head[3], ready[3], engine_free[3]; /* of each engine: its next command */
    uint64_t array_free[ARRAYS];                /* of the arrays each: engine_free is the first */
    uint64_t issued, oldest, waiting, retired;  /* the queue */
    uint64_t fetcher, port;                     /* from when on they are free */
};

static void find_head(struct schedule *all, uint32_t engine, uint64_t from)
{
    while (from < all->count && all->commands[from].engine != engine)
        ++from;
    all->head[engine] = from;
    all->ready[engine] = UNKNOWN;
}

/* When the next command can be fetched; UNKNOWN: the queue is full of commands that wait. */
static uint64_t when_fetched(struct schedule *all)
{
    if (all->issued == all->count)
        return UNKNOWN;
    const struct command *next = &all->commands[all->issued];
    while (next->engine != NONE && all->waiting == all->unit->depth) {
        const struct command *oldest = &all->commands[all->oldest];
        if (oldest->end == UNKNOWN)
            return UNKNOWN;
        if (oldest->engine != NONE) {
            --all->waiting;
            if (oldest->end > all->retired)
                all->retired = oldest->end;
        }
        ++all->oldest;
    }
    uint64_t at = all->fetcher > all->retired ? all->fetcher : all->retired;
    return next->fetch && all->port > at ? all->port : at;
}

static void fetch(struct schedule *all, uint64_t at)
{
    struct command *next = &all->commands[all->issued++];
    if (next->fetch)
        all->port = at + next->fetch;
    all->fetcher = next->start = at + next->fetch + all->unit->issue_cycles;
    if (next->engine == NONE)
        next->end = next->start;
    else
        ++all->waiting;
}

/* When an engine's next command can start; UNKNOWN: not before others have. */
static uint64_t when_started(struct schedule *all, int engine)
{
    if (all->head[engine] >= all->issued)
        return UNKNOWN;
    const struct command *one = &all->commands[all->head[engine]];
    if (all->ready[engine] == UNKNOWN)
        all->ready[engine] = when_ready(all->commands, all->head[engine], all->unit->depth);
    if (all->ready[engine] == UNKNOWN)
        return UNKNOWN;
    uint64_t at = all->ready[engine], bank = when_free(all->unit, &all->banks, one);
    if (all->engine_free[engine] > at)
        at = all->engine_free[engine];
    if (bank > at)
        at = bank;
    return uses_port(one) && all->port > at ? all->port : at;
}

/* The array that is free first takes a command; the next one goes to whichever is free then. */
static uint32_t occupy_array(struct schedule *all, uint64_t end)
{
    uint32_t first = 0;
    for (uint32_t n = 1; n < all->unit->arrays; ++n)
        if (all->array_free[n] < all->array_free[first])
            first = n;
    all->array_free[first] = end;
    all->engine_free[ARRAY] = end;
    for (uint32_t n = 0; n < all->unit->arrays; ++n)
        if (all->array_free[n] < all->engine_free[ARRAY])
            all->engine_free[ARRAY] = all->array_free[n];
    return first;
}

static void start(struct schedule *all, int engine, uint64_t at)
{
    struct command *one = &all->commands[all->head[engine]];
    one->start = at;
    one->end = at + one->cycles;
    all->engine_free[engine] = one->end;
    if (engine == ARRAY)
        one->array = occupy_array(all, one->end);
    if (uses_port(one))
        all->port = one->end;
    occupy(all->unit, &all->banks, one);
    find_head(all, (uint32_t)engine, all->head[engine] + 1);
}

/* Set when each command starts and ends. Returns the cycles of them all.
 *
 * Commands are fetched in order, as long as the queue has room; each engine starts its own in order
 * (the array that is free first takes the next tile),
 * and one waits for those before it that touch the same bytes. Of all that could happen the
 * earliest does first, at the same time that of the older command: so port and banks are given out
 * in the order of time. */
EXPORT uint64_t covp_schedule(struct command *commands, uint64_t count, const struct unit *unit)
{
    struct schedule all = {.commands = commands, .count = count, .unit = unit};
    uint64_t total = 0;
    for (uint64_t n = 0; n < count; ++n)
        commands[n].end = UNKNOWN;
    for (uint32_t engine = LOADER; engine <= STORER; ++engine)
        find_head(&all, engine, 0);
    for (;;) {
        int best = NONE;
        uint64_t earliest = UNKNOWN;
        for (int engine = LOADER; engine <= STORER; ++engine) {
            uint64_t at = when_started(&all, engine);
            int is_older = best != NONE && all.head[engine] < all.head[best];
            if (at < earliest || (at == earliest && at != UNKNOWN && is_older)) {
                earliest = at;
                best = engine;
            }
        }
        uint64_t at = when_fetched(&all);
        if (at < earliest) {
            fetch(&all, at);
        } else if (earliest != UNKNOWN) {
            uint64_t at_head = all.head[best];
            start(&all, best, earliest);
            if (commands[at_head].end > total)
                total = commands[at_head].end;
        } else {
            return total > all.fetcher ? total : all.fetcher;
        }
    }
}

/* -- function -------------------------------------------------------------------------------- */

struct execution {
    const int8_t *memory[2]; /* the operands */
    int8_t *local[3];        /* each operand's memory of the unit */
    int32_t *sums;           /* of the result, in its order */
    uint8_t *stored;         /* which of them were stored */
    int32_t zero_point[2];   /* of the operands */
};

static void load(const struct execution *run, const struct layout *layout,
                 const struct decoded *one)
{
    uint32_t at[AXES] = {0}, axes = one->count, row = one->extent[axes - 1];
    for (;;) {
        uint64_t from = one->argument[0], to = one->argument[1];
        for (uint32_t axis = 0; axis + 1 < axes; ++axis) {
            from += (uint64_t)at[axis] * layout->memory_stride[axis];
            to += (uint64_t)at[axis] * layout->local_stride[axis];
        }
        memcpy(run->local[one->operand] + to, run->memory[one->operand] + from, row);
        uint32_t axis = axes - 1;
        while (axis > 0 && ++at[axis - 1] == one->extent[axis - 1])
            at[--axis] = 0;
        if (axis == 0)
            return;
    }
}

static void store(const struct execution *run, const struct layout *layout,
                  const struct decoded *one)
{
    const int32_t *sums = (const int32_t *)run->local[OUTPUT];
    uint32_t at[AXES] = {0}, axes = one->count, row = one->extent[axes - 1];
    for (;;) {
        uint64_t to = one->argument[0], from = one->argument[1];
        for (uint32_t axis = 0; axis + 1 < axes; ++axis) {
            to += (uint64_t)at[axis] * layout->memory_stride[axis];
            from += (uint64_t)at[axis] * layout->local_stride[axis];
        }
        memcpy(run->sums + to, sums + from, 4 * (uint64_t)row);
        memset(run->stored + to, 1, row);
        uint32_t axis = axes - 1;
        while (axis > 0 && ++at[axis - 1] == one->extent[axis - 1])
            at[--axis] = 0;
        if (axis == 0)
            return;
    }
}

static void add_products(const struct execution *run, const struct loop *loop, uint32_t depth,
                         const int8_t *input, const int8_t *weights, int32_t *sums, int clears)
{
    if (depth > 1) {
        for (uint32_t n = 0; n < loop->extent; ++n)
            add_products(run, loop + 1, depth - 1, input + (uint64_t)n * loop->input,
                         weights + (uint64_t)n * loop->weights, sums + (uint64_t)n * loop->sums,
                         clears && (n == 0 || loop->sums));
        return;
    }
    uint32_t of_input = (uint32_t)run->zero_point[INPUT];
    uint32_t of_weights = (uint32_t)run->zero_point[WEIGHTS];
    if (loop->sums == 0) {
        uint32_t sum = clears ? 0 : (uint32_t)*sums;
        for (uint32_t n = 0; n < loop->extent; ++n)
            sum += ((uint32_t)input[(uint64_t)n * loop->input] - of_input) *
                   ((uint32_t)weights[(uint64_t)n * loop->weights] - of_weights);
        *sums = (int32_t)sum;
        return;
    }
    for (uint32_t n = 0; n < loop->extent; ++n) {
        int32_t *place = sums + (uint64_t)n * loop->sums;
        uint32_t product = ((uint32_t)input[(uint64_t)n * loop->input] - of_input) *
                           ((uint32_t)weights[(uint64_t)n * loop->weights] - of_weights);
        *place = (int32_t)((clears ? 0 : (uint32_t)*place) + product);
    }
}

/* Execute commands that `covp_decode` accepted. */
EXPORT void covp_execute(const uint32_t *words, uint64_t count, const struct execution *run)
{
    struct state state = {0};
    for (uint64_t at = 0; at < count;) {
        struct decoded one;
        if (parse(words + at, count - at, &one))
            return;
        at += one.words;
        switch (one.opcode) {
        case LAYOUT:
            set_layout(&state, &one);
            break;
        case LOOPS:
            set_loops(&state, &one);
            break;
        case LOAD:
            load(run, &state.layout[one.operand], &one);
            break;
        case FILL:
            memset(run->local[one.operand] + one.argument[0], run->zero_point[one.operand],
                   one.argument[1]);
            break;
        case COMPUTE:
            add_products(run, state.loops, state.depth, run->local[INPUT] + one.argument[0],
                         run->local[WEIGHTS] + one.argument[1],
                         (int32_t *)run->local[OUTPUT] + one.argument[2],
                         !(one.operand & 1u));
            break;
        case STORE:
            store(run, &state.layout[OUTPUT], &one);
            break;
        }
    }
}
