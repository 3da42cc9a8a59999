#include "bulkhead/policy/json.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/policy.h"
#include "bulkhead/policy/text.h"
#include "nlohmann/json.hpp"

namespace bulkhead::policy {
namespace {

// Tells how far the lexer has read, which is how a value's line is known: nlohmann's events carry no position.
class Reader {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Reader(const char* at, const char** seen) : at_(at), seen_(seen) {}
  const char& operator*() const { return *at_; }
  Reader& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  Reader operator++(int) {
    const Reader before = *this;
    ++*this;
    return before;
  }
  friend bool operator!=(const Reader& a, const Reader& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Builds the tree from nlohmann's events. Returning false ends the parse. Nothing here recurses.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const std::string& file, absl::string_view text, Mistakes& mistakes)
      : file_(file), text_(text), mistakes_(mistakes), seen_(text.data()), counted_(text.data()) {}

  const char** seen() { return &seen_; }
  JsonValue TakeRoot() { return std::move(root_); }

  bool null() override { return Place(JsonValue::Type::kNull) != nullptr; }
  bool boolean(bool value) override {
    JsonValue* placed = Place(JsonValue::Type::kBoolean);
    if (placed != nullptr) placed->boolean = value;
    return placed != nullptr;
  }
  bool number_integer(number_integer_t) override { return Place(JsonValue::Type::kNumber) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override {
    JsonValue* placed = Place(JsonValue::Type::kInteger);
    if (placed != nullptr) placed->integer = value;
    return placed != nullptr;
  }
  bool number_float(number_float_t, const string_t&) override { return Place(JsonValue::Type::kNumber) != nullptr; }
  bool string(string_t& value) override {
    JsonValue* placed = Place(JsonValue::Type::kString);
    if (placed == nullptr) return false;
    placed->string = std::move(value);
    if (absl::StrContains(placed->string, '\0')) {
      std::string pointer = Pointer();
      if (!open_.empty()) AppendToken(*open_.back(), *placed, &pointer);
      mistakes_.Add(file_, placed->line, pointer, "holds a NUL character; take it out");
    }
    return true;
  }
  bool binary(binary_t&) override { return false; }  // not JSON
  bool start_object(std::size_t) override { return Open(JsonValue::Type::kObject); }
  bool start_array(std::size_t) override { return Open(JsonValue::Type::kArray); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool key(string_t& value) override {
    key_ = std::move(value);
    key_line_ = Line();
    if (absl::StrContains(key_, '\0')) Add(key_line_, "a key holds a NUL character; take it out");
    return true;
  }

  bool end_object() override {
    std::vector<const JsonValue*> members;
    for (const JsonValue& member : open_.back()->children) members.push_back(&member);
    std::stable_sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
    for (std::size_t i = 1; i < members.size(); ++i) {
      if (members[i]->key != members[i - 1]->key) continue;
      mistakes_.Add(file_, members[i]->key_line, absl::StrCat(Pointer(), "/", PointerToken(members[i]->key)),
                    absl::StrCat("is there twice, first in line ", members[i - 1]->key_line, "; take one away"));
    }
    open_.pop_back();
    return true;
  }

  // nlohmann's sentence is "[...] parse error at line 1, column 2: syntax error while parsing value - invalid literal;
  // last read: 'x'; expected ...". What was last read is left out: it may be part of an environment value.
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    std::string reason = error.what();
    for (const absl::string_view lead : {"] ", "syntax error while parsing "}) {
      const std::size_t at = reason.find(lead.data(), 0, lead.size());
      if (at != std::string::npos) reason.erase(0, at + lead.size());
    }
    const std::size_t last_read = reason.find("; last read: ");
    const std::size_t expected = reason.find("; expected ");
    if (last_read != std::string::npos) {
      reason.erase(last_read,
                   expected == std::string::npos || expected < last_read ? std::string::npos : expected - last_read);
    }
    // The number itself is in the message of an overflow.
    if (absl::StrContains(reason, "number overflow")) reason = "value - the number is out of range";
    Add(Line(), absl::StrCat("is not JSON: in ", reason, Hint(reason)));
    return false;
  }

 private:
  static absl::string_view Hint(absl::string_view reason) {
    if (absl::StrContains(reason, "unexpected '}'") || absl::StrContains(reason, "unexpected ']'")) {
      return "; no comma may stand before a closing bracket";
    }
    if (absl::StrContains(reason, "unexpected end of input")) return "; a bracket or a quote is not closed";
    if (absl::StrContains(reason, "expected end of input")) return "; one object is all there may be";
    if (absl::StrContains(reason, "unexpected string literal")) return "; a comma may be missing before it";
    if (absl::StrContains(reason, "invalid literal")) return "; text goes in double quotes";
    return "";
  }

  // The line that what was last read begins in. A number is known to end only by the character after it, which may be a
  // newline; no token ends with one.
  int Line() {
    const char* end = seen_ > text_.data() ? seen_ - 1 : seen_;
    if (end > counted_) {
      line_ += static_cast<int>(std::count(counted_, end, '\n'));
      counted_ = end;
    }
    return line_;
  }

  // Where the innermost open container stands. Costs something, so only for messages.
  std::string Pointer() const {
    std::string pointer;
    for (std::size_t i = 1; i < open_.size(); ++i) AppendToken(*open_[i - 1], *open_[i], &pointer);
    return pointer;
  }
  static void AppendToken(const JsonValue& parent, const JsonValue& child, std::string* pointer) {
    if (parent.type == JsonValue::Type::kArray) {
      absl::StrAppend(pointer, "/", parent.children.size() - 1);
    } else {
      absl::StrAppend(pointer, "/", PointerToken(child.key));
    }
  }
  void Add(int line, absl::string_view what) { mistakes_.Add(file_, line, Pointer(), what); }

  JsonValue* Place(JsonValue::Type type) {
    if (++values_ > kPolicyValuesMax) {
      Add(Line(), absl::StrCat("holds more than ", kPolicyValuesMax, " values; is this the right file?"));
      return nullptr;
    }
    JsonValue* placed = &root_;
    if (!open_.empty()) placed = &open_.back()->children.emplace_back();
    placed->type = type;
    placed->file = &file_;
    placed->line = Line();
    if (!open_.empty() && open_.back()->type == JsonValue::Type::kObject) {
      placed->key = std::move(key_);
      placed->key_line = key_line_;
    }
    return placed;
  }

  bool Open(JsonValue::Type type) {
    if (open_.size() == kPolicyNestingMax) {
      Add(Line(), absl::StrCat("nests deeper than ", kPolicyNestingMax, " levels; no policy needs more than five"));
      return false;
    }
    JsonValue* placed = Place(type);
    // Stays valid: a container gets no further child while its last one is open.
    if (placed != nullptr) open_.push_back(placed);
    return placed != nullptr;
  }

  const std::string& file_;
  absl::string_view text_;
  Mistakes& mistakes_;
  const char* seen_;
  const char* counted_;
  int line_ = 1;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::string key_;
  int key_line_ = 0;
  std::size_t values_ = 0;
};

int LineOf(absl::string_view text, std::size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + at, '\n'));
}

// What nlohmann takes without a word: a NUL ends its input, comments may hold anything.
bool CheckBytes(const std::string& file, absl::string_view text, Mistakes& mistakes) {
  if (text.size() > kPolicyBytesMax) {
    mistakes.Add(file, 1, "", absl::StrCat("is longer than ", kPolicyBytesMax, " bytes; is this the right file?"));
    return false;
  }
  const std::size_t nul = text.find('\0');
  if (nul != absl::string_view::npos) {
    mistakes.Add(file, LineOf(text, nul), "", "holds a NUL byte; save it as UTF-8 text");
    return false;
  }
  const std::size_t invalid = FindInvalidUtf8(text);
  if (invalid != absl::string_view::npos) {
    mistakes.Add(file, LineOf(text, invalid), "", "is not UTF-8; save it as UTF-8 text");
    return false;
  }
  if (text.find_first_not_of(" \t\r\n") == absl::string_view::npos) {
    mistakes.Add(file, 1, "", "is empty; the least that a policy says is {\"version\": 1}");
    return false;
  }
  return true;
}

}  // namespace

const JsonValue* JsonValue::Member(absl::string_view name) const {
  const auto found = std::find_if(children.begin(), children.end(), [name](const auto& c) { return c.key == name; });
  return found == children.end() ? nullptr : &*found;
}

JsonValue* JsonValue::Member(absl::string_view name) {
  return const_cast<JsonValue*>(static_cast<const JsonValue*>(this)->Member(name));
}

absl::string_view TypeName(JsonValue::Type type) {
  switch (type) {
    case JsonValue::Type::kNull:
      return "null";
    case JsonValue::Type::kBoolean:
      return "true or false";
    case JsonValue::Type::kInteger:
    case JsonValue::Type::kNumber:
      return "a number";
    case JsonValue::Type::kString:
      return "text";
    case JsonValue::Type::kArray:
      return "a list";
    case JsonValue::Type::kObject:
      return "an object";
  }
  return "";
}

std::optional<JsonValue> ParseJson(const std::string& file, absl::string_view text, Mistakes& mistakes) {
  if (!CheckBytes(file, text, mistakes)) return std::nullopt;
  TreeBuilder builder(file, text, mistakes);
  const bool parsed =
      nlohmann::json::sax_parse(Reader(text.data(), builder.seen()), Reader(text.data() + text.size(), builder.seen()),
                                &builder, nlohmann::json::input_format_t::json, /*strict=*/true,
                                /*ignore_comments=*/true);
  if (!parsed) return std::nullopt;
  return builder.TakeRoot();
}

}  // namespace bulkhead::policy
