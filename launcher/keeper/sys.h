// Raw system calls for the freestanding keeper: no libc, no errno, no start-up code. A result from -4095 to -1 is minus
// the error. Also the few structures and numbers that libc's headers would give, taken from the kernel's uapi headers.
#ifndef BULKHEAD_LAUNCHER_KEEPER_SYS_H_
#define BULKHEAD_LAUNCHER_KEEPER_SYS_H_

#include <asm/unistd.h>
#include <linux/errno.h>
#include <stddef.h>
#include <stdint.h>

namespace bulkhead::launcher::keeper {

#if defined(__x86_64__)
inline long RawCall(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long RawCall(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "the keeper knows x86-64 and aarch64"
#endif

template <typename T>
inline long Word(T value) {
  return static_cast<long>(value);
}
template <typename T>
inline long Word(T* value) {
  return reinterpret_cast<long>(value);
}
inline long Word(decltype(nullptr)) { return 0; }

template <typename A = long, typename B = long, typename C = long, typename D = long, typename E = long,
          typename F = long>
inline long Call(long number, A a = {}, B b = {}, C c = {}, D d = {}, E e = {}, F f = {}) {
  return RawCall(number, Word(a), Word(b), Word(c), Word(d), Word(e), Word(f));
}

inline bool IsError(long result) { return result < 0 && result >= -4095; }

// Starts `entry` in a new process on `stack_top`, sharing memory. The parent gets the pid; the child never returns.
// Flags and order of clone(2) differ by architecture, hence assembly. `pidfd` may be null.
extern "C" long BulkheadClone(unsigned long flags, void* stack_top, int* pidfd, void (*entry)());

inline constexpr int kAtFdCwd = -100;
inline constexpr int kAtEmptyPath = 0x1000;
inline constexpr int kAtRecursive = 0x8000;
inline constexpr int kAtRemoveDir = 0x200;
inline constexpr int kAtSymlinkNoFollow = 0x100;

inline constexpr int kReadOnly = 0, kWriteOnly = 1, kCreate = 0100, kExclusive = 0200, kNonBlock = 04000;
inline constexpr int kCloseOnExec = 02000000, kPathOnly = 010000000;
#if defined(__aarch64__)
inline constexpr int kDirectory = 040000, kNoFollow = 0100000;
#else
inline constexpr int kDirectory = 0200000, kNoFollow = 0400000;
#endif

inline constexpr int kRegularFile = 0100000;  // S_IFREG

inline constexpr short kPollIn = 1, kPollPri = 2, kPollOut = 4, kPollErr = 8, kPollHup = 16, kPollRdHup = 0x2000;
struct PollFd {
  int fd;
  short events, revents;
};
struct TimeSpec {
  long seconds, nanoseconds;
};
struct TimeVal {
  long seconds, microseconds;
};
struct ResourceUsage {
  TimeVal user, system;
  long max_resident_kib;
  long unused[13];
};

inline constexpr int kSigHup = 1, kSigInt = 2, kSigQuit = 3, kSigKill = 9, kSigTerm = 15, kSigChld = 17, kSigCont = 18;
inline constexpr uint64_t SignalBit(int signal) { return 1ull << (signal - 1); }
// struct sigaction of the kernel, all fields zero: the default disposition. Large enough for both architectures.
struct DefaultAction {
  unsigned long words[4];
};

inline constexpr int kWaitNoHang = 1;

inline void Close(long fd) { Call(__NR_close, fd); }

}  // namespace bulkhead::launcher::keeper

#endif  // BULKHEAD_LAUNCHER_KEEPER_SYS_H_
