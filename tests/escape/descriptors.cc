// Attacks by descriptors that the host left open, or gave as stdin, and by the terminal.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "attacker.h"

namespace bulkhead::escape {
namespace {

// The host has three descriptors open without CLOEXEC: a key, its folder, and the root folder.
int Leaked(const char* key) { return atoi(Given(key)); }

int LeakedFile() { return GotIfFdReads(Leaked("leaked_file")); }
int LeakedFolder() { return GotIfFdReads(openat(Leaked("leaked_folder"), "id_test", O_RDONLY | O_CLOEXEC)); }
int LeakedRoot() {
  return GotIfFdReads(openat(Leaked("leaked_root"), Path("home", ".ssh/id_test").c_str() + 1, O_RDONLY | O_CLOEXEC));
}
int FchdirLeaked() {
  if (fchdir(Leaked("leaked_folder")) != 0) return Held(errno);
  return GotIfReads("id_test");
}
int AnyLeaked() {
  for (int fd = 3; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) return Got(std::to_string(fd).c_str());
  }
  return Held(EBADF);
}
// The stage starts it in that folder, by the name /proc/self/fd/N (CVE-2024-21626).
int StartedInDescriptor() { return GotIfReads("id_test"); }
int StartedInDescriptorUp() { return GotIfReads("../.ssh/id_test"); }

// stdin is a file that was opened for reading, or a folder.
int ReopenStdin() { return GotIfWrites(open("/proc/self/fd/0", O_WRONLY | O_CLOEXEC)); }
int OpenBelowStdin() { return GotIfFdReads(openat(0, "id_test", O_RDONLY | O_CLOEXEC)); }
int OpenAboveStdin() { return GotIfFdReads(openat(0, "../.ssh/id_test", O_RDONLY | O_CLOEXEC)); }
int FchdirStdin() {
  if (fchdir(0) != 0) return Held(errno);
  return GotIfReads("id_test");
}
int ChmodBelowStdin() { return GotIf(fchmodat(0, "id_test", 0666, 0) == 0); }

// ---- The terminal: stdin is one, and it controls the host's session.

int PushInput(unsigned long request) {
  const char input = 'x';
  if (ioctl(0, request, &input) == 0) return Got();
  if (errno == EIO && Given("control")[0] == '1') return Untried("TIOCSTI for all (dev.tty.legacy_tiocsti)");
  return Held(errno);
}
int Tiocsti() { return PushInput(TIOCSTI); }
int TiocstiWide() {
  const char input = 'x';
  // Raw: libc may cut it to 32 bits, as the kernel does.
  if (syscall(SYS_ioctl, 0, TIOCSTI | 0x100000000, &input) == 0) return Got();
  if (errno == EIO && Given("control")[0] == '1') return Untried("TIOCSTI for all (dev.tty.legacy_tiocsti)");
  return Held(errno);
}
int Tioclinux() {
  char request[16] = {3};  // what the console would paste
  if (ioctl(0, TIOCLINUX, request) == 0) return Got();
  if (errno == ENOTTY) return Untried("a virtual console (CONFIG_VT)");
  return Held(errno);
}
int SetLineDiscipline() {
  int discipline = 0;  // N_TTY: what it has already
  return GotIf(ioctl(0, TIOCSETD, &discipline) == 0);
}
int OpenControllingTerminal() { return GotIf(open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0); }
int TakeForeground() {
  // As a shell does: then ^C goes to whom we name. To its own group, which changes nothing when it has it.
  return GotIf(tcgetpgrp(0) >= 0);
}
int StealTerminal() {
  if (getsid(0) == getpid()) return GotIf(ioctl(0, TIOCSCTTY, 1) == 0);
  const pid_t session = tcgetsid(0);
  return session == getsid(0) ? Got("it is ours") : Held(errno);
}
int OpenOtherTerminal() { return GotIf(open(Given("other_tty"), O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0); }

}  // namespace

const Attack kDescriptorAttacks[] = {
    {"leaked_file", LeakedFile},
    {"leaked_folder", LeakedFolder},
    {"leaked_root", LeakedRoot},
    {"fchdir_leaked", FchdirLeaked},
    {"any_leaked_descriptor", AnyLeaked},
    {"started_in_descriptor", StartedInDescriptor},
    {"started_in_descriptor_up", StartedInDescriptorUp},
    {"reopen_stdin_for_writing", ReopenStdin},
    {"open_below_stdin", OpenBelowStdin},
    {"open_above_stdin", OpenAboveStdin},
    {"fchdir_stdin", FchdirStdin},
    {"chmod_below_stdin", ChmodBelowStdin},
    {"tiocsti", Tiocsti},
    {"tiocsti_64_bits", TiocstiWide},
    {"tioclinux", Tioclinux},
    {"tiocsetd", SetLineDiscipline},
    {"open_dev_tty", OpenControllingTerminal},
    {"terminal_foreground", TakeForeground},
    {"terminal_session", StealTerminal},
    {"open_other_terminal", OpenOtherTerminal},
    {nullptr, nullptr},
};

}  // namespace bulkhead::escape
