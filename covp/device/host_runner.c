/* The process in which the host device's programs run: covp/device/host.py starts and ends it.
 *
 *     host_runner PARENT FD  START OFFSET SIZE RIGHTS ...
 *
 * maps pieces of the file FD at fixed addresses, then executes commands: 16 bytes in, one Report
 * out. A command is a jump to an address; a breakpoint at another one ends it, and so does every
 * signal. Everything happens in the signal handler: it reports, takes the next command and returns
 * into it. After anything but the breakpoint the process is over, its parent starts another.
 *
 * It is linked position-independent, which puts it above 4 GB: 32-bit pointers cannot reach it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

struct command {
    uint32_t entry, stop, sp, unused;
};

struct report {
    uint32_t signal; /* 0: ready, or at the stop */
    int32_t code;    /* si_code */
    uint64_t address, error, nanoseconds;
    uint64_t registers[17]; /* rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8 .. r15, rip */
};

enum { FLAGS = 0x202, MXCSR = 0x1f80, X87_CONTROL = 0x37f };

static const int order[17] = {
    REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};
static struct command command;
static uint64_t started;
static uint8_t signal_stack[64 * 1024];

/* What the program itself had of a processor: other processes do not count. */
static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The pipes to the parent: not 0 and 1, which are the program's to read and write. */
static int commands, reports;

static int keep_pipes(void)
{
    commands = fcntl(0, F_DUPFD_CLOEXEC, 200);
    reports = fcntl(1, F_DUPFD_CLOEXEC, 200);
    int nothing = open("/dev/null", O_RDWR);
    if (commands < 0 || reports < 0 || nothing < 0)
        return 0;
    for (int standard = 0; standard < 3; ++standard)
        dup2(nothing, standard);
    if (nothing > 2)
        close(nothing);
    return 1;
}

static void transfer(int in, void *data, size_t size)
{
    for (uint8_t *at = data; size;) {
        ssize_t done = in ? read(commands, at, size) : write(reports, at, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) /* the parent has closed the pipe */
            _exit(0);
        at += done;
        size -= (size_t)done;
    }
}

static void next_command(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    transfer(1, &command, sizeof command);
    for (int i = 0; i < 17; ++i)
        registers[order[i]] = 0;
    registers[REG_RIP] = command.entry;
    registers[REG_RSP] = command.sp;
    registers[REG_EFL] = FLAGS;
    context->uc_mcontext.fpregs->mxcsr = MXCSR;
    context->uc_mcontext.fpregs->cwd = X87_CONTROL;
    started = now();
}

static void on_signal(int number, siginfo_t *info, void *opaque)
{
    uint64_t ended = now();
    ucontext_t *context = opaque;
    greg_t *registers = context->uc_mcontext.gregs;
    struct report report = {.signal = (uint32_t)number, .code = info->si_code};
    if (number == SIGUSR1) { /* main's own: the first command */
        report.signal = 0;
    } else {
        report.nanoseconds = ended - started;
        report.address = (uint64_t)(uintptr_t)info->si_addr;
        report.error = (uint64_t)registers[REG_ERR];
        if (number == SIGTRAP && info->si_code == SI_KERNEL)
            --registers[REG_RIP]; /* of the breakpoint itself */
        for (int i = 0; i < 17; ++i)
            report.registers[i] = (uint64_t)registers[order[i]];
        if (number == SIGTRAP && registers[REG_RIP] == command.stop)
            report.signal = 0;
    }
    transfer(0, &report, sizeof report);
    if (report.signal)
        _exit(0);
    next_command(context);
}

static void handle_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGALRM, SIGUSR1};
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask); /* a time that is over waits until the report is written */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        sigaction(numbers[i], &action, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent */
}

static int map(int file, char **piece)
{
    uint64_t start = strtoull(piece[0], NULL, 0), offset = strtoull(piece[1], NULL, 0);
    uint64_t size = strtoull(piece[2], NULL, 0);
    int rights = PROT_READ | PROT_EXEC | (strchr(piece[3], 'w') ? PROT_WRITE : 0);
    void *wanted = (void *)(uintptr_t)start;
    /* populated: the first run does not pay for page faults */
    int flags = MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE;
    return mmap(wanted, size, rights, flags, file, (off_t)offset) == wanted;
}

int main(int count, char **words)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count < 3 || getppid() != atoi(words[1])) /* the parent ended before the line above */
        return 2;
    int file = atoi(words[2]);
    for (int i = 3; i + 3 < count; i += 4) {
        if (!map(file, words + i)) {
            fprintf(stderr, "%s bytes at %s: %s\n", words[i + 2], words[i], strerror(errno));
            return 3;
        }
    }
    close(file);
    if (!keep_pipes()) {
        fprintf(stderr, "no file descriptors: %s\n", strerror(errno));
        return 4;
    }
    handle_signals();
    raise(SIGUSR1);
    return 0;
}
