// ValidateJson agrees with nlohmann_json, but for what that is known to refuse or to overlook; and no reader minds any
// bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "bulkhead/jsonrpc/json_text.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/jsonrpc/check.h"

namespace bulkhead::jsonrpc {
namespace {

// Says yes to all, and keeps why the text was refused.
struct Judge : nlohmann::json_sax<nlohmann::json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    too_strict = error.id == kNumberOutOfRange || std::string(error.what()).find("surrogate") != std::string::npos;
    return false;
  }

  bool too_strict = false;  // what it refused is valid by RFC 8259
};

void CompareWithNlohmann(absl::string_view text) {
  const JsonError error = ValidateJson(text);
  Judge judge;
  const bool accepted = nlohmann::json::sax_parse(text.begin(), text.end(), &judge);
  if (error == JsonError::kNone) FUZZ_CHECK(accepted || judge.too_strict);
  // It skips a byte order mark, takes a NUL for the end, and has no limit for nesting.
  const bool lenient = text.substr(0, 3) == "\xEF\xBB\xBF" || text.find('\0') != absl::string_view::npos;
  if (accepted && !lenient) FUZZ_CHECK(error == JsonError::kNone || error == JsonError::kTooDeep);
  if (!accepted || error != JsonError::kNone) return;

  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end());
  while (!text.empty() && text.front() <= ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() <= ' ') text.remove_suffix(1);
  FUZZ_CHECK(StringValue(text).has_value() == json.is_string());
  FUZZ_CHECK(NumberValue(text).has_value() == json.is_number());
  if (json.is_string()) FUZZ_CHECK(*StringValue(text) == json.get<std::string>());
  if (json.is_string()) FUZZ_CHECK(JsonStringIs(text.substr(1, text.size() - 2), json.get<std::string>()));
  if (json.is_number()) FUZZ_CHECK(*NumberValue(text) == json.get<double>());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() <= INT64_MAX)
    FUZZ_CHECK(IntegerValue(text) == json.get<std::int64_t>());
  if (json.is_number_integer() && !json.is_number_unsigned())
    FUZZ_CHECK(IntegerValue(text) == json.get<std::int64_t>());
  std::size_t members = 0;
  const bool read = ForEachMember(text, [&members](const JsonMember& member) {
    FUZZ_CHECK(ValidateJson(member.value) == JsonError::kNone);
    ++members;
    return true;
  });
  FUZZ_CHECK(read == json.is_structured());
  if (json.is_array()) FUZZ_CHECK(members == json.size());
  if (json.is_object()) FUZZ_CHECK(members >= json.size());  // a key may come twice
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      const std::optional<absl::string_view> found = FindMember(text, key);
      FUZZ_CHECK(found && nlohmann::json::parse(found->begin(), found->end()) == value);
    }
  }
}

}  // namespace
}  // namespace bulkhead::jsonrpc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace jsonrpc = bulkhead::jsonrpc;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  jsonrpc::CompareWithNlohmann(text);
  // Whatever the bytes are.
  (void)jsonrpc::StringValue(text);
  (void)jsonrpc::NumberValue(text);
  (void)jsonrpc::FindMember(text, "a");
  (void)jsonrpc::JsonStringIs(text, "\xF0\x9F\x98\x80");
  FUZZ_CHECK(!jsonrpc::IntegerValue(text) || jsonrpc::IsIntegral(text));
  const absl::string_view half = text.substr(0, size / 2), rest = text.substr(size / 2);
  FUZZ_CHECK(jsonrpc::JsonStringsEqual(half, rest) == jsonrpc::JsonStringsEqual(rest, half));
  const std::string quoted = jsonrpc::QuoteJson(text);
  FUZZ_CHECK(jsonrpc::ValidateJson(quoted) == jsonrpc::JsonError::kNone);
  FUZZ_CHECK(jsonrpc::QuoteJson(*jsonrpc::StringValue(quoted)) == quoted);
  return 0;
}
