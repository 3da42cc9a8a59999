// What the files of the program `probe` share: see probe.cc.
#ifndef BULKHEAD_TESTS_PROGRAMS_PROBE_H_
#define BULKHEAD_TESTS_PROGRAMS_PROBE_H_

#include <stddef.h>
#include <sys/types.h>

namespace bulkhead::probe {

struct Command {
  const char* name;
  int arguments_min;
  int arguments_max;
  // Returns the exit code, or does not return. `argv` holds what follows the sub-command's name, and ends in null.
  int (*run)(int argc, char** argv);
};

// Prints `ok` and the text (printf's form) on one line; returns 0. Control characters are shown as \xNN.
[[gnu::format(printf, 1, 2)]] int Ok(const char* format, ...);
// Prints `error ERRNONAME`; returns 1.
int Error(int error);
// The result of a system call: Ok("%ld") or Error(errno).
int OkOrError(long result);
// A whole, small file of /proc. Returns its length, or -1 with errno set.
ssize_t Slurp(const char* path, char* buffer, size_t size);
// A number in decimal, octal (0...) or hexadecimal (0x...); anything else ends the program with exit code 2.
long Number(const char* text);

extern const Command kFileCommands[];     // probe.cc; each list ends with an entry whose name is null
extern const Command kProcessCommands[];  // probe_process.cc
extern const Command kTreeCommands[];     // probe_tree.cc

}  // namespace bulkhead::probe

#endif  // BULKHEAD_TESTS_PROGRAMS_PROBE_H_
