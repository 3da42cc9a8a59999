#include "bulkhead/policy/compose.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

constexpr absl::string_view kPresetPrefix = "preset:";

using Fields = absl::Span<const Field>;
using Type = JsonValue::Type;

const Field* Find(Fields fields, absl::string_view key) {
  const auto found = std::find_if(fields.begin(), fields.end(), [key](const Field& field) { return field.key == key; });
  return found == fields.end() ? nullptr : &*found;
}

// The nesting of both is bounded by the parser.
bool SameTree(const JsonValue& a, const JsonValue& b) {
  if (a.type != b.type || a.boolean != b.boolean || a.integer != b.integer || a.string != b.string ||
      a.children.size() != b.children.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    const JsonValue* other = a.type == Type::kObject ? b.Member(a.children[i].key) : &b.children[i];
    if (other == nullptr || !SameTree(a.children[i], *other)) return false;
  }
  return true;
}

class Composer {
 public:
  Composer(const ComposeOptions& options, std::deque<std::string>& file_names, Mistakes& mistakes)
      : options_(options), file_names_(file_names), mistakes_(mistakes) {}

  std::optional<JsonValue> Load(const PolicyText& text, const std::string& identity) {
    const std::string& name = file_names_.emplace_back(text.name);
    std::optional<JsonValue> root = ParseJson(name, text.text, mistakes_);
    if (!root.has_value()) return std::nullopt;
    const std::size_t before = mistakes_.count();
    CheckGrammar(*root, options_.platform, options_.unenforced, mistakes_);
    // Goes on with what is extended even so: a person wants to see all mistakes.
    JsonValue composed;
    composed.type = Type::kObject;
    open_.push_back(identity);
    if (const JsonValue* extends = root->Member("extends"); extends != nullptr && extends->type == Type::kArray) {
      for (const JsonValue& item : extends->children) {
        if (item.type != Type::kString || !CheckText(Form::kExtends, item.string).empty()) continue;
        std::optional<JsonValue> extended = LoadExtended(item, name, identity);
        if (extended.has_value()) MergeObject(PolicyFieldTable(), composed, *std::move(extended));
      }
    }
    open_.pop_back();
    if (mistakes_.count() != before) return std::nullopt;
    if (const JsonValue* without = root->Member("without")) Subtract(PolicyFieldTable(), composed, *without);
    auto& members = root->children;
    members.erase(std::remove_if(members.begin(), members.end(),
                                 [](const auto& m) { return Find(PolicyFieldTable(), m.key) == nullptr; }),
                  members.end());
    MergeObject(PolicyFieldTable(), composed, *std::move(root));
    if (mistakes_.count() != before) return std::nullopt;
    return composed;
  }

 private:
  void Add(const JsonValue& value, absl::string_view what) {
    mistakes_.Add(*value.file, value.place, value.Pointer(), what);
  }

  std::optional<JsonValue> LoadExtended(const JsonValue& item, const std::string& name, const std::string& identity) {
    const bool is_preset = absl::StartsWith(item.string, kPresetPrefix);
    PolicyText text;
    text.name = is_preset ? item.string
                          : PolicyFileName(JoinPath(FolderOf(name, options_.platform), item.string, options_.platform));
    const std::string target =
        is_preset ? item.string : JoinPath(FolderOf(identity, options_.platform), item.string, options_.platform);
    const std::string quoted = Quote(item.string);
    if (std::find(open_.begin(), open_.end(), target) != open_.end()) {
      Add(item, absl::StrCat(quoted, " is extended by itself (", absl::StrJoin(open_, " > "), " > ", target,
                             "); take one of these away"));
    } else if (open_.size() > static_cast<std::size_t>(kExtendsDepthMax)) {
      Add(item,
          absl::StrCat(quoted, " is more than ", kExtendsDepthMax, " levels deep; extend fewer policies in a row"));
    } else if (file_names_.size() >= files_before_ + kExtendsFilesMax) {
      Add(item, absl::StrCat(quoted, " is one policy too many; no more than ", kExtendsFilesMax, " can make up one"));
    } else if (absl::StatusOr<std::string> read = Read(item, is_preset, target); !read.ok()) {
      Add(item, absl::StrCat(quoted, " can't be extended: ", read.status().message()));
    } else {
      text.text = *std::move(read);
      return Load(text, target);
    }
    return std::nullopt;
  }

