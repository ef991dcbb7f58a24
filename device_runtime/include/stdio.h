/* Output through board_write: %d %i %u %x %X %c %s %p %%, with l, ll and z, a width, 0 and -; %f with
   a precision of up to 15 digits, below 2**64. */
#ifndef COVP_STDIO_H
#define COVP_STDIO_H

int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int puts(const char *text);
int putchar(int character);

#endif
