// One function for each command of `bulkhead`. Each returns the exit code.
#ifndef BULKHEAD_CLI_COMMANDS_H_
#define BULKHEAD_CLI_COMMANDS_H_

#include "bulkhead/cli/flags.h"

namespace bulkhead::cli {

int RunCommand(const Flags& flags);  // returns only when nothing was started
int ExplainCommand(const Flags& flags);
int ListCommand(Command command, const Flags& flags);  // tools, resources, prompts
int CallCommand(const Flags& flags);
int RequestCommand(const Flags& flags);
int CheckCommand(const Flags& flags);
int DoctorCommand(const Flags& flags);
int PresetsCommand(const Flags& flags);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_COMMANDS_H_
