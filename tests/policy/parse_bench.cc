// How fast policies are read; not a test, since it measures time. Promised: 20 MB/s of policy text.
//
//   bazel run --config=release //tests/policy:parse_bench
//
// "first" is the first policy of a process, as in `bulkhead run`: most of it is page faults of code and heap. It is
// measured before anything else, so that it has to be run often to be told from noise.
#include <sys/resource.h>

#include <cstdio>
#include <ctime>
#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/policy.h"
#include "tests/policy/dense_policies.h"
#include "tests/policy/large_policy.h"

namespace bulkhead::policy {
namespace {

double Microseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

long Faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

bool Parse(const std::string& name, const std::string& text) {
  ParseOptions options;
  options.variables.workspace = "/home/u/ws";
  options.variables.home = "/home/u";
  options.variables.tmp = "/tmp";
  options.variables.cache_root = "/home/u/.cache/bulkhead";
  options.variables.env = {{"PLACE", "/env/place"}, {"WORD", "word"}};
  const absl::StatusOr<Policy> policy = ParsePolicy({name, text}, options);
  if (!policy.ok()) std::fprintf(stderr, "%s\n", std::string(policy.status().message()).c_str());
  return policy.ok();
}

// Processor time, the best of some.
void Throughput(const char* what, const std::string& text) {
  double best = 0;
  for (int i = 0; i < 20; ++i) {
    const double start = Microseconds(CLOCK_PROCESS_CPUTIME_ID);
    if (!Parse("large.json", text)) return;
    const double speed = static_cast<double>(text.size()) / (Microseconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    if (speed > best) best = speed;
  }
  std::printf("%-10s %7.1f MB/s of %zu bytes\n", what, best, text.size());
}

int Run(const std::string& preset) {
  const std::string name = absl::StrCat("preset:", preset);
  const long faults = Faults();
  const double start = Microseconds(CLOCK_MONOTONIC);
  if (!Parse(name, *PresetText(preset))) return 1;
  const double first = Microseconds(CLOCK_MONOTONIC) - start;
  const long first_faults = Faults() - faults;
  const double again = Microseconds(CLOCK_MONOTONIC);
  Parse(name, *PresetText(preset));
  std::printf("%s: first %.0f us, %ld page faults; again %.0f us\n", name.c_str(), first, first_faults,
              Microseconds(CLOCK_MONOTONIC) - again);
  Throughput("lists", LargePolicy());
  std::string comments = "{\"version\": 1}";
  while (comments.size() < 1000000) comments += "// and more words\n";
  Throughput("comments", comments);
  // Of these only their own bytes are counted, not those of what they extend.
  for (const std::string& name : PresetNames()) {
    if (WhyPresetIsRefused(name).empty()) Throughput(absl::StrCat("preset:", name).c_str(), *PresetText(name));
  }
  // Nothing but short entries: the most work for a byte.
  for (const Dense& dense : DensePolicies()) {
    if (dense.is_policy) Throughput(dense.name.substr(0, 40).c_str(), dense.Text(dense.entries_max));
  }
  // Too small for the promise: what one policy takes, whatever it says.
  Throughput("least", "{\"version\":1}");
  return 0;
}

}  // namespace
}  // namespace bulkhead::policy

int main(int argc, char** argv) { return bulkhead::policy::Run(argc > 1 ? argv[1] : "default"); }
