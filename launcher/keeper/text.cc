#include "launcher/keeper/keeper.h"

// The compiler may call these three for loops and structure copies.
extern "C" void* memset(void* target, int value, unsigned long bytes) {
  auto* out = static_cast<volatile unsigned char*>(target);
  while (bytes--) *out++ = static_cast<unsigned char>(value);
  return target;
}
extern "C" void* memcpy(void* __restrict target, const void* __restrict source, unsigned long bytes) {
  auto* out = static_cast<volatile unsigned char*>(target);
  const auto* in = static_cast<const unsigned char*>(source);
  while (bytes--) *out++ = *in++;
  return target;
}

namespace bulkhead::launcher::keeper {

unsigned long Length(const char* text) {
  unsigned long bytes = 0;
  while (text[bytes] != 0) ++bytes;
  return bytes;
}

char* PutText(char* out, const char* text) {
  while (*text != 0) *out++ = *text++;
  return out;
}

char* PutNumber(char* out, uint64_t number) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) *out++ = digits[--count];
  return out;
}

// The errors that launching can meet, in strerror's words. A table of pointers would need relocation or cost memory;
// a switch is code.
const char* ErrorName(int error) {
  switch (error) {
    case EPERM:
      return "operation not permitted (EPERM)";
    case ESRCH:
      return "/proc shows another process id namespace (ESRCH); mount this one's (unshare has --mount-proc)";
    case ENOENT:
      return "no such file or directory (ENOENT)";
    case EIO:
      return "input/output error (EIO)";
    case E2BIG:
      return "argument list too long (E2BIG)";
    case ENOEXEC:
      return "not a program that this machine can run (ENOEXEC)";
    case EAGAIN:
      return "too many processes (EAGAIN); end some, or raise the limit (ulimit -u, or the cgroup's pids.max)";
    case ENOMEM:
      return "out of memory (ENOMEM)";
    case EACCES:
      return "permission denied (EACCES)";
    case EBUSY:
      return "busy (EBUSY)";
    case EEXIST:
      return "exists already (EEXIST)";
    case EXDEV:
      return "leads out of its folder (EXDEV)";
    case ENOTDIR:
      return "not a folder (ENOTDIR)";
    case EISDIR:
      return "is a folder (EISDIR)";
    case EINVAL:
      return "not supported here (EINVAL)";
    case ENFILE:
      return "too many open files on this machine (ENFILE)";
    case EMFILE:
      return "too many open files (EMFILE); raise the limit (ulimit -n)";
    case ETXTBSY:
      return "is being written (ETXTBSY)";
    case ENOSPC:
      return "no space left, or a limit of this machine reached (ENOSPC)";
    case EROFS:
      return "read-only file system (EROFS)";
    case ENAMETOOLONG:
      return "name too long (ENAMETOOLONG)";
    case ENOSYS:
      return "this kernel doesn't have it, or a container's system call filter refuses it (ENOSYS)";
    case ELOOP:
      return "a symbolic link where none may be (ELOOP)";
    case ESTALE:
      return "changed since it was checked (ESTALE)";
    case EUSERS:
      return "too many namespaces (EUSERS)";
    case EOVERFLOW:
      return "an owner that has no mapping (EOVERFLOW)";
    default:
      return nullptr;
  }
}

}  // namespace bulkhead::launcher::keeper