  absl::StatusOr<std::string> Read(const JsonValue& item, bool is_preset, const std::string& target) {
    if (is_preset) {
      const absl::string_view preset = absl::string_view(item.string).substr(kPresetPrefix.size());
      const std::string refused = WhyPresetIsRefused(preset);
      if (!refused.empty()) return absl::PermissionDeniedError(refused);
      return PresetText(preset);
    }
    if (!options_.read_file) return absl::FailedPreconditionError("no files are read here; extend a preset");
    if (!absl::StartsWith(target, "/") && !(options_.platform == Platform::kWindows && BeginsWithDrive(target))) {
      return absl::FailedPreconditionError("it is not known where this policy lies; write the full path");
    }
    return options_.read_file(target);
  }

  void MergeObject(Fields fields, JsonValue& base, JsonValue&& over) {
    for (JsonValue& member : over.children) {
      const Field* field = Find(fields, member.key);
      JsonValue* there = base.Member(member.key);
      if (there == nullptr) {
        base.children.push_back(std::move(member));
      } else if (field->shape == Shape::kObject) {
        MergeObject(field->fields, *there, std::move(member));
      } else if (field->shape == Shape::kScalar) {
        *there = std::move(member);
      } else {
        AddEntries(field->shape, *there, std::move(member));
      }
    }
  }

  void AddEntries(Shape shape, JsonValue& base, JsonValue&& over) {
    for (JsonValue& entry : over.children) {
      JsonValue* there = nullptr;
      if (shape == Shape::kMap) {
        there = base.Member(entry.key);
      } else {
        const auto found = std::find_if(base.children.begin(), base.children.end(),
                                        [&entry](const auto& other) { return SameTree(other, entry); });
        if (found != base.children.end()) there = &*found;
      }
      if (there != nullptr) {
        *there = std::move(entry);
      } else if (base.children.size() == kEntriesMax) {
        return Add(entry, absl::StrCat("is one entry too many; no more than ", kEntriesMax, " can come together"));
      } else {
        base.children.push_back(std::move(entry));
      }
    }
  }

  // `without` has the shape of a policy. `base` is what was extended.
  void Subtract(Fields fields, JsonValue& base, const JsonValue& without) {
    for (const JsonValue& member : without.children) {
      const Field* field = Find(fields, member.key);
      JsonValue none;
      JsonValue* there = base.Member(member.key);
      if (there == nullptr) there = &none;
      switch (field->shape) {
        case Shape::kObject:
          Subtract(field->fields, *there, member);
          break;
        case Shape::kScalar:
          if (!SameTree(*there, member)) {
            Add(member, "is not what was extended, so it can't be taken away; look at it with `bulkhead explain`");
          } else {
            base.children.erase(base.children.begin() + (there - base.children.data()));
          }
          break;
        case Shape::kList:
        case Shape::kMap:
          for (const JsonValue& entry : member.children) SubtractEntry(field->shape, *there, entry);
          break;
      }
    }
  }

  void SubtractEntry(Shape shape, JsonValue& base, const JsonValue& entry) {
    const auto same = [&](const JsonValue& other) {
      return shape == Shape::kMap ? other.key == entry.key && SameTree(other, entry)
                                  : GrantPath(other) == GrantPath(entry);
    };
    const auto kept = std::remove_if(base.children.begin(), base.children.end(), same);
    if (kept == base.children.end()) {
      Add(entry, shape == Shape::kMap ? "is not in what was extended with this value, so it can't be taken away"
                                      : "is not in what was extended, so it can't be taken away; take this line out");
    }
    base.children.erase(kept, base.children.end());
  }

  const ComposeOptions& options_;
  std::deque<std::string>& file_names_;
  Mistakes& mistakes_;
  const std::size_t files_before_ = file_names_.size();
  std::vector<std::string> open_;  // the identities of the policies being read, outermost first
};

}  // namespace

std::optional<JsonValue> Compose(const PolicyText& text, const ComposeOptions& options,
                                 std::deque<std::string>& file_names, Mistakes& mistakes) {
  return Composer(options, file_names, mistakes)
      .Load(text, PolicyIdentity(text.name, options.folder, options.platform));
}

std::string PolicyIdentity(const std::string& name, const std::string& folder, Platform platform) {
  if (absl::StartsWith(name, kPresetPrefix)) return name;
  return JoinPath(folder.empty() ? "." : folder, name, platform);
}

const std::string& GrantPath(const JsonValue& grant) {
  return grant.type == Type::kObject ? grant.Member("path")->string : grant.string;
}

bool GrantIsOptional(const JsonValue& grant) {
  const JsonValue* optional = grant.type == Type::kObject ? grant.Member("optional") : nullptr;
  return optional != nullptr && optional->boolean;
}

}  // namespace bulkhead::policy
