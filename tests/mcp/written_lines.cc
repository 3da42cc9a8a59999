#include "tests/mcp/written_lines.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "nlohmann/json.hpp"

namespace bulkhead::mcp {
namespace {

using Json = nlohmann::json;

// One conversation: a pipe, by its inode, which no other has as long as it is there.
struct Conversation {
  std::string partial, version;
};

class Recorder {
 public:
  // Never destroyed: other threads may still write.
  static Recorder& Get() {
    static auto* const recorder = new Recorder;
    return *recorder;
  }

  void Set(std::string Recorder::*what, const std::string& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    this->*what = value;
  }

  void Written(int fd, const iovec* pieces, int count, std::size_t bytes) {
    struct stat status;
    if (folder_.empty() || fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    Conversation& conversation = conversations_[status.st_ino];
    for (int i = 0; i != count && bytes != 0; ++i) {
      const std::size_t taken = std::min(bytes, pieces[i].iov_len);
      conversation.partial.append(static_cast<const char*>(pieces[i].iov_base), taken);
      bytes -= taken;
    }
    std::ofstream file(folder_ + "/" + std::to_string(getpid()) + ".jsonl", std::ios::app);
    std::size_t begin = 0;
    for (std::size_t end; (end = conversation.partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Record(file, &conversation, conversation.partial.substr(begin, end - begin));
    }
    conversation.partial.erase(0, begin);
  }

  std::string test_name = Environment("BULKHEAD_MCP_TEST"), settled_version = "2025-11-25";

 private:
  static std::string Environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  }

  // {"test", "version", "line", "own"}: a test may call methods that no version knows, as hosts may.
  void Record(std::ofstream& file, Conversation* conversation, const std::string& line) const {
    const Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const Json params = message.is_object() ? message.value("params", Json::object()) : Json();
    if (params.is_object() && params.contains("_meta")) {
      const Json of_request = params["_meta"].value("io.modelcontextprotocol/protocolVersion", Json());
      if (of_request.is_string()) conversation->version = of_request;
    }
    const bool is_initialize = message.is_object() && message.value("method", "") == "initialize";
    if (is_initialize || conversation->version.empty()) conversation->version = settled_version;
    const Json record = {{"test", test_name}, {"version", conversation->version}, {"line", line}, {"own", true}};
    file << record.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }

  // Read once, while nobody changes the environment.
  const std::string folder_ = Environment("BULKHEAD_MCP_LINES");
  std::mutex mutex_;
  std::map<ino_t, Conversation> conversations_;
};

}  // namespace

void SetSettledVersion(const std::string& version) { Recorder::Get().Set(&Recorder::settled_version, version); }
void SetTestName(const std::string& name) { Recorder::Get().Set(&Recorder::test_name, name); }

}  // namespace bulkhead::mcp

extern "C" {

ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  // The kernel takes the offset in two halves.
  const ssize_t written = syscall(SYS_pwritev2, fd, pieces, count, static_cast<long>(offset), 0L, flags);
  const int error = errno;
  if (written > 0) {
    bulkhead::mcp::Recorder::Get().Written(fd, pieces, count, static_cast<std::size_t>(written));
  }
  errno = error;
  return written;
}

ssize_t writev(int fd, const iovec* pieces, int count) {
  const ssize_t written = syscall(SYS_writev, fd, pieces, count);
  const int error = errno;
  if (written > 0) {
    bulkhead::mcp::Recorder::Get().Written(fd, pieces, count, static_cast<std::size_t>(written));
  }
  errno = error;
  return written;
}
}
