// A policy and a ceiling, with a line "---" between them: under the ceiling nothing is granted that it doesn't grant or
// that the policy doesn't ask for, and once more changes nothing.
#include <cstddef>
#include <cstdint>
#include <string>

#include "bulkhead/policy/parse.h"
#include "tests/fuzz/policy/fuzz.h"
#include "tests/policy/no_more.h"

using namespace bulkhead::policy;  // NOLINT(google-build-using-namespace): a program of one function

namespace {

void DemandNoMore(const PolicyFields& left, const PolicyFields& of, bool of_is_ceiling) {
  const std::string what = NoMore(left, of, of_is_ceiling).What();
  Demand(what.empty(), what.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find("\n---\n");
  if (cut == std::string::npos) return 0;
  // One name, since ${cache} is called after it: a ceiling's is the policy's.
  const PolicyText policy{"policy.json", text.substr(0, cut)}, ceiling{"policy.json", text.substr(cut + 5)};
  ParseOptions options = FuzzHost();
  options.record_origins = true;
  const auto parse = [&options](const PolicyText& of) { return ParseFields(of, options, Unenforced::kAccept); };
  const absl::StatusOr<PolicyFields> alone = parse(policy), other = parse(ceiling);
  options.ceilings = {ceiling};
  const absl::StatusOr<PolicyFields> once = parse(policy);
  if (!once.ok()) return 0;
  Demand(alone.ok() && other.ok(), "a policy under a ceiling is one, and so is the ceiling");
  DemandNoMore(*once, *alone, /*of_is_ceiling=*/false);
  DemandNoMore(*once, *other, /*of_is_ceiling=*/true);
  options.ceilings = {ceiling, ceiling};
  const absl::StatusOr<PolicyFields> twice = parse(policy);
  Demand(twice.ok(), "twice is once");
  DemandNoMore(*twice, *once, /*of_is_ceiling=*/false);
  DemandNoMore(*once, *twice, /*of_is_ceiling=*/false);
  Demand(twice->filesystem.ro == once->filesystem.ro && twice->filesystem.rw == once->filesystem.rw &&
             twice->filesystem.rx == once->filesystem.rx,
         "twice is once");
  return 0;
}
