// Stream on Windows, which has no readiness: what POSIX's poll(2) says of a pipe is found out by operations under way.
#ifndef BULKHEAD_JSONRPC_STREAM_WINDOWS_H_
#define BULKHEAD_JSONRPC_STREAM_WINDOWS_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "asio/any_io_executor.hpp"
#include "asio/error_code.hpp"

namespace bulkhead::jsonrpc {

// The names are those of asio::posix::stream_descriptor. One wait of each kind at a time.
//
// Writing takes a copy and goes on by itself: bytes that were taken are written also when the stream is closed
// afterwards, as long as the peer reads and the executor runs.
class Stream {
 public:
  enum wait_type { wait_read, wait_write, wait_error };
  using executor_type = asio::any_io_executor;

  explicit Stream(executor_type executor);
  // Owns `handle`, an end of a named pipe that was opened with FILE_FLAG_OVERLAPPED. To notice that a peer has closed
  // its input, the end that is written to has to be readable, too.
  Stream(executor_type executor, void* handle);
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  executor_type get_executor() const { return executor_; }
  bool is_open() const;
  void assign(void* handle);
  // What waits is told operation_aborted.
  void close(asio::error_code& error);
  // wait_error completes when the peer has closed its end, or a write has failed.
  void async_wait(wait_type what, std::function<void(asio::error_code)> handler);

  // ReadSome, WriteSome and PeerIsGone of stream.h.
  std::ptrdiff_t Read(absl::Span<char> space);
  std::ptrdiff_t Write(const absl::string_view* pieces, std::size_t count);
  bool peer_is_gone() const;

 private:
  class State;
  executor_type executor_;
  std::shared_ptr<State> state_;
};

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_STREAM_WINDOWS_H_
