// From plain callbacks to Asio's completion tokens. A handler is called on its own executor, which is kept busy until
// then, so that a thread that runs it does not leave before. What it throws leaves that executor's run().
#ifndef BULKHEAD_MCP_ASYNC_H_
#define BULKHEAD_MCP_ASYNC_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "asio/any_io_executor.hpp"
#include "asio/associated_cancellation_slot.hpp"
#include "asio/associated_executor.hpp"
#include "asio/async_result.hpp"
#include "asio/dispatch.hpp"
#include "asio/executor_work_guard.hpp"
#include "bulkhead/jsonrpc/call_out.h"

namespace bulkhead::mcp {

// A completion handler, bound to where it must run. Called once, or destroyed uncalled.
template <typename Handler>
class Completion {
 public:
  Completion(Handler handler, const asio::any_io_executor& fallback)
      : handler_(std::move(handler)), work_(asio::get_associated_executor(handler_, fallback)) {}

  template <typename Value>
  void operator()(Value value) {
    // The slot must not reach an operation that is over.
    auto slot = asio::get_associated_cancellation_slot(handler_);
    if (slot.is_connected()) slot.clear();
    auto executor = work_.get_executor();
    asio::dispatch(executor,
                   [handler = std::move(handler_), value = std::move(value), work = std::move(work_)]() mutable {
                     jsonrpc::CallOut(work.get_executor(), std::move(handler), std::move(value));
                   });
  }

 private:
  using Executor = asio::associated_executor_t<Handler, asio::any_io_executor>;
  Handler handler_;
  asio::executor_work_guard<Executor> work_;
};

// `initiation` gets a callable that takes the result; it must not call it before it returns.
template <typename Signature, typename Initiation, typename Token>
auto StartAsync(asio::any_io_executor fallback, Initiation initiation, Token& token) {
  return asio::async_initiate<Token, Signature>(
      [fallback](auto handler, auto start) mutable {
        start(Completion<std::decay_t<decltype(handler)>>(std::move(handler), fallback));
      },
      token, std::move(initiation));
}

// The same; `initiation` returns what `cancel` takes when the token's cancellation slot is used.
template <typename Signature, typename Initiation, typename Cancel, typename Token>
auto StartCancellable(asio::any_io_executor fallback, Initiation initiation, Cancel cancel, Token& token) {
  return asio::async_initiate<Token, Signature>(
      [fallback](auto handler, auto start, auto stop) mutable {
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto operation = start(Completion<std::decay_t<decltype(handler)>>(std::move(handler), fallback));
        if (!slot.is_connected()) return;
        slot.assign([operation, stop](asio::cancellation_type type) {
          if (type != asio::cancellation_type::none) stop(operation);
        });
      },
      token, std::move(initiation), std::move(cancel));
}

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_ASYNC_H_
