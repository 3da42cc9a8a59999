#include "bulkhead/jsonrpc/stream_windows.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "asio/buffer.hpp"
#include "asio/post.hpp"
#include "asio/windows/overlapped_ptr.hpp"
#include "asio/windows/stream_handle.hpp"
#include "bulkhead/jsonrpc/stream.h"

namespace bulkhead::jsonrpc {
namespace {

constexpr std::size_t kWriteBytes = 64u << 10;  // that are under way at a time

using Handler = std::function<void(asio::error_code)>;

bool IsEnd(DWORD error) {
  return error == ERROR_BROKEN_PIPE || error == ERROR_PIPE_NOT_CONNECTED || error == ERROR_NO_DATA ||
         error == ERROR_HANDLE_EOF;
}

bool IsEnd(asio::error_code error) {
  return error == asio::error::eof || error == asio::error::broken_pipe ||
         (error.category() == asio::system_category() && IsEnd(static_cast<DWORD>(error.value())));
}

}  // namespace

// Kept alive by what is under way. On the executor, all of it.
class Stream::State : public std::enable_shared_from_this<State> {
 public:
  State(const executor_type& executor, HANDLE handle) : executor_(executor), handle_(executor, handle) {}

  bool is_open() const { return is_open_; }
  bool peer_is_gone() const { return write_error_ != 0; }

  void Close() {
    if (!is_open_) return;
    is_open_ = false;
    for (Handler* handler : {&on_read_, &on_write_, &on_error_}) Call(handler, asio::error::operation_aborted);
    if (!is_writing_) CloseHandleNow();
  }

  void Wait(wait_type what, Handler handler) {
    switch (what) {
      case wait_read:
        on_read_ = std::move(handler);
        if (!is_reading_) StartRead();
        return;
      case wait_write:
        on_write_ = std::move(handler);
        if (!is_writing_) Call(&on_write_, {});
        return;
      case wait_error:
        on_error_ = std::move(handler);
        if (write_error_ != 0) return Call(&on_error_, {});
        if (!is_reading_) StartRead();
        return;
    }
  }

  std::ptrdiff_t Read(absl::Span<char> space) {
    DWORD available = 0;
    if (!PeekNamedPipe(handle_.native_handle(), nullptr, 0, nullptr, &available, nullptr)) {
      return IsEnd(GetLastError()) ? 0 : -EIO;
    }
    if (available == 0) return -EAGAIN;
    // The lowest bit of the event keeps the end of this read from the executor (GetQueuedCompletionStatus).
    OVERLAPPED overlapped = {};
    const HANDLE event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
    if (event == nullptr) return -EIO;
    overlapped.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(event) | 1);
    DWORD count = 0;
    const DWORD wanted = static_cast<DWORD>(std::min<std::size_t>(space.size(), available));
    bool done = ReadFile(handle_.native_handle(), space.data(), wanted, nullptr, &overlapped) ||
                GetLastError() == ERROR_IO_PENDING;
    done = done && GetOverlappedResult(handle_.native_handle(), &overlapped, &count, TRUE);
    const DWORD error = done ? ERROR_SUCCESS : GetLastError();
    CloseHandle(event);
    if (done) return count == 0 ? -EAGAIN : static_cast<std::ptrdiff_t>(count);
    return IsEnd(error) ? 0 : -EIO;
  }

  std::ptrdiff_t Write(const absl::string_view* pieces, std::size_t count) {
    if (write_error_ != 0) return -write_error_;
    if (is_writing_) return -EAGAIN;
    under_way_.clear();
    for (std::size_t i = 0; i != std::min(count, kPiecesMax) && under_way_.size() < kWriteBytes; ++i) {
      const absl::string_view piece = pieces[i].substr(0, kWriteBytes - under_way_.size());
      under_way_.insert(under_way_.end(), piece.begin(), piece.end());
    }
    const std::size_t taken = under_way_.size();
    if (taken != 0) StartWrite(0);
    return static_cast<std::ptrdiff_t>(taken);
  }

