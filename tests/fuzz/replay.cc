// The main of a fuzz target that is built without a fuzzer: it runs what is in the folders and files that are named,
// and every beginning of it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      for (std::size_t size = 0; size <= text.size(); ++size) {
        const std::vector<std::uint8_t> exact(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
        LLVMFuzzerTestOneInput(exact.data(), size);
        ++count;
      }
    }
  }
  std::printf("%zu inputs\n", count);
  return count == 0 ? 1 : 0;
}
