#include "bulkhead/policy/grammar.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

// The table. Ranges: what makes sense, never what a kernel allows, except where it is named.

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 50;
constexpr std::uint64_t kSecond = 1000, kHour = 3600 * kSecond, kYear = 8760 * kHour;
constexpr std::uint64_t kPidMax = 4194304;        // proc(5), pid_max
constexpr std::uint64_t kOpenFilesMax = 1048576;  // proc(5), nr_open
constexpr std::uint64_t kManyMax = 1000000;

constexpr absl::string_view kTiers[] = {"A", "B", "C"};
constexpr absl::string_view kBatchFiles[] = {"refuse", "checked"};
constexpr absl::string_view kHomes[] = {"private", "none", "ro", "rw"};
constexpr absl::string_view kTmps[] = {"private", "host"};
constexpr absl::string_view kNetworkModes[] = {"none", "allowlist", "host"};
constexpr absl::string_view kProfiles[] = {"baseline", "strict"};
constexpr absl::string_view kStderrModes[] = {"inherit", "discard"};

constexpr Field Scalar(absl::string_view key, Form form) { return {key, Shape::kScalar, form}; }
constexpr Field Choice(absl::string_view key, absl::Span<const absl::string_view> choices) {
  return {key, Shape::kScalar, Form::kChoice, choices};
}
constexpr Field Range(absl::string_view key, Form form, std::uint64_t min, std::uint64_t max) {
  return {key, Shape::kScalar, form, {}, min, max};
}
constexpr Field List(absl::string_view key, Form form, absl::Span<const Field> object = {}) {
  return {key, Shape::kList, form, {}, 0, 0, Form::kEnvName, object};
}
constexpr Field Map(absl::string_view key, Form key_form, Form form, absl::Span<const Field> object = {}) {
  return {key, Shape::kMap, form, {}, 0, 0, key_form, object};
}
constexpr Field Object(absl::string_view key, absl::Span<const Field> fields) {
  return {key, Shape::kObject, Form::kChoice, {}, 0, 0, Form::kEnvName, fields};
}

constexpr Field kArgs[] = {Range("max", Form::kCount, 0, 65536), List("deny", Form::kGlob), List("allow", Form::kGlob)};
constexpr Field kCommand[] = {List("allow", Form::kCommand), Map("sha256", Form::kPath, Form::kDigest),
                              Object("args", kArgs), Choice("batch_files", kBatchFiles)};
constexpr Field kCwd[] = {Scalar("default", Form::kPath), List("allow", Form::kPath)};
constexpr Field kSecret[] = {Scalar("env", Form::kEnvName), Scalar("file", Form::kPath),
                             Range("fd", Form::kCount, 3, kOpenFilesMax)};
constexpr Field kEnv[] = {List("inherit", Form::kEnvGlob), Map("set", Form::kEnvName, Form::kEnvValue),
                          Map("secret", Form::kEnvName, Form::kSecret, kSecret)};
// The first field of such an object must be there.
constexpr Field kGrant[] = {Scalar("path", Form::kPath), Scalar("optional", Form::kFlag)};
constexpr Field kRuntimeGrant[] = {Scalar("path", Form::kRuntimePath), Scalar("optional", Form::kFlag)};
constexpr Field kFilesystem[] = {List("rx", Form::kRuntimePath, kRuntimeGrant),
                                 List("ro", Form::kPath, kGrant),
                                 List("rw", Form::kPath, kGrant),
                                 List("protect", Form::kPath),
                                 List("hide", Form::kPath),
                                 Choice("home", kHomes),
                                 Choice("tmp", kTmps)};
constexpr Field kNetwork[] = {Choice("mode", kNetworkModes), List("allow", Form::kHostPort)};
constexpr Field kSyscalls[] = {Choice("profile", kProfiles), List("allow", Form::kAllowedSyscall),
                               List("deny", Form::kDeniedSyscall)};
constexpr Field kLimits[] = {
    Range("memory", Form::kSize, 1 << 20, kBytesMax), Range("processes", Form::kCount, 1, kPidMax),
    Range("open_files", Form::kCount, 3, kOpenFilesMax), Range("file_size", Form::kSize, 1, kBytesMax),
    // RLIMIT_CPU counts whole seconds: getrlimit(2).
    Range("cpu_time", Form::kDuration, kSecond, kYear)};
