/* The path of a program through time, for many designs: see retime.py and run_trace.py. */
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { RUN, START, POLL, SLEEP, MAX_UNITS = 64 };

typedef struct { int32_t kind, segment, unit, job, layer, eager, asleep, awake, rest; } Step;

typedef struct {
    const Step *steps;
    uint64_t step_count;
    const int64_t *segments;     /* cycles: (cores, segments) */
    const int64_t *instructions; /* of each segment */
    uint64_t segment_count, unit_count, layer_count;
    const int64_t *const *jobs;  /* of each unit: cycles: (its designs, its jobs) */
    const uint64_t *job_counts;
    const int32_t *core;         /* of each design: row of `segments` */
    const int32_t *const *unit;  /* of each unit and design: row of `jobs` */
} Path;

typedef struct { int64_t *cycles, *waiting, *asleep, *instructions, *busy, *layers; } Results;

EXPORT uint64_t scan_bytes(void) { return sizeof(Step) + sizeof(Path) + sizeof(Results); }

typedef struct { int64_t now, waiting, asleep, instructions; int64_t done[MAX_UNITS]; } State;

static inline void run(State *s, const Path *p, const int64_t *cycles, int32_t segment) {
    if (segment < 0) return;
    s->now += cycles[segment];
    s->instructions += p->instructions[segment];
}

static inline int64_t wait(State *s, int32_t unit) {
    int64_t left = s->done[unit] - s->now;
    if (left <= 0) return 0;
    s->now += left;
    s->waiting += left;
    return left;
}

static void scan_one(const Path *p, uint64_t n, const Results *r) {
    State s = {0};
    const int64_t *cycles = p->segments + (uint64_t)p->core[n] * p->segment_count;
    int64_t *layers = r->layers ? r->layers + n * p->layer_count : NULL;
    for (uint64_t i = 0; i < p->step_count; i++) {
        const Step *step = &p->steps[i];
        int64_t before = s.now;
        run(&s, p, cycles, step->segment);
        if (step->kind == START) {
            const int64_t *jobs = p->jobs[step->unit];
            uint64_t row = (uint64_t)p->unit[step->unit][n] * p->job_counts[step->unit];
            int64_t takes = jobs[row + (uint64_t)step->job];
            s.done[step->unit] = s.now + takes;
            r->busy[n * p->unit_count + (uint64_t)step->unit] += takes;
        } else if (step->kind == POLL) {
            wait(&s, step->unit);
        } else if (step->kind == SLEEP && s.done[step->unit] <= s.now) {
            run(&s, p, cycles, step->eager);
        } else if (step->kind == SLEEP) {
            run(&s, p, cycles, step->asleep);
            s.asleep += wait(&s, step->unit);
            run(&s, p, cycles, step->awake);
            run(&s, p, cycles, step->rest);
        }
        if (layers) layers[step->layer] += s.now - before;
    }
    r->cycles[n] = s.now;
    r->waiting[n] = s.waiting;
    r->asleep[n] = s.asleep;
    r->instructions[n] = s.instructions;
}

/* Designs from first to last - 1, into results that are zero. */
EXPORT void scan(const Path *p, uint64_t first, uint64_t last, const Results *r) {
    for (uint64_t n = first; n < last; n++) scan_one(p, n, r);
}