 private:
  // A read of nothing ends when there is something, or never will be any more.
  void StartRead() {
    is_reading_ = true;
    asio::windows::overlapped_ptr read(executor_, [self = shared_from_this()](asio::error_code error, std::size_t) {
      self->is_reading_ = false;
      if (!self->is_open_) return;
      if (self->on_error_ && IsEnd(error)) self->FailWrites();
      if (self->on_read_) self->Call(&self->on_read_, {});  // what is wrong shows when it is read
    });
    if (ReadFile(handle_.native_handle(), &nothing_, 0, nullptr, read.get()) || GetLastError() == ERROR_IO_PENDING) {
      read.release();
    } else {
      read.complete(asio::error_code(static_cast<int>(GetLastError()), asio::system_category()), 0);
    }
  }

  void StartWrite(std::size_t from) {
    is_writing_ = true;
    handle_.async_write_some(asio::buffer(under_way_.data() + from, under_way_.size() - from),
                             [self = shared_from_this(), from](asio::error_code error, std::size_t written) {
                               self->is_writing_ = false;
                               if (!error && from + written < self->under_way_.size())
                                 return self->StartWrite(from + written);
                               if (!self->is_open_) return self->CloseHandleNow();
                               if (error) self->FailWrites();
                               if (self->on_write_) self->Call(&self->on_write_, {});
                             });
  }

  void FailWrites() {
    write_error_ = EPIPE;
    if (on_error_) Call(&on_error_, {});
  }

  void CloseHandleNow() {
    asio::error_code ignored;
    handle_.close(ignored);
  }

  // Never from inside the call that waits.
  void Call(Handler* handler, asio::error_code error) {
    if (!*handler) return;
    asio::post(executor_, [handler = std::exchange(*handler, nullptr), error] { handler(error); });
  }

  executor_type executor_;
  asio::windows::stream_handle handle_;
  Handler on_read_, on_write_, on_error_;
  std::vector<char> under_way_;  // to the peer
  char nothing_ = 0;
  bool is_open_ = true;
  bool is_reading_ = false;
  bool is_writing_ = false;
  int write_error_ = 0;  // an errno
};

Stream::Stream(executor_type executor) : executor_(std::move(executor)) {}
Stream::Stream(executor_type executor, void* handle) : executor_(std::move(executor)) { assign(handle); }
Stream::~Stream() {
  if (state_) state_->Close();
}
bool Stream::is_open() const { return state_ && state_->is_open(); }
void Stream::assign(void* handle) { state_ = std::make_shared<State>(executor_, handle); }
void Stream::close(asio::error_code& error) {
  error = {};
  if (state_) state_->Close();
}
void Stream::async_wait(wait_type what, std::function<void(asio::error_code)> handler) {
  if (is_open()) return state_->Wait(what, std::move(handler));
  asio::post(executor_, [handler = std::move(handler)] { handler(asio::error::bad_descriptor); });
}
std::ptrdiff_t Stream::Read(absl::Span<char> space) { return is_open() ? state_->Read(space) : -EBADF; }
std::ptrdiff_t Stream::Write(const absl::string_view* pieces, std::size_t count) {
  return is_open() ? state_->Write(pieces, count) : -EBADF;
}
bool Stream::peer_is_gone() const { return state_ && state_->peer_is_gone(); }

void MakeNonBlocking(Stream*) {}
std::ptrdiff_t ReadSome(Stream* stream, absl::Span<char> space) { return stream->Read(space); }
std::ptrdiff_t WriteSome(Stream* stream, const absl::string_view* pieces, std::size_t count) {
  return stream->Write(pieces, count);
}
bool PeerIsGone(Stream* to_peer) { return to_peer->peer_is_gone(); }
void PipeSize::Enlarge(Stream*) { is_tried_ = true; }
void PipeSize::Restore(Stream*) { is_tried_ = false; }

}  // namespace bulkhead::jsonrpc