constexpr Field kMessages[] = {Range("max_message_bytes", Form::kSize, 1 << 10, kBytesMax),
                               Range("max_junk_lines", Form::kCount, 0, kManyMax),
                               Range("max_queued_bytes", Form::kSize, 1 << 10, kBytesMax)};
constexpr Field kTimeouts[] = {Range("probe", Form::kDuration, 1, kYear), Range("start", Form::kDuration, 1, kYear),
                               Range("request", Form::kDuration, 1, kYear),
                               Range("stdin_grace", Form::kDuration, 0, kHour),
                               Range("term_grace", Form::kDuration, 0, kHour)};
constexpr Field kRestart[] = {
    Range("max_in_a_row", Form::kCount, 0, kManyMax), Range("backoff_initial", Form::kDuration, 1, kYear),
    Range("backoff_max", Form::kDuration, 1, kYear), Range("healthy_after", Form::kDuration, 0, kYear)};
constexpr Field kStderr[] = {Scalar("file", Form::kPath)};

constexpr Field kPolicy[] = {Choice("require", kTiers),
                             Scalar("user", Form::kUser),
                             Object("command", kCommand),
                             Object("cwd", kCwd),
                             Object("env", kEnv),
                             Object("filesystem", kFilesystem),
                             Object("network", kNetwork),
                             Object("syscalls", kSyscalls),
                             Object("limits", kLimits),
                             Object("messages", kMessages),
                             Object("timeouts", kTimeouts),
                             Object("restart", kRestart),
                             {"stderr", Shape::kScalar, Form::kChoice, kStderrModes, 0, 0, Form::kEnvName, kStderr}};

constexpr Field kHead[] = {Scalar("version", Form::kVersion), List("extends", Form::kExtends),
                           Object("without", kPolicy)};

// What is known but has no mechanism yet: the field, and the value if only that one has none. Its form is checked all
// the same. To enforce one, build the mechanism and take its line away.
struct NotYet {
  absl::string_view pointer;
  absl::string_view value;
};
constexpr NotYet kNotEnforcedYet[] = {
    {"/network/mode", "allowlist"},
    {"/network/allow", ""},
};

using Fields = absl::Span<const Field>;

const Field* Find(Fields fields, absl::string_view key) {
  const auto found = std::find_if(fields.begin(), fields.end(), [key](const Field& field) { return field.key == key; });
  return found == fields.end() ? nullptr : &*found;
}

// Where else in a policy `key` belongs: "/filesystem/rw". Empty if nowhere.
std::string PlaceOf(absl::string_view key) {
  for (const Field& field : kPolicy) {
    if (field.key == key) return absl::StrCat("/", key);
    if (field.shape == Shape::kObject && Find(field.fields, key) != nullptr) {
      return absl::StrCat("/", field.key, "/", key);
    }
  }
  return "";
}

class Checker {
 public:
  Checker(Platform platform, Unenforced unenforced, Mistakes& mistakes)
      : platform_(platform), unenforced_(unenforced), mistakes_(mistakes) {}

  void CheckRoot(JsonValue& root) {
    if (!CheckType(root, JsonValue::Type::kObject, "write {\"version\": 1, ...}")) return;
    if (root.Member("version") == nullptr) {
      mistakes_.Add(*root.file, root.place, "/version", "is missing; write \"version\": 1");
    }
    const auto within = Here();
    for (JsonValue& member : root.children) {
      member.within = within;
      const Field* field = Find(kHead, member.key);
      if (field == nullptr) field = Find(kPolicy, member.key);
      in_without_ = member.key == "without";
      CheckMember(member, field, kHead, kPolicy);
    }
  }

 private:
  // Appends a token to pointer_ for as long as it lives.
  class Within {
   public:
    Within(std::string& pointer, absl::string_view token) : pointer_(pointer), before_(pointer.size()) {
      absl::StrAppend(&pointer_, "/", token);
    }
    ~Within() { pointer_.resize(before_); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    std::string& pointer_;
    const std::size_t before_;
  };

  static std::vector<absl::string_view> AllKeys(Fields a, Fields b) {
    std::vector<absl::string_view> keys;
    for (const Field& field : a) keys.push_back(field.key);
    for (const Field& field : b) keys.push_back(field.key);
    return keys;
  }

