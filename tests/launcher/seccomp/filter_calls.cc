#include "tests/launcher/seccomp/filter_calls.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/launcher/seccomp/bpf_evaluator.h"
#include "tests/launcher/seccomp/syscall_numbers.h"

namespace bulkhead::launcher {

std::uint32_t AuditArch(Arch arch) { return arch == Arch::kX86_64 ? kAuditX86_64 : kAuditAarch64; }

std::optional<std::uint32_t> NumberOf(const std::string& call, Arch arch) {
  for (const SyscallNumber& row : kSyscallNumbers) {
    if (call != row.name) continue;
    int number = arch == Arch::kX86_64 ? row.x86_64 : row.aarch64;
    if (number < 0) return std::nullopt;
    return static_cast<std::uint32_t>(number);
  }
  std::fprintf(stderr, "no system call is named \"%s\"\n", call.c_str());
  std::abort();
}

std::string Fate(FilterView filter, std::uint32_t audit_arch, std::uint32_t number, const Arguments& arguments) {
  seccomp_data data = {};
  data.nr = static_cast<int>(number);
  data.arch = audit_arch;
  for (std::size_t i = 0; i < arguments.size(); ++i) data.args[i] = arguments[i];
  std::uint32_t value = Evaluate(filter, data);
  if (value == SECCOMP_RET_ALLOW) return "allowed";
  if ((value & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO) return std::to_string(value);
  const char* name = strerrorname_np(static_cast<int>(value & SECCOMP_RET_DATA));
  return name == nullptr ? std::to_string(value) : name;
}

std::string Fate(FilterName filter, Arch arch, std::uint32_t number, const Arguments& arguments) {
  return Fate(FilterFor(filter, arch), AuditArch(arch), number, arguments);
}

}  // namespace bulkhead::launcher
