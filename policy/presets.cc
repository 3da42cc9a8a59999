#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "bulkhead/policy/policy.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

struct Preset {
  absl::string_view name;
  absl::string_view text;
};
// {"default", R"json(...)json"}, ...: made of presets/*.json by the genrule of BUILD.bazel.
constexpr Preset kPresets[] = {
#include "bulkhead/policy/presets.inc"
};

// "python3", "python3.11", "pypy3.10" ...
bool IsPython(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "python") && !absl::ConsumePrefix(&name, "pypy")) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.'; });
}

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

absl::StatusOr<std::string> PresetText(absl::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return std::string(preset.text);
  }
  return absl::NotFoundError(
      absl::StrCat("there is no preset ", Quote(name), "; there are ", absl::StrJoin(PresetNames(), ", ")));
}

std::string WhyPresetIsRefused(absl::string_view name) {
  if (name != "docker") return "";
  return "preset:docker: docker, podman and nerdctl have a container engine start the server, outside of this jail: no "
         "line "
         "of a policy would bind it. Start what the image holds without them, or start the container without bulkhead "
         "and "
         "with the engine's own walls (bulkhead presets docker has an example)";
}

std::string PresetForCommand(absl::string_view command) {
  const absl::string_view name = command.substr(command.rfind('/') + 1);
  if (name == "node" || name == "nodejs") return "node";  // Debian's older name
  if (name == "npx") return "npx";
  if (name == "uvx" || name == "uv") return "uvx";
  if (name == "docker" || name == "podman" || name == "nerdctl") return "docker";
  return IsPython(name) ? "python" : "default";
}

}  // namespace bulkhead::policy
