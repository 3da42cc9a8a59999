// probe: one tiny program that tests run inside and outside a jail. Each sub-command tries one thing and says how it
// went, in one line and by its exit code:
//
//   ok ...             it worked; exit code 0
//   error ERRNONAME    it did not, with the kernel's reason; exit code 1
//
// A wrong use of probe itself is a line on stderr and exit code 2. Libc only, linked statically, so that it starts
// wherever a program can be started. It changes nothing but what it is told to.
//
// Files and sockets (this file)
//   read FILE                  the first 4096 bytes          write FILE TEXT        opens, creating it, and writes
//   append FILE TEXT           the same, at the end          list DIR               its names, sorted
//   stat FILE                  mode=0644 uid=0 gid=0 size=7 type=file               (a link itself, not its target)
//   readlink FILE              mkdir DIR                     unlink FILE            rename FROM TO
//   symlink TARGET FILE        link FROM TO                  chmod FILE MODE        mknod FILE MODE
//   filesize FILE BYTES        writes that many zeros: ok, or the error of RLIMIT_FSIZE (SIGXFSZ is ignored)
//   connect-tcp HOST PORT      HOST is a numeric address, IPv4 or IPv6
//   connect-unix PATH          connect-abstract NAME         (a name in the abstract namespace)
//   fds                        every open descriptor, one a line: `0 /dev/null`; then `ok COUNT`
//   openfiles N                opens until N or an error: `ok COUNT`, `error EMFILE after COUNT`
//
// Process (probe_process.cc)
//   env NAME                   its value, or ENOENT          environ                all names, sorted
//   argv ARG...                each in brackets: [a][b c]    cwd                    the working folder
//   ids                        uid, gid, groups, capabilities, no_new_privs, seccomp mode, as /proc/self/status says
//   signals                    SigBlk SigIgn SigCgt          limit NAME             soft and hard of RLIMIT_NAME
//   getpid                     pid, ppid, pgid, sid          syscall NUMBER ARG...  the raw call with up to six numbers
//   kill PID SIGNAL            ptrace PID   attaches (PTRACE_SEIZE)
//   readmem PID                16 bytes through /proc/PID/mem
//   vmread PID                 process_vm_readv: whether it may, not what is there
//   exec FILE ARG...           becomes FILE, with ARG... as its arguments
//   exit N                     raise SIGNAL                  memory BYTES           allocates and writes them
//   spin SECONDS               uses that much processor time
//   queue N                    queues N signals to itself: `ok N`, or `error EAGAIN after COUNT`
//   lock FILE                  flock, exclusive, of a file that is open for reading; lease FILE takes a lease, to write
//   files FOLDER N             makes N empty files: `ok N`, or `error ENOSPC after COUNT`
//   forkbomb N                 tries to have N sleeping children: `ok N`, or `error EAGAIN after COUNT`; ends them
//
// Trees (probe_tree.cc). TOKEN is any word that no other process has among its arguments; every process of the tree has
// it, so that a test finds survivors in /proc/*/cmdline, from outside the jail too. Each of these prints one line when
// the whole tree stands, `ready PID...`, with its process ids as it sees them, its own first. "Lives until EOF" means
// that it reads and drops stdin and exits with code 0 at its end.
//   wait TOKEN                 lives until EOF               echo TOKEN             copies stdin to stdout until EOF
//   wrap N COMMAND...          N nested wrappers around it that pass on its exit code but no signal; says nothing
//   itself setsid-helper TOKEN        starts a helper in a session of its own; lives until EOF; the helper for ever
//   daemon TOKEN               starts a double-forked daemon; lives until EOF; the daemon for ever
//   leave TOKEN CODE           starts a child that holds stdin, stdout and stderr; exits with CODE at once
//   ignore-all TOKEN           ignores EOF, TERM, INT and HUP
//   hold-stdio TOKEN           as ignore-all; when it has read a line, opens the host's ends of stdin and stdout by
//                              /proc/self/fd, and says `held`
//   stop-self TOKEN            stops itself (SIGSTOP) after `ready`
//   tree-forever TOKEN         three levels, each in a session of its own, all ignoring everything
//   group-forever TOKEN        the same three in the server's own session and process group
//   runner TOKEN               forks and exits, over and over, in new sessions: a pid is stale when it is read
//   on-stop TOKEN EOFFILE TERMFILE    at EOF makes EOFFILE, at TERM makes TERMFILE, then exits with code 0
//   orphan-eof TOKEN           ignores TERM; at EOF it goes on, writing to stderr as fast as it can
//   listen-tcp TOKEN PORT      listens on 127.0.0.1 (port 0: any) and accepts for ever: `ready PID port=N`
//   listen-unix TOKEN PATH     listen-abstract TOKEN NAME
#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace bulkhead::probe {