  std::shared_ptr<const std::string> Here() const { return std::make_shared<const std::string>(pointer_); }

  void Add(const JsonValue& value, absl::string_view what) { mistakes_.Add(*value.file, value.place, pointer_, what); }

  bool CheckType(const JsonValue& value, JsonValue::Type type, absl::string_view help) {
    if (value.type == type) return true;
    Add(value, absl::StrCat("must be ", TypeName(type), ", not ", TypeName(value.type), "; ", help));
    return false;
  }

  // `field` is null when none of `fields` and `more_fields` has the member's name.
  void CheckMember(JsonValue& member, const Field* field, Fields fields, Fields more_fields = {}) {
    Within token(pointer_, PointerToken(member.key));
    if (field != nullptr) return CheckField(member, *field);
    const std::vector<absl::string_view> known = AllKeys(fields, more_fields);
    std::string help;
    const std::string near_miss = NearMiss(member.key, known);
    const std::string place = PlaceOf(member.key);
    if (!place.empty()) {
      help = absl::StrCat("it belongs in ", place);
    } else if (!near_miss.empty()) {
      help = absl::StrCat("did you mean \"", near_miss, "\"?");
    } else {
      help = absl::StrCat("there are ", absl::StrJoin(known, ", "));
    }
    mistakes_.Add(*member.file, member.key_place, pointer_, absl::StrCat("is not known here; ", help));
  }

  void CheckObject(JsonValue& value, Fields fields) {
    if (!CheckType(value, JsonValue::Type::kObject, "write {...}")) return;
    const auto within = Here();
    for (JsonValue& member : value.children) {
      member.within = within;
      CheckMember(member, Find(fields, member.key), fields);
    }
  }

  void CheckField(JsonValue& value, const Field& field) {
    const std::size_t before = mistakes_.count();
    switch (field.shape) {
      case Shape::kScalar:
        CheckValue(value, field);
        break;
      case Shape::kList:
        if (!CheckType(value, JsonValue::Type::kArray, "write [...], also around a single one")) break;
        if (!CheckLength(value)) break;
        CheckItems(value, field);
        break;
      case Shape::kMap:
        CheckMap(value, field);
        break;
      case Shape::kObject:
        CheckObject(value, field.fields);
        return;
    }
    if (mistakes_.count() == before) CheckEnforced(value);
  }

  void CheckItems(JsonValue& value, const Field& field) {
    const auto within = Here();
    for (JsonValue& item : value.children) {
      item.within = within;
      Within token(pointer_, absl::AlphaNum(item.index).Piece());
      CheckValue(item, field);
    }
  }

  bool CheckLength(const JsonValue& value) {
    if (value.children.size() <= kEntriesMax) return true;
    Add(value, absl::StrCat("has more than ", kEntriesMax, " entries; name a folder or a pattern for many"));
    return false;
  }

  void CheckMap(JsonValue& value, const Field& field) {
    if (!CheckType(value, JsonValue::Type::kObject, "write {\"NAME\": ...}") || !CheckLength(value)) return;
    const auto within = Here();
    for (JsonValue& member : value.children) {
      member.within = within;
      Within token(pointer_, PointerToken(member.key));
      const std::string wrong = CheckText(field.key_form, member.key, platform_);
      if (!wrong.empty()) mistakes_.Add(*member.file, member.key_place, pointer_, wrong);
      CheckValue(member, field);
    }
  }

  // An empty list or object asks for nothing, so there is nothing to refuse.
  void CheckEnforced(const JsonValue& value) {
    const bool is_container = value.type == JsonValue::Type::kArray || value.type == JsonValue::Type::kObject;
    if (in_without_ || unenforced_ == Unenforced::kAccept || (is_container && value.children.empty())) return;
    for (const NotYet& not_yet : kNotEnforcedYet) {
      if (not_yet.pointer != pointer_) continue;
      if (not_yet.value.empty()) return Add(value, "is not enforced yet; leave it out");
      if (not_yet.value == value.string)
        Add(value, absl::StrCat(Quote(value.string), " is not enforced yet; write another"));
    }
  }

