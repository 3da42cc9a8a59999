// Runs the part of classic BPF that the filters are written in, so that a filter can be tested for any architecture and
// any arguments without making the call. kernel_test.cc compares it with the kernel.
#ifndef BULKHEAD_TESTS_LAUNCHER_SECCOMP_BPF_EVALUATOR_H_
#define BULKHEAD_TESTS_LAUNCHER_SECCOMP_BPF_EVALUATOR_H_

#include <linux/seccomp.h>

#include <cstdint>
#include <string>

#include "bulkhead/launcher/seccomp/filters.h"

namespace bulkhead::launcher {

// Empty if the kernel would take the program and every instruction of it can be reached; else what is wrong.
std::string FindFault(FilterView program);

// The value that the program returns (SECCOMP_RET_*). The program must be free of faults.
std::uint32_t Evaluate(FilterView program, const seccomp_data& data);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_SECCOMP_BPF_EVALUATOR_H_
