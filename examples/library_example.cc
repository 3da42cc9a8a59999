// Starts a server in its jail and lists its tools: library-example POLICY COMMAND [ARG...]
#include <iostream>

#include "asio/io_context.hpp"
#include "bulkhead/jsonrpc/json_value.h"
#include "bulkhead/mcp/session.h"
#include "bulkhead/policy/load.h"

namespace bh = bulkhead;

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const auto policy = bh::policy::LoadPolicy(argv[1]);  // what may run, and what it may have
  if (!policy.ok()) {
    std::cerr << "library-example: " << policy.status().message() << "\n";
    return 125;
  }
  bh::policy::CommandRequest request;
  request.argv.assign(argv + 2, argv + argc);
  request.host_cwd = "/";
  request.host_env = {{"PATH", "/usr/bin:/bin"}};  // the policy says which names of it pass

  asio::io_context io;  // one thread for any number of sessions
  int exit_code = 0;
  bh::mcp::Session session(io.get_executor(), *policy, request, {});
  const auto finish = [&](const absl::Status& status) {
    if (!status.ok()) std::cerr << "library-example: " << status.message() << "\n";
    if (!status.ok()) exit_code = bh::launcher::ExitCodeForStatus(status);
    session.AsyncClose([](const bh::mcp::ServerEnd&) {});  // the gentle way; the destructor kills
  };
  session.AsyncConnect([&](absl::Status connected) {  // starts it, and again when it ends
    if (!connected.ok()) return finish(connected);
    std::cout << session.server_info().name << ", tier " << bh::policy::TierName(session.report()->tier) << "\n";
    session.AsyncList("tools/list", "tools", {}, [&](absl::StatusOr<std::vector<std::string>> tools) {
      if (!tools.ok()) return finish(tools.status());
      for (const std::string& tool : *tools) std::cout << "- " << (*bh::jsonrpc::ToJson(tool))["name"] << "\n";
      finish(absl::OkStatus());
    });
  });
  io.run();
  return exit_code;
}
