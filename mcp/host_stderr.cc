#include "bulkhead/mcp/host_stderr.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <poll.h>
#include <unistd.h>

#include "bulkhead/jsonrpc/write_without_sigpipe.h"
#endif

namespace bulkhead::mcp {

#ifdef _WIN32
void PassToHostStderr(absl::string_view text) {
  DWORD written;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), text.data(), static_cast<DWORD>(text.size()), &written, nullptr);
}
#else
// A pipe that poll(2) calls writable takes PIPE_BUF bytes without blocking.
void PassToHostStderr(absl::string_view text) {
  pollfd poll_fd = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&poll_fd, 1, 0) != 1 || (poll_fd.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return;
  jsonrpc::WriteWithoutSigpipe(STDERR_FILENO, &text, 1);
}
#endif

}  // namespace bulkhead::mcp
