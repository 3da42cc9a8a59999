// A policy and a ceiling, with a line "---" between them: under the ceiling nothing is granted that it doesn't grant or
// that the policy doesn't ask for, and once more changes nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/policy/glob.h"
#include "bulkhead/policy/parse.h"
#include "bulkhead/policy/paths.h"
#include "tests/fuzz/policy/fuzz.h"

using namespace bulkhead::policy;  // NOLINT(google-build-using-namespace): a program of one function

namespace {

bool Holds(const std::vector<PathGrant>& grants, const std::string& path) {
  return std::any_of(grants.begin(), grants.end(), [&path](const PathGrant& grant) {
    return grant.path == path || IsWithin(path, grant.path) || (path == ":runtime" && grant.path == "/");
  });
}

void DemandNoMore(const PolicyFields& left, const PolicyFields& of) {
  const FilesystemRules &less = left.filesystem, &more = of.filesystem;
  for (const PathGrant& grant : less.rw) Demand(Holds(more.rw, grant.path), "no more to write");
  for (const PathGrant& grant : less.rx) Demand(Holds(more.rx, grant.path), "no more to run");
  for (const PathGrant& grant : less.ro) {
    Demand(Holds(more.ro, grant.path) || Holds(more.rw, grant.path) || Holds(more.rx, grant.path), "no more to read");
  }
  Demand(left.network <= of.network, "no more of the network");
  Demand(left.require <= of.require, "no weaker tier");
  Demand(left.user == "auto" || left.user == of.user, "no other user");
  Demand(less.tmp <= more.tmp, "no more of /tmp");
  for (const char* name : {"HOME", "PATH", "A", "AB", "TOKEN"}) {
    Demand(!AnyGlobMatches(left.env.inherit, name) || AnyGlobMatches(of.env.inherit, name),
           "no more of the environment");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find("\n---\n");
  if (cut == std::string::npos) return 0;
  const PolicyText policy{"policy.json", text.substr(0, cut)}, ceiling{"ceiling.json", text.substr(cut + 5)};
  ParseOptions options = FuzzHost();
  const auto parse = [&options](const PolicyText& of) { return ParseFields(of, options, Unenforced::kAccept); };
  const absl::StatusOr<PolicyFields> alone = parse(policy), other = parse(ceiling);
  options.ceilings = {ceiling};
  const absl::StatusOr<PolicyFields> once = parse(policy);
  if (!once.ok()) return 0;
  Demand(alone.ok() && other.ok(), "a policy under a ceiling is one, and so is the ceiling");
  DemandNoMore(*once, *alone);
  DemandNoMore(*once, *other);
  options.ceilings = {ceiling, ceiling};
  const absl::StatusOr<PolicyFields> twice = parse(policy);
  Demand(twice.ok() && twice->filesystem.ro == once->filesystem.ro && twice->filesystem.rw == once->filesystem.rw &&
             twice->filesystem.rx == once->filesystem.rx && twice->env.set == once->env.set &&
             twice->env.inherit == once->env.inherit && twice->network_allow == once->network_allow,
         "twice is once");
  return 0;
}
