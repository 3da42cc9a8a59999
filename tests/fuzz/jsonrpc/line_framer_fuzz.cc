// However a stream is cut, its lines are the same. The first byte is the limit, the second how pieces are made.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bulkhead/jsonrpc/line_framer.h"
#include "tests/fuzz/jsonrpc/check.h"

namespace {

using bulkhead::jsonrpc::LineFramer;

// The lines, then how it ended.
std::vector<std::string> Frame(absl::string_view bytes, std::size_t line_bytes_max, unsigned seed) {
  LineFramer framer(line_bytes_max);
  std::vector<std::string> lines;
  for (unsigned random = seed; !bytes.empty();) {
    random = random * 1664525 + 1013904223;
    const absl::Span<char> space = framer.Space();
    FUZZ_CHECK(!space.empty());
    std::size_t count = std::min(space.size(), bytes.size());
    if (seed != 0) count = std::min<std::size_t>(count, 1 + (random >> 16) % (1u << seed % 12));
    std::memcpy(space.data(), bytes.data(), count);
    framer.Commit(count);
    bytes.remove_prefix(count);
    for (absl::string_view line;;) {
      const LineFramer::Event event = framer.Next(&line);
      if (event == LineFramer::Event::kNeedsMore) break;
      if (event == LineFramer::Event::kTooLong) {
        FUZZ_CHECK(!framer.Tail());
        lines.emplace_back("too long");
        return lines;
      }
      FUZZ_CHECK(line.size() <= line_bytes_max && line.find('\n') == absl::string_view::npos);
      lines.emplace_back(line);
    }
  }
  const auto tail = framer.Tail();
  lines.emplace_back(tail ? "+" + std::string(*tail) : "");
  FUZZ_CHECK(!framer.Tail());
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t line_bytes_max = data[0] < 128 ? data[0] : 1u << 20;
  const std::vector<std::string> whole = Frame(bytes, line_bytes_max, 0);
  FUZZ_CHECK(whole == Frame(bytes, line_bytes_max, 1u + data[1]));
  FUZZ_CHECK(whole == Frame(bytes, line_bytes_max, 12u * (1u + data[1])));  // byte by byte
  return 0;
}
