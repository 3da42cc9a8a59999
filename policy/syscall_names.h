// The kernel's system calls by name, and which of them a policy may name. Names alone: numbers belong to the launcher.
#ifndef BULKHEAD_POLICY_SYSCALL_NAMES_H_
#define BULKHEAD_POLICY_SYSCALL_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bulkhead::policy {

// Those of x86-64 and aarch64 up to Linux 7.0, in alphabetical order.
absl::Span<const absl::string_view> SyscallNames();

// What is wrong with `name` in `syscalls.allow` or `syscalls.deny`, for people; empty if nothing is.
//
// io_uring can't be allowed, since it does what other calls do without being asked about; nor can a call of which only
// some arguments are refused (but for clone and personality), since Bulkhead's own promises stand on these. What starts
// and ends a process can't be denied.
std::string WhyNotAllowed(absl::string_view name);
std::string WhyNotDenied(absl::string_view name);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_SYSCALL_NAMES_H_