int Ok(const char* format, ...) {
  static char text[65536];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fputs("ok", stdout);
  if (text[0] != '\0') fputc(' ', stdout);
  for (const char* p = text; *p != '\0'; ++p) {
    const unsigned char c = static_cast<unsigned char>(*p);
    if (c < 0x20 || c == 0x7f) {
      printf("\\x%02x", c);
    } else {
      fputc(c, stdout);
    }
  }
  fputc('\n', stdout);
  fflush(stdout);
  return 0;
}

int Error(int error) {
  const char* name = strerrorname_np(error);
  printf("error %s\n", name != nullptr ? name : "UNKNOWN");
  fflush(stdout);
  return 1;
}

int OkOrError(long result) { return result < 0 ? Error(errno) : Ok("%ld", result); }

ssize_t Slurp(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t length = 0;
  ssize_t count = 0;
  while (length < size - 1 && (count = read(fd, buffer + length, size - 1 - length)) > 0) length += count;
  const int error = errno;
  close(fd);
  errno = error;
  buffer[length] = '\0';
  return count < 0 ? -1 : static_cast<ssize_t>(length);
}

long Number(const char* text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long value = strtoul(text, &end, 0);
  if (*text == '\0' || *end != '\0' || errno != 0) {
    fprintf(stderr, "probe: \"%s\" is not a number\n", text);
    exit(2);
  }
  return static_cast<long>(value);
}

namespace {

int Read(int, char** argv) {
  char buffer[4097];
  return Slurp(argv[0], buffer, sizeof buffer) < 0 ? Error(errno) : Ok("%s", buffer);
}

int WriteWith(int flags, char** argv) {
  const int fd = open(argv[0], O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (fd < 0) return Error(errno);
  const size_t length = strlen(argv[1]);
  const ssize_t count = write(fd, argv[1], length);
  if (count < 0) return Error(errno);
  return close(fd) < 0 ? Error(errno) : Ok("%zd bytes", count);
}

int Write(int, char** argv) { return WriteWith(O_TRUNC, argv); }
int Append(int, char** argv) { return WriteWith(O_APPEND, argv); }

int List(int, char** argv) {
  dirent** entries = nullptr;
  const int count = scandir(argv[0], &entries, nullptr, alphasort);
  if (count < 0) return Error(errno);
  static char text[65536];
  size_t length = 0;
  for (int i = 0; i < count; ++i) {
    const char* name = entries[i]->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || length + strlen(name) + 2 > sizeof text) continue;
    length += snprintf(text + length, sizeof text - length, "%s%s", length == 0 ? "" : " ", name);
  }
  return Ok("%s", text);
}

const char* TypeName(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "folder";
  if (S_ISLNK(mode)) return "link";
  if (S_ISSOCK(mode)) return "socket";
  if (S_ISFIFO(mode)) return "fifo";
  return S_ISCHR(mode) ? "char" : "block";
}

int Stat(int, char** argv) {
  struct stat info;
  if (lstat(argv[0], &info) < 0) return Error(errno);
  return Ok("mode=%04o uid=%u gid=%u size=%lld type=%s", info.st_mode & 07777, info.st_uid, info.st_gid,
            static_cast<long long>(info.st_size), TypeName(info.st_mode));
}

int ReadLink(int, char** argv) {
  char target[4096];
  const ssize_t length = readlink(argv[0], target, sizeof target - 1);
  if (length < 0) return Error(errno);
  return Ok("%.*s", static_cast<int>(length), target);
}

int MakeFolder(int, char** argv) { return OkOrError(mkdir(argv[0], 0755)); }
int Unlink(int, char** argv) { return OkOrError(unlink(argv[0])); }
int Rename(int, char** argv) { return OkOrError(rename(argv[0], argv[1])); }
int Symlink(int, char** argv) { return OkOrError(symlink(argv[0], argv[1])); }
int Link(int, char** argv) { return OkOrError(link(argv[0], argv[1])); }
int Chmod(int, char** argv) { return OkOrError(chmod(argv[0], static_cast<mode_t>(strtoul(argv[1], nullptr, 8)))); }
int MakeNode(int, char** argv) {
  return OkOrError(mknod(argv[0], static_cast<mode_t>(strtoul(argv[1], nullptr, 8)), 0));
}

int FileSize(int, char** argv) {
  signal(SIGXFSZ, SIG_IGN);  // so that the write fails with EFBIG
  const int fd = open(argv[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Error(errno);
  static const char zeros[65536] = {};
  const long wanted = Number(argv[1]);
  long written = 0;
  while (written < wanted) {
    const size_t chunk = static_cast<size_t>(wanted - written) < sizeof zeros ? wanted - written : sizeof zeros;
    const ssize_t count = write(fd, zeros, chunk);
    if (count < 0) return Error(errno);
    written += count;
  }
  return Ok("%ld bytes", written);
}

int Connect(int family, const sockaddr* address, socklen_t length) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Error(errno);
  return connect(fd, address, length) < 0 ? Error(errno) : Ok("connected");
}

int ConnectTcp(int, char** argv) {
  const in_port_t port = htons(static_cast<in_port_t>(Number(argv[1])));
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = port;
  if (inet_pton(AF_INET, argv[0], &v4.sin_addr) == 1) {
    return Connect(AF_INET, reinterpret_cast<sockaddr*>(&v4), sizeof v4);
  }
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = port;
  if (inet_pton(AF_INET6, argv[0], &v6.sin6_addr) == 1) {
    return Connect(AF_INET6, reinterpret_cast<sockaddr*>(&v6), sizeof v6);
  }
  fprintf(stderr, "probe: \"%s\" is not a numeric address\n", argv[0]);
  return 2;
}

int ConnectUnixAt(const char* name, bool abstract) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(name);
  if (length + 1 > sizeof address.sun_path) return Error(ENAMETOOLONG);
  memcpy(address.sun_path + (abstract ? 1 : 0), name, length);
  return Connect(AF_UNIX, reinterpret_cast<sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length));
}

