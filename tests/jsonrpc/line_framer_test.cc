// Lines out of bytes, however they are cut; limits, memory and work.
#include "bulkhead/jsonrpc/line_framer.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

// The linker gives LineFramer these (--wrap), so that its work is counted instead of timed. The names are the linker's.
// NOLINTBEGIN(bugprone-reserved-identifier)
std::size_t bytes_searched, bytes_moved, bytes_allocated_max, bytes_given_back;
extern "C" {
void* __real_memchr(const void* bytes, int byte, std::size_t size);
void* __wrap_memchr(const void* bytes, int byte, std::size_t size) {
  void* const found = __real_memchr(bytes, byte, size);
  bytes_searched += found == nullptr
                        ? size
                        : static_cast<std::size_t>(static_cast<char*>(found) - static_cast<const char*>(bytes)) + 1;
  return found;
}
void* __real_memmove(void* to, const void* from, std::size_t size);
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
  bytes_moved += size;
  return __real_memmove(to, from, size);
}
void* __real_malloc(std::size_t size);
void* __wrap_malloc(std::size_t size) {
  bytes_allocated_max = std::max(bytes_allocated_max, size);
  return __real_malloc(size);
}
void* __real_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset);
void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) {
  bytes_allocated_max = std::max(bytes_allocated_max, size);
  return __real_mmap(address, size, protection, flags, fd, offset);
}
int __real_madvise(void* address, std::size_t size, int advice);
int __wrap_madvise(void* address, std::size_t size, int advice) {
  if (advice == MADV_DONTNEED) bytes_given_back += size;
  return __real_madvise(address, size, advice);
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace bulkhead::jsonrpc {
namespace {

using testing::ElementsAre;

// Lines, and how it ended: "+tail", "too long" or "".
using Result = std::pair<std::vector<std::string>, std::string>;

class Feeder {
 public:
  explicit Feeder(std::size_t line_bytes_max) : framer(line_bytes_max) {}

  // False once a line was too long.
  bool Feed(absl::string_view bytes) {
    while (!bytes.empty() && !too_long) {
      const absl::Span<char> space = framer.Space();
      EXPECT_FALSE(space.empty());
      const std::size_t count = std::min(space.size(), bytes.size());
      std::memcpy(space.data(), bytes.data(), count);
      framer.Commit(count);
      bytes.remove_prefix(count);
      TakeLines();
    }
    return !too_long;
  }

  Result End() {
    const std::optional<absl::string_view> tail = framer.Tail();
    if (too_long) return {lines, "too long"};
    return {lines, tail ? "+" + std::string(*tail) : ""};
  }

  LineFramer framer;
  std::vector<std::string> lines;
  bool too_long = false;

 private:
  void TakeLines() {
    absl::string_view line;
    for (;;) {
      const LineFramer::Event event = framer.Next(&line);
      if (event == LineFramer::Event::kNeedsMore) return;
      if (event == LineFramer::Event::kTooLong) {
        too_long = true;
        EXPECT_EQ(framer.Next(&line), LineFramer::Event::kTooLong) << "it is final";
        return;
      }
      lines.emplace_back(line);
    }
  }
};

Result Frame(absl::string_view bytes, std::size_t line_bytes_max = 100) {
  Feeder feeder(line_bytes_max);
  feeder.Feed(bytes);
  return feeder.End();
}

// What the contract says, written down plainly.
Result Expected(absl::string_view bytes, std::size_t line_bytes_max) {
  Result result;
  const absl::string_view mark = "\xEF\xBB\xBF";
  for (bool first = true;; first = false) {
    const std::size_t newline = bytes.find('\n');
    absl::string_view line = bytes.substr(0, newline);
    const bool is_part_of_mark =
        newline == absl::string_view::npos && line.size() < mark.size() && mark.substr(0, line.size()) == line;
    if (first && line.substr(0, mark.size()) == mark) line.remove_prefix(mark.size());
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.size() > line_bytes_max) {
      if (!(first && is_part_of_mark)) result.second = "too long";
      return result;
    }
    if (newline == absl::string_view::npos) {
      if (!line.empty()) result.second = "+" + std::string(line);
      return result;
    }
    result.first.emplace_back(line);
    bytes.remove_prefix(newline + 1);
  }
}

TEST(LineFramer, SplitsAtLineFeedsAlone) {
  EXPECT_EQ(Frame("a\nb\n\nc"), Result({"a", "b", ""}, "+c"));
  EXPECT_EQ(Frame(""), Result({}, ""));
  const std::string others = "\xE2\x80\xA8\xE2\x80\xA9\xC2\x85\f\v\rx";
  EXPECT_EQ(Frame(others + "\n" + others), Result({others}, "+" + others));
  EXPECT_EQ(Frame(absl::string_view("a\0b\n\xFF\n", 6)), Result({std::string("a\0b", 3), "\xFF"}, ""));
}

TEST(LineFramer, StripsOneCarriageReturnBeforeALineFeed) {
  EXPECT_EQ(Frame("a\r\nb\r\r\n\r\n\rc\n"), Result({"a", "b\r", "", "\rc"}, ""));
  EXPECT_EQ(Frame("a\r"), Result({}, "+a"));
}

TEST(LineFramer, StripsAByteOrderMarkAtTheVeryBeginning) {
  EXPECT_EQ(Frame("\xEF\xBB\xBF{}\n\xEF\xBB\xBF{}\n"), Result({"{}", "\xEF\xBB\xBF{}"}, ""));
  EXPECT_EQ(Frame("\xEF\xBB\xBF"), Result({}, ""));
  EXPECT_EQ(Frame("\n\xEF\xBB\xBF\n"), Result({"", "\xEF\xBB\xBF"}, ""));
  EXPECT_EQ(Frame("\xEF\xBBx\n"), Result({"\xEF\xBBx"}, ""));
}

TEST(LineFramer, BoundsALineWithoutItsTerminatorAndMark) {
  for (const std::size_t max :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{16 << 10}, std::size_t{100'000}}) {
    for (const int more : {-1, 0, 1}) {
      if (max == 0 && more < 0) continue;
      const std::string line(max + static_cast<std::size_t>(more), 'x');
      for (const std::string mark : {"", "\xEF\xBB\xBF"}) {
        for (const std::string end : {"\n", "\r\n"}) {
          SCOPED_TRACE(testing::Message() << max << " " << more << " " << mark.size() << " " << end.size());
          const Result result = Frame(mark + line + end, max);
          if (more > 0) {
            EXPECT_EQ(result, Result({}, "too long"));
          } else {
            EXPECT_EQ(result, Result({line}, ""));
          }
          // It is known before its end is seen, and what came before is given.
          Feeder feeder(max);
          EXPECT_TRUE(feeder.Feed(mark + "\n"));
          EXPECT_EQ(feeder.Feed(line), more <= 0);
          EXPECT_THAT(feeder.lines, ElementsAre(""));
        }
      }
    }
  }
}

// Each way to cut a short stream: 2^(n-1) of them.
TEST(LineFramer, AnySplitOfAnyShortStreamGivesTheSameLines) {
  const std::string streams[] = {
      "a\r\nbc\n\n",   "\xEF\xBB\xBF{}\r\n\r", "\r\r\n\n\r\na\r",        "\xEF\xBB\xBF\xEF\xBB\xBF\n",
      "\xEF\xBBx\n\n", "abcd\r\nabcde\n",      "\xEF\xBB\xBFxyzw\r\n\n", "\n\n\n\n\r\n\r\n\n",
  };
  for (const std::string& stream : streams) {
    for (std::size_t max = 0; max != 6; ++max) {
      const Result expected = Expected(stream, max);
      for (unsigned cuts = 0; cuts != 1u << (stream.size() - 1); ++cuts) {
        Feeder feeder(max);
        std::size_t begin = 0;
        for (std::size_t i = 0; i != stream.size(); ++i) {
          if (i + 1 != stream.size() && (cuts >> i & 1) == 0) continue;
          feeder.Feed(absl::string_view(stream).substr(begin, i + 1 - begin));
          begin = i + 1;
        }
        ASSERT_EQ(feeder.End(), expected) << testing::PrintToString(stream) << " " << max << " " << cuts;
      }
    }
  }
}

TEST(LineFramer, RandomSplitsOfLongStreamsGiveTheSameLines) {
  std::mt19937 random(1);
  for (int round = 0; round != 40; ++round) {
    std::string stream = random() % 2 == 0 ? "\xEF\xBB\xBF" : "";
    const std::size_t line_sizes[] = {3, 100, 10'000, 200'000};
    while (stream.size() < 1'000'000) {
      stream.append(random() % line_sizes[random() % 4], static_cast<char>('a' + random() % 26));
      stream += random() % 3 == 0 ? "\r\n" : "\n";
    }
    if (random() % 2 == 0) stream += "the rest";
    const std::size_t max = random() % 4 == 0 ? 150'000 : 200'000;
    Feeder feeder(max);
    const unsigned chunk_max = 1u << (4 + random() % 16);
    for (absl::string_view rest = stream; !rest.empty();) {
      const std::size_t count = std::min<std::size_t>(rest.size(), 1 + random() % chunk_max);
      if (!feeder.Feed(rest.substr(0, count))) break;
      rest.remove_prefix(count);
    }
    ASSERT_TRUE(feeder.End() == Expected(stream, max)) << round;
  }
}

constexpr std::size_t kLarge = 64u << 20;

// Commits `size` bytes that hold no newline, `at_once` at most in one.
void FeedLarge(LineFramer* framer, std::size_t size, std::size_t at_once) {
  absl::string_view line;
  while (size != 0) {
    const absl::Span<char> space = framer->Space();
    const std::size_t count = std::min({space.size(), size, at_once});
    std::memset(space.data(), 'x', count);
    framer->Commit(count);
    size -= count;
    if (framer->Next(&line) != LineFramer::Event::kNeedsMore) FAIL();
  }
}

TEST(LineFramer, DoesWorkInProportionToTheBytesWhateverTheirPieces) {
  for (const std::size_t at_once : {std::size_t{64} << 10, std::size_t{4096}, std::size_t{61}}) {
    SCOPED_TRACE(at_once);
    bytes_searched = bytes_moved = bytes_allocated_max = 0;
    LineFramer framer(kLarge);
    FeedLarge(&framer, kLarge, at_once);
    EXPECT_LE(bytes_searched, kLarge);
    EXPECT_EQ(bytes_moved, 0u);
    EXPECT_LE(bytes_allocated_max, kLarge + kLarge / 10);
    ASSERT_GT(bytes_searched, kLarge / 2) << "the linker's --wrap does not work";
    absl::string_view line;
    framer.Space()[0] = '\n';
    framer.Commit(1);
    EXPECT_EQ(framer.Next(&line), LineFramer::Event::kLine);
    EXPECT_EQ(line.size(), kLarge);
  }
}

TEST(LineFramer, OneByteAtATimeIsLinearToo) {
  constexpr std::size_t kSize = 4u << 20;
  bytes_searched = bytes_moved = 0;
  LineFramer framer(kSize);
  FeedLarge(&framer, kSize, 1);
  EXPECT_LE(bytes_searched, kSize);
  EXPECT_LE(bytes_moved, kSize);
}

// Short lines before and after a long one: what is left of a chunk is moved, but no byte more than a few times.
TEST(LineFramer, MovesFewBytes) {
  std::mt19937 random(1);
  std::string stream;
  while (stream.size() < 8u << 20) stream.append(random() % 100 == 0 ? 50'000 : random() % 300, 'x') += '\n';
  Feeder feeder(100'000);
  bytes_searched = bytes_moved = 0;
  for (absl::string_view rest = stream; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(rest.size(), 5000))) {
    ASSERT_TRUE(feeder.Feed(rest.substr(0, 5000)));
  }
  EXPECT_LE(bytes_searched, stream.size());
  EXPECT_LE(bytes_moved, stream.size() / 4);
}

TEST(LineFramer, GivesItsMemoryBack) {
  LineFramer framer(kLarge);
  absl::string_view line;
  FeedLarge(&framer, 1u << 20, 1u << 20);
  ASSERT_GT(framer.Space().size(), 100'000u);  // it has grown
  std::memcpy(framer.Space().data(), "\nrest", 5);
  framer.Commit(5);
  ASSERT_EQ(framer.Next(&line), LineFramer::Event::kLine);
  ASSERT_EQ(line.size(), 1u << 20);
  EXPECT_EQ(framer.Next(&line), LineFramer::Event::kNeedsMore);
  EXPECT_LE(framer.Space().size(), 16u << 10);
  EXPECT_EQ(framer.Tail(), "rest");
}

// Of the pages that hold these bytes.
std::size_t ResidentBytes(absl::string_view bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  std::vector<unsigned char> pages((bytes.size() + page - 1) / page);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the page's address
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), bytes.size(), pages.data()), 0);
  return page * static_cast<std::size_t>(
                    std::count_if(pages.begin(), pages.end(), [](unsigned char state) { return (state & 1) != 0; }));
}

// A large line is not in memory twice when it is kept: its own memory is given back meanwhile.
TEST(LineFramer, MovesALargePartOut) {
  constexpr std::size_t kSize = 16u << 20, kHugePage = 2u << 20;
  LineFramer framer(kSize);
  FeedLarge(&framer, kSize, 1u << 20);
  framer.Space()[0] = '\n';
  framer.Commit(1);
  const std::string rest = "a second line\nthe rest";
  std::memcpy(framer.Space().data(), rest.data(), rest.size());
  framer.Commit(rest.size());
  absl::string_view line;
  ASSERT_EQ(framer.Next(&line), LineFramer::Event::kLine);
  ASSERT_EQ(ResidentBytes(line), kSize);
  EXPECT_EQ(framer.MoveOut(line.substr(10, kSize - 30)), std::string(kSize - 30, 'x'));
  EXPECT_LE(ResidentBytes(line), 2 * kHugePage);
  ASSERT_EQ(framer.Next(&line), LineFramer::Event::kLine);
  EXPECT_EQ(framer.MoveOut(line), "a second line");
  EXPECT_EQ(framer.Next(&line), LineFramer::Event::kNeedsMore);
  EXPECT_EQ(framer.Tail(), "the rest");
}

TEST(LineFramer, MovesAPartOutThatLiesElsewhere) {
  const std::string elsewhere(4u << 20, 'y');
  LineFramer framer(100);
  EXPECT_EQ(framer.MoveOut(elsewhere), elsewhere);  // while it has no buffer
  FeedLarge(&framer, 100, 100);
  EXPECT_EQ(framer.MoveOut(elsewhere), elsewhere);
  EXPECT_EQ(framer.MoveOut(absl::string_view(elsewhere).substr(7, 0)), "");
  EXPECT_EQ(elsewhere, std::string(4u << 20, 'y'));
}

// A line that is longer than a half of its buffer is not in memory twice while the buffer grows.
TEST(LineFramer, GivesMemoryBackWhileItGrows) {
  LineFramer framer(kLarge);
  bytes_given_back = 0;
  FeedLarge(&framer, kLarge, 1u << 20);
  EXPECT_GE(bytes_given_back, 4u << 20);  // it was in a buffer of 8 MiB before
  framer.Space()[0] = '\n';
  framer.Commit(1);
  absl::string_view line;
  ASSERT_EQ(framer.Next(&line), LineFramer::Event::kLine);
  EXPECT_EQ(line, std::string(kLarge, 'x'));
}

TEST(LineFramer, NeverAsksForMuchMoreThanTheLimit) {
  for (const std::size_t max : {std::size_t{1}, std::size_t{100}, std::size_t{1'000'000}}) {
    LineFramer framer(max);
    bytes_allocated_max = 0;
    FeedLarge(&framer, max, 1000);
    framer.Space();
    EXPECT_LE(bytes_allocated_max, std::max<std::size_t>(max + (4u << 20), 16u << 10));
  }
}

}  // namespace
}  // namespace bulkhead::jsonrpc