  void CheckValue(JsonValue& value, const Field& field) {
    if (value.type == JsonValue::Type::kObject && !field.fields.empty()) return CheckScalarObject(value, field);
    switch (field.form) {
      case Form::kFlag:
        CheckType(value, JsonValue::Type::kBoolean, "write true or false");
        return;
      case Form::kVersion:
        if (!CheckType(value, JsonValue::Type::kInteger, "write 1")) return;
        if (value.integer != 1) Add(value, absl::StrCat(value.integer, " is not known; this bulkhead reads version 1"));
        return;
      case Form::kCount:
        return CheckCount(value, field);
      case Form::kSize:
      case Form::kDuration:
        return CheckQuantity(value, field);
      case Form::kSecret:
        CheckType(value, JsonValue::Type::kObject, "write {\"env\": ...}, {\"file\": ...} or {\"fd\": ...}");
        return;
      case Form::kChoice:
        return CheckChoice(value, field);
      default:
        if (!CheckType(value, JsonValue::Type::kString, "write \"...\"")) return;
        const std::string wrong = CheckText(field.form, value.string, platform_);
        if (!wrong.empty()) Add(value, wrong);
    }
  }

  void CheckScalarObject(JsonValue& value, const Field& field) {
    const std::size_t before = mistakes_.count();
    CheckObject(value, field.fields);
    if (mistakes_.count() != before) return;
    if (field.form == Form::kSecret) {
      if (value.children.size() != 1) Add(value, "must say one of env, file and fd; write {\"env\": \"NAME\"}");
    } else if (value.Member(field.fields.front().key) == nullptr) {
      Add(value,
          absl::StrCat("has no \"", field.fields.front().key, "\"; write {\"", field.fields.front().key, "\": ...}"));
    }
  }

  void CheckCount(const JsonValue& value, const Field& field) {
    const auto range = [&field] { return absl::StrCat("a whole number from ", field.min, " to ", field.max); };
    if (value.type == JsonValue::Type::kInteger) {
      if (value.integer < field.min || value.integer > field.max) {
        Add(value, absl::StrCat(value.integer, " is out of range; write ", range()));
      }
    } else if (value.type == JsonValue::Type::kNumber) {
      Add(value, absl::StrCat("is not a whole number; write ", range()));
    } else {
      CheckType(value, JsonValue::Type::kInteger, absl::StrCat("write ", range(), ", without quotes"));
    }
  }

  void CheckQuantity(const JsonValue& value, const Field& field) {
    const bool is_size = field.form == Form::kSize;
    const auto text = [is_size](std::uint64_t n) { return is_size ? SizeText(n) : DurationText(n); };
    const absl::string_view help = is_size ? "write a whole number with B, KiB, MiB or GiB, such as \"512MiB\""
                                           : "write a whole number with ms, s, m or h, such as \"30s\"";
    if (!CheckType(value, JsonValue::Type::kString, help)) return;
    const auto quantity = is_size ? ParseSize(value.string) : ParseDurationMs(value.string);
    if (!quantity.has_value()) {
      Add(value, absl::StrCat(Quote(value.string), " is not a ", is_size ? "size" : "duration", "; ", help));
    } else if (*quantity < field.min || *quantity > field.max) {
      Add(value, absl::StrCat(Quote(value.string), " is out of range; write one from ", text(field.min), " to ",
                              text(field.max)));
    }
  }

  void CheckChoice(const JsonValue& value, const Field& field) {
    const auto& choices = field.choices;
    if (value.type == JsonValue::Type::kString &&
        std::find(choices.begin(), choices.end(), value.string) != choices.end()) {
      return;
    }
    const std::string all = absl::StrCat("one of ", absl::StrJoin(choices, ", "));
    if (!CheckType(value, JsonValue::Type::kString, absl::StrCat("write ", all))) return;
    const std::string near_miss = NearMiss(value.string, {choices.begin(), choices.end()});
    Add(value,
        absl::StrCat(Quote(value.string), " is not ", all, "; ",
                     near_miss.empty() ? "write one of these" : absl::StrCat("did you mean \"", near_miss, "\"?")));
  }

  const Platform platform_;
  const Unenforced unenforced_;
  Mistakes& mistakes_;
  std::string pointer_;
  bool in_without_ = false;
};

}  // namespace

absl::Span<const Field> PolicyFieldTable() { return kPolicy; }

void CheckGrammar(JsonValue& root, Platform platform, Unenforced unenforced, Mistakes& mistakes) {
  Checker(platform, unenforced, mistakes).CheckRoot(root);
}

}  // namespace bulkhead::policy
