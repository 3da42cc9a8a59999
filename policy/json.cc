#include "bulkhead/policy/json.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/policy.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

void AppendUtf8(std::uint32_t code_point, std::string* out) {
  const auto put = [out](std::uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

// One pass over the text, by RFC 8259 and comments. Nothing here recurses: open containers are on a stack of ours.
class Parser {
 public:
  Parser(const std::string& file, absl::string_view text, Mistakes& mistakes)
      : file_(file), text_(text), mistakes_(mistakes) {}

  bool Parse() {
    absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (absl::StartsWith(text_, kByteOrderMark)) at_ = counted_ = kByteOrderMark.size();
    if (!SkipSpace() || !Value()) return false;
    while (!open_.empty()) {
      if (!Next()) return false;
    }
    if (!SkipSpace()) return false;
    return at_ == text_.size() || Fail("after the end, more text; one object is all there may be");
  }

  JsonValue TakeRoot() { return std::move(root_); }

 private:
  bool AtEnd() const { return at_ == text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }  // no NUL is in the text
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }

  // Line and column of at_, which only grows.
  Place Here() {
    for (; counted_ < at_; ++counted_) {
      if (text_[counted_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((text_[counted_] & 0xC0) != 0x80) {
        ++place_.column;
      }
    }
    return place_;
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

  bool Refuse(absl::string_view what) {
    mistakes_.Add(file_, Here(), Pointer(), what);
    return false;
  }
  // What stands there is never repeated: it may be part of an environment value.
  bool Fail(absl::string_view what) { return Refuse(absl::StrCat("is not JSON: ", what)); }
  bool FailAt(std::size_t at, absl::string_view what) {
    at_ = at;
    return Fail(what);
  }
  bool Unexpected(absl::string_view expected) {
    if (AtEnd() && open_.empty())
      return Refuse("is empty but for comments; the least that a policy says is {\"version\": 1}");
    if (AtEnd())
      return Fail(absl::StrCat("the text ends where ", expected, " should be; a bracket or a quote is not closed"));
    const char c = Peek();
    absl::string_view help;
    if (c == '}' || c == ']') {
      help = "; no comma may stand before a closing bracket, and brackets close in pairs";
    } else if (c == '"') {
      help = "; a comma may be missing before it";
    } else if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '\'' || c == '_') {
      help = "; text goes in double quotes";
    }
    return Fail(absl::StrCat("something else stands where ", expected, " should be", help));
  }

  // False if a comment is not one.
  bool SkipSpace() {
    while (!AtEnd()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        ++at_;
      } else if (c != '/') {
        return true;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
        // Editors begin a line there, terminals write over this one: people don't see where the comment ends.
        if (text_.substr(at_, 1) == "\r" && text_.substr(at_, 2) != "\r\n") {
          return Fail("a comment with // holds a carriage return; end lines with LF or CR LF");
        }
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == absl::string_view::npos) return Fail("this comment has no end; close it with */");
        at_ = end + 2;
      } else {
        return Fail("a comment begins with // or /*");
      }
    }
    return true;
  }

  // What follows in the innermost container: its end, or one more value of it.
  bool Next() {
    JsonValue& open = *open_.back();
    const bool is_object = open.type == JsonValue::Type::kObject;
    const absl::string_view end = is_object ? "}" : "]";
    if (!SkipSpace()) return false;
    if (open.children.empty() ? Take(end[0]) : Peek() == end[0]) {
      if (!open.children.empty()) ++at_;
      Close();
      return true;
    }
    if (!open.children.empty()) {
      if (!Take(',')) return Unexpected(absl::StrCat("a comma or a \"", end, "\""));
      if (!SkipSpace()) return false;
    }
    return is_object ? Key() && SkipSpace() && Value() : Value();
  }

  bool Key() {
    if (Peek() != '"') return Unexpected("a name in quotes");
    key_place_ = Here();
    key_.clear();
    if (!String(&key_) || !SkipSpace()) return false;
    if (absl::StrContains(key_, '\0')) {
      mistakes_.Add(file_, key_place_, Pointer(), "a key holds a NUL character; take it out");
    }
    return Take(':') || Unexpected("a colon");
  }

  bool Value() {
    switch (Peek()) {
      case '{':
        return Open(JsonValue::Type::kObject);
      case '[':
        return Open(JsonValue::Type::kArray);
      case '"':
        return StringValue();
      case 't':
        return Word("true", JsonValue::Type::kBoolean, true);
      case 'f':
        return Word("false", JsonValue::Type::kBoolean, false);
      case 'n':
        return Word("null", JsonValue::Type::kNull, false);
      default:
        return Peek() == '-' || IsDigit(Peek()) ? Number() : Unexpected("a value");
    }
  }

  JsonValue* Add(JsonValue::Type type) {
    if (++values_ > kPolicyValuesMax) {
      Refuse(absl::StrCat(
          "holds more than ", kPolicyValuesMax,
          " values; name a folder or a pattern for many, or write some into a file that this one extends"));
      return nullptr;
    }
    JsonValue* added = open_.empty() ? &root_ : &open_.back()->children.emplace_back();
    added->type = type;
    added->file = &file_;
    added->place = Here();
    if (!open_.empty() && open_.back()->type == JsonValue::Type::kObject) {
      added->key = std::move(key_);
      added->key_place = key_place_;
    } else if (!open_.empty()) {
      added->index = static_cast<int>(open_.back()->children.size()) - 1;
    }
    return added;
  }

  bool Open(JsonValue::Type type) {
    if (open_.size() == kPolicyNestingMax) {
      return Refuse(absl::StrCat("nests deeper than ", kPolicyNestingMax, " levels; no policy needs more than five"));
    }
    JsonValue* added = Add(type);
    // Stays valid: a container gets no further child while its last one is open.
    if (added != nullptr) open_.push_back(added);
    ++at_;
    return added != nullptr;
  }

  void Close() {
    JsonValue& closed = *open_.back();
    closed.children.shrink_to_fit();
    if (closed.type == JsonValue::Type::kObject) CheckDuplicates(closed);
    open_.pop_back();
  }

  void CheckDuplicates(const JsonValue& object) {
    if (object.children.size() < 2) return;
    std::vector<const JsonValue*> members;
    members.reserve(object.children.size());
    for (const JsonValue& member : object.children) members.push_back(&member);
    std::stable_sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
    for (std::size_t i = 1; i < members.size(); ++i) {
      if (members[i]->key != members[i - 1]->key) continue;
      mistakes_.Add(file_, members[i]->key_place, absl::StrCat(Pointer(), "/", PointerToken(members[i]->key)),
                    absl::StrCat("is there twice, first in line ", members[i - 1]->key_place.line, "; take one away"));
    }
  }

  bool Word(absl::string_view word, JsonValue::Type type, bool value) {
    if (text_.substr(at_, word.size()) != word) return Unexpected("a value");
    JsonValue* added = Add(type);
    if (added == nullptr) return false;
    added->boolean = value;
    at_ += word.size();
    return true;
  }

  bool StringValue() {
    JsonValue* added = Add(JsonValue::Type::kString);
    if (added == nullptr || !String(&added->string)) return false;
    if (!absl::StrContains(added->string, '\0')) return true;
    std::string pointer = Pointer();
    if (!open_.empty()) AppendToken(*open_.back(), *added, &pointer);
    mistakes_.Add(file_, added->place, pointer, "holds a NUL character; take it out");
    return true;
  }

  // at_ is at the opening quote, and then behind the closing one.
  bool String(std::string* out) {
    const std::size_t start = at_++;
    while (true) {
      const std::size_t run = at_;
      while (!AtEnd() && text_[at_] != '"' && text_[at_] != '\\' && static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      out->append(text_.data() + run, at_ - run);
      if (AtEnd()) return FailAt(start, "this quote is not closed; a bracket or a quote is not closed");
      if (Take('"')) return true;
      if (text_[at_] == '\n')
        return Fail("the line ends before the quote is closed; close it, or write \\n for a new line");
      if (text_[at_] != '\\')
        return Fail("a control character stands in text; write \\t for a tab, \\u00.. for others");
      if (!Escape(out)) return false;
    }
  }

  bool Escape(std::string* out) {
    constexpr absl::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t start = at_++;
    const std::size_t letter = AtEnd() ? absl::string_view::npos : kLetters.find(text_[at_]);
    if (letter != absl::string_view::npos) {
      out->push_back(kMeanings[letter]);
      ++at_;
      return true;
    }
    std::uint32_t unit = 0, low = 0;
    if (!Unit(&unit)) return FailAt(start, "a backslash begins no escape here; write \\\\ for a backslash");
    if (unit >= 0xD800 && unit < 0xDC00) {
      if (!Take('\\') || !Unit(&low) || low < 0xDC00 || low > 0xDFFF)
        return FailAt(start, "half of a surrogate pair; write both");
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit < 0xE000) {
      return FailAt(start, "half of a surrogate pair; write both");
    }
    AppendUtf8(unit, out);
    return true;
  }

  // "u" and four hex digits.
  bool Unit(std::uint32_t* unit) {
    const absl::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
    const bool valid = Peek() == 'u' && digits.size() == 4 && std::all_of(digits.begin(), digits.end(), [](char c) {
                         return absl::ascii_isxdigit(static_cast<unsigned char>(c));
                       });
    if (!valid) return false;
    for (const char c : digits) {
      *unit = *unit << 4 | static_cast<std::uint32_t>(IsDigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10);
    }
    at_ += 5;
    return true;
  }

  bool Number() {
    const std::size_t start = at_;
    const auto digits = [this] {
      const std::size_t first = at_;
      while (IsDigit(Peek())) ++at_;
      return at_ > first;
    };
    JsonValue* added = Add(JsonValue::Type::kNumber);
    if (added == nullptr) return false;
    bool valid = (Take('-'), Take('0') || digits());
    const bool is_whole = text_[start] != '-' && Peek() != '.' && Peek() != 'e' && Peek() != 'E';
    if (Take('.')) valid = valid && digits();
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      valid = valid && digits();
    }
    const bool goes_on = absl::ascii_isalnum(static_cast<unsigned char>(Peek())) || Peek() == '.' || Peek() == '_';
    if (!valid || goes_on)
      return FailAt(start, "a number is written wrong, or text that begins with a digit; text goes in double quotes");
    // What doesn't fit stays a kNumber, which no field takes.
    if (is_whole && absl::SimpleAtoi(text_.substr(start, at_ - start), &added->integer)) {
      added->type = JsonValue::Type::kInteger;
    }
    return true;
  }

  const std::string& file_;
  const absl::string_view text_;
  Mistakes& mistakes_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;  // up to where place_ is right
  Place place_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::string key_;
  Place key_place_;
  std::size_t values_ = 0;
};

// The place of text[at].
Place PlaceOf(absl::string_view text, std::size_t at) {
  const absl::string_view before = text.substr(0, at);
  Place place;
  place.line += static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const absl::string_view line = before.substr(before.rfind('\n') + 1);
  place.column += static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  return place;
}

// The position of the first character that makes editors show the text in another order or in other lines than it is
// read (CVE-2021-42574): U+2028 to U+202E and U+2066 to U+2069. Or npos.
std::size_t FindTurn(absl::string_view text) {
  for (std::size_t at = text.find('\xE2'); at != absl::string_view::npos; at = text.find('\xE2', at + 1)) {
    const absl::string_view rest = text.substr(at, 3);
    if (rest >= "\xE2\x80\xA8" && rest <= "\xE2\x80\xAE") return at;
    if (rest >= "\xE2\x81\xA6" && rest <= "\xE2\x81\xA9") return at;
  }
  return absl::string_view::npos;
}

// Also in comments.
bool CheckBytes(const std::string& file, absl::string_view text, Mistakes& mistakes) {
  if (text.size() > kPolicyBytesMax) {
    mistakes.Add(file, Place(), "",
                 absl::StrCat("is longer than ", kPolicyBytesMax, " bytes; is this the right file?"));
    return false;
  }
  const std::size_t nul = text.find('\0');
  if (nul != absl::string_view::npos) {
    mistakes.Add(file, PlaceOf(text, nul), "", "holds a NUL byte; save it as UTF-8 text");
    return false;
  }
  const std::size_t invalid = FindInvalidUtf8(text);
  if (invalid != absl::string_view::npos) {
    mistakes.Add(file, PlaceOf(text, invalid), "", "is not UTF-8; save it as UTF-8 text");
    return false;
  }
  const std::size_t turn = FindTurn(text);
  if (turn != absl::string_view::npos) {
    mistakes.Add(
        file, PlaceOf(text, turn), "",
        absl::StrCat("holds the character ", Visible(text.substr(turn, 3)),
                     ", with which editors show another text than is read; take it out, or write it as this escape"));
    return false;
  }
  if (text.find_first_not_of(" \t\r\n") == absl::string_view::npos) {
    mistakes.Add(file, Place(), "", "is empty; the least that a policy says is {\"version\": 1}");
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

std::string JsonValue::Pointer() const {
  if (within == nullptr) return "";
  return index < 0 ? absl::StrCat(*within, "/", PointerToken(key)) : absl::StrCat(*within, "/", index);
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
  Parser parser(file, text, mistakes);
  if (!parser.Parse()) return std::nullopt;
  return parser.TakeRoot();
}

}  // namespace bulkhead::policy
