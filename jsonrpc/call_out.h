// How the host's handlers are called: what one throws leaves the executor's run(), as with Asio's own handlers, but
// does not unwind what called it. A host that goes on after that finds nothing half done.
#ifndef BULKHEAD_JSONRPC_CALL_OUT_H_
#define BULKHEAD_JSONRPC_CALL_OUT_H_

#include <exception>
#include <utility>

#include "asio/post.hpp"

namespace bulkhead::jsonrpc {

template <typename Executor, typename Handler, typename... Arguments>
void CallOut(const Executor& executor, Handler&& handler, Arguments&&... arguments) {
  try {
    std::forward<Handler>(handler)(std::forward<Arguments>(arguments)...);
  } catch (...) {
    asio::post(executor, [thrown = std::current_exception()] { std::rethrow_exception(thrown); });
  }
}

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_CALL_OUT_H_
