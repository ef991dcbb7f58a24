/* Tables of commands; a firmware's main lists those that it has. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "protocol.h"

extern const protocol_command monitor_commands[];   /* name, profile, timestamp, help */
extern const protocol_command inference_commands[]; /* db, infer, results */

#endif
