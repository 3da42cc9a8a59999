// setuidgid UID COMMAND [ARG...]: becomes that user, and the group of the same number, for good, and runs COMMAND.
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const unsigned id = argc > 2 ? static_cast<unsigned>(strtoul(argv[1], nullptr, 10)) : 0;
  if (id == 0) return 64;
  if (setgroups(0, nullptr) == 0 && setgid(id) == 0 && setuid(id) == 0) execvp(argv[2], argv + 2);
  fprintf(stderr, "setuidgid: %s: %s\n", argv[2], strerror(errno));
  return 126;
}
