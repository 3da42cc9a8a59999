// Filters with what a policy's `syscalls.allow` and `syscalls.deny` change. Compiled when they are needed, by the
// compiler that made the built-in ones: a policy without such changes takes those.
#ifndef BULKHEAD_LAUNCHER_SECCOMP_POLICY_FILTERS_H_
#define BULKHEAD_LAUNCHER_SECCOMP_POLICY_FILTERS_H_

#include <deque>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bulkhead/launcher/seccomp/filters.h"
#include "bulkhead/launcher/seccomp/lists.h"

namespace bulkhead::launcher {

// The lists of a set, changed: what is allowed goes from kBaseline and kStrict, whole calls and those refused for some
// arguments alike, and from no other list, since those keep Bulkhead's own promises. What is denied gives EPERM, unless
// a list names another errno. Names are the kernel's, and have passed policy::WhyNotAllowed and WhyNotDenied; one that
// this architecture doesn't have changes nothing.
class PolicyFilter {
 public:
  PolicyFilter(FilterSet set, absl::Span<const std::string> allow, absl::Span<const std::string> deny);
  PolicyFilter(const PolicyFilter&) = delete;
  PolicyFilter& operator=(const PolicyFilter&) = delete;

  // In the order in which filters are installed. They live as long as this.
  const std::vector<FilterList>& lists() const { return lists_; }

  // For explain, each call once, with the errno that it gets.
  std::vector<DeniedCall> Describe() const;

  // For the architecture that this code is compiled for.
  std::vector<BpfInstruction> Compile() const;

 private:
  std::deque<std::string> calls_;  // what `lists_` points into
  std::deque<std::vector<Rule>> rules_;
  std::vector<FilterList> lists_;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_SECCOMP_POLICY_FILTERS_H_