int ConnectUnix(int, char** argv) { return ConnectUnixAt(argv[0], false); }
int ConnectAbstract(int, char** argv) { return ConnectUnixAt(argv[0], true); }

int Fds(int, char**) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return Error(errno);
  int count = 0;
  while (const dirent* entry = readdir(folder)) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(folder)) continue;
    char target[4096];
    const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    printf("%d %.*s\n", fd, static_cast<int>(length < 0 ? 0 : length), target);
    ++count;
  }
  closedir(folder);
  return Ok("%d", count);
}

int OpenFiles(int, char** argv) {
  const long wanted = Number(argv[0]);
  for (long count = 0; count < wanted; ++count) {
    if (dup(STDIN_FILENO) < 0) {
      printf("error %s after %ld\n", strerrorname_np(errno), count);
      return 1;
    }
  }
  return Ok("%ld", wanted);
}

}  // namespace

const Command kFileCommands[] = {
    {"read", 1, 1, Read},
    {"write", 2, 2, Write},
    {"append", 2, 2, Append},
    {"list", 1, 1, List},
    {"stat", 1, 1, Stat},
    {"readlink", 1, 1, ReadLink},
    {"mkdir", 1, 1, MakeFolder},
    {"unlink", 1, 1, Unlink},
    {"rename", 2, 2, Rename},
    {"symlink", 2, 2, Symlink},
    {"link", 2, 2, Link},
    {"chmod", 2, 2, Chmod},
    {"mknod", 2, 2, MakeNode},
    {"filesize", 2, 2, FileSize},
    {"connect-tcp", 2, 2, ConnectTcp},
    {"connect-unix", 1, 1, ConnectUnix},
    {"connect-abstract", 1, 1, ConnectAbstract},
    {"fds", 0, 0, Fds},
    {"openfiles", 1, 1, OpenFiles},
    {nullptr, 0, 0, nullptr},
};

}  // namespace bulkhead::probe

int main(int argc, char** argv) {
  using bulkhead::probe::Command;
  const Command* const lists[] = {bulkhead::probe::kFileCommands, bulkhead::probe::kProcessCommands,
                                  bulkhead::probe::kTreeCommands};
  for (const Command* command : lists) {
    for (; argc > 1 && command->name != nullptr; ++command) {
      if (strcmp(argv[1], command->name) != 0) continue;
      if (argc - 2 >= command->arguments_min && argc - 2 <= command->arguments_max) {
        return command->run(argc - 2, argv + 2);
      }
      fprintf(stderr, "probe: %s takes %d to %d arguments\n", argv[1], command->arguments_min, command->arguments_max);
      return 2;
    }
  }
  fprintf(stderr, "probe: unknown sub-command \"%s\"; see the head of tests/programs/probe.cc\n",
          argc > 1 ? argv[1] : "");
  return 2;
}
